package topology

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"portcullis/api/admission"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/forms"
	"portcullis/fabricsm/topospec/history"
)

// Draft keeps a file as a draft: what cannot be compared with anything, is empty, cut,
// or of another fabric, is refused with each line that is wrong.
func (s *Service) Draft(ctx context.Context, actor string, in v1.NewTopospec) (*v1.TopospecRevision, error) {
	if len(in.Content) > MaxContent {
		return nil, refuse(admission.Invalid, v1.CodeTooLarge, "leave out what is not of this fabric", "%s has %d MiB, at most %d are taken", in.Name, len(in.Content)>>20, MaxContent>>20)
	}
	seal := forms.Sealed
	if in.Draft {
		seal = forms.Draft
	}
	r, err := forms.Declared(in.Name, []byte(in.Content), seal)
	if err != nil {
		return nil, invalid(err)
	}
	return s.DraftOf(ctx, actor, in.Name, in.Reason, func(*topospec.Spec) (*topospec.Revision, error) { return r, nil })
}

// DraftOf keeps as a draft what write makes of the content in force, which is nil
// without one. write may run several times and has no other effect. source names where
// it comes from, in errors and for people.
func (s *Service) DraftOf(ctx context.Context, author, source, why string, write func(active *topospec.Spec) (*topospec.Revision, error)) (*v1.TopospecRevision, error) {
	var out *v1.TopospecRevision
	why = strings.TrimSpace(why)
	if why == "" {
		return nil, refuse(admission.Invalid, "reason_missing", "say it in a few words, for those who approve", "no reason is given for the draft")
	}
	err := s.change(ctx, func(tx *store.Tx, b *book) (step, error) {
		active, err := s.activeContent(ctx, tx, b)
		if err != nil {
			return step{}, unreadable(err)
		}
		r, err := write(active)
		if err != nil {
			return step{}, err
		}
		e, err := s.addDraft(tx, b, active, r, history.Person(author), source)
		if err != nil {
			return step{}, err
		}
		e.Reason = why
		b.more[e.Number] = e
		dropped := b.prune()
		out = b.show(e)
		detail := fmt.Sprintf("%s, of %s: %s", e.Digest.Short(), source, why)
		if dropped > 0 {
			detail += fmt.Sprintf("; %d of the oldest revisions were forgotten", dropped)
		}
		return step{actor: author, action: "draft", number: e.Number, detail: detail}, nil
	})
	if err != nil {
		return nil, err
	}
	return s.Revision(ctx, out.Revision)
}

// addDraft puts a draft with its content into the book.
func (s *Service) addDraft(tx *store.Tx, b *book, active *topospec.Spec, r *topospec.Revision, author history.Person, source string) (*Entry, error) {
	spec, err := b.history.Draft(source, r, author, s.now())
	if err != nil {
		if errors.Is(err, history.ErrRefused) {
			return nil, err
		}
		return nil, invalid(err)
	}
	if spec.NumActive() == 0 {
		return nil, refuse(admission.Invalid, "topospec_empty", "look whether the file is whole", "%s: no link of it is to be up", source)
	}
	if active != nil && active.Revision().Fabric != spec.Revision().Fabric {
		return nil, refuse(admission.Conflict, "topospec_foreign", "check that the file is the one you meant; a topoconfig.conf is of the fabric that its file is named after",
			"%s describes fabric %q, in force is %q", source, spec.Revision().Fabric, active.Revision().Fabric)
	}
	content, err := pack(spec)
	if err != nil {
		return nil, refuse(admission.Invalid, v1.CodeTooLarge, "leave out what is not of this fabric", "%v", err)
	}
	if err := Contents().Put(tx, key(spec.Revision().Number), *content); err != nil {
		return nil, err
	}
	s.cache.put(spec)
	h, err := b.history.Find(spec.Revision().Number)
	if err != nil {
		return nil, err
	}
	e := &Entry{
		Entry: *h, Fabric: spec.Revision().Fabric, Source: source, Devices: len(spec.Revision().Devices), Links: len(spec.Revision().Links),
		Expected: spec.NumActive(), Stored: len(content.Gzip), Touches: history.Touched(active, spec),
	}
	e.Needed, _ = b.history.Needed(active, spec, h)
	return e, nil
}

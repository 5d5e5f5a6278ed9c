package topology

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/format"
	"portcullis/fabricsm/topospec/history"
)

// Draft keeps a file as a draft. A file that cannot be compared with anything, is empty, cut, or of another fabric, is
// refused with each line that is wrong.
func (s *Service) Draft(ctx context.Context, actor string, in v1.NewTopospec) (*v1.TopospecRevision, error) {
	if len(in.Content) > MaxContent {
		return nil, refuse(refusal.Invalid, v1.CodeTooLarge, "leave out what is not of this fabric", "%s has %d MiB, at most %d are taken", in.Name, len(in.Content)>>20, MaxContent>>20)
	}
	seal := format.Sealed
	if in.Draft {
		seal = format.Draft
	}
	r, err := format.Declared(in.Name, []byte(in.Content), seal)
	if err != nil {
		return nil, invalid(in.Name, err)
	}
	return s.DraftOf(ctx, actor, in.Name, in.Reason, func(*topospec.Spec) (*topospec.Revision, error) { return r, nil })
}

// DraftOf keeps as a draft what write makes of the content in force, which is nil
// without one. write may run several times and has no other effect. source names where
// it comes from, in errors and for people.
func (s *Service) DraftOf(ctx context.Context, author, source, why string, write func(active *topospec.Spec) (*topospec.Revision, error)) (*v1.TopospecRevision, error) {
	why = strings.TrimSpace(why)
	if why == "" {
		return nil, refuse(refusal.Invalid, "reason_missing", "say it in a few words, for those who approve", "no reason is given for the draft")
	}
	for range maxDraftings {
		d, err := s.prepare(ctx, source, write)
		if err != nil {
			return nil, explain(err)
		}
		d.author, d.reason = author, why
		err = s.change(ctx, func(tx *store.Tx, b *book) (step, error) { return s.addDraft(tx, b, d) })
		switch {
		case errors.Is(err, history.ErrMoved):
			continue
		case err != nil:
			return nil, err
		}
		s.cache.put(d.spec)
		return s.Revision(ctx, d.spec.Revision().Number)
	}
	return nil, refuse(refusal.Unavailable, "busy", "try again", "revisions are changed too fast")
}

// maxDraftings bounds how often a draft is made again because another writer was quicker.
const maxDraftings = 5

// drafting is a draft that is made ready. That takes seconds for a large fabric, in which
// no transaction may wait.
type drafting struct {
	source, author, reason string
	spec, active           *topospec.Spec
	content                *Content
}

func (s *Service) prepare(ctx context.Context, source string, write func(active *topospec.Spec) (*topospec.Revision, error)) (*drafting, error) {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	b, err := s.load(ctx, snap)
	if err != nil {
		return nil, unreadable(err)
	}
	d := &drafting{source: source}
	if d.active, err = s.activeContent(ctx, snap, b); err != nil {
		return nil, unreadable(err)
	}
	r, err := write(d.active)
	if err != nil {
		return nil, err
	}
	if d.spec, err = b.history.Compile(source, r); err != nil {
		return nil, invalid(source, err)
	}
	if d.spec.NumActive() == 0 {
		return nil, refuse(refusal.Invalid, "topospec_empty", "look whether the file is whole", "%s: no link of it is to be up", source)
	}
	if d.active != nil && d.active.Revision().Fabric != d.spec.Revision().Fabric {
		return nil, refuse(refusal.Conflict, "topospec_foreign", "check that the file is the one you meant; a topoconfig.conf is of the fabric that its file is named after",
			"%s describes fabric %q, in force is %q", source, d.spec.Revision().Fabric, d.active.Revision().Fabric)
	}
	if d.content, err = pack(d.spec); err != nil {
		return nil, refuse(refusal.Invalid, v1.CodeTooLarge, "leave out what is not of this fabric", "%v", err)
	}
	return d, nil
}

// addDraft puts a draft with its content into the book.
func (s *Service) addDraft(tx *store.Tx, b *book, d *drafting) (step, error) {
	if err := b.history.Add(d.spec, history.Person(d.author), s.now()); err != nil {
		return step{}, err
	}
	r := d.spec.Revision()
	h, err := b.history.Find(r.Number)
	if err != nil {
		return step{}, err
	}
	e := &Entry{
		Entry: *h, Fabric: r.Fabric, Source: d.source, Reason: d.reason, Devices: len(r.Devices), Links: len(r.Links),
		Expected: d.spec.NumActive(), Stored: len(d.content.Gzip), Touches: history.Touched(d.active, d.spec),
	}
	e.Needed, _ = b.history.Needed(d.active, d.spec, h)
	b.more[e.Number] = e
	detail := fmt.Sprintf("%s, of %s: %s", e.Digest.Short(), d.source, d.reason)
	if dropped := b.prune(); dropped > 0 {
		detail += fmt.Sprintf("; %d of the oldest revisions were forgotten", dropped)
	}
	return step{actor: d.author, action: "draft", number: e.Number, detail: detail}, Contents().Put(tx, key(r.Number), *d.content)
}

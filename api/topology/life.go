package topology

import (
	"context"
	"fmt"
	"strings"
	"time"

	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/diff"
	"portcullis/fabricsm/topospec/history"
	"portcullis/fabricsm/topospec/lint"
	"portcullis/fabricsm/topospec/simulate"
)

// Approve records a person's approval of the content whose digest the person names. match is the version of the revision
// that they saw, "" for any.
func (s *Service) Approve(ctx context.Context, actor string, number uint64, match string, in v1.TopospecApprove) (*v1.TopospecRevision, error) {
	err := s.change(ctx, func(_ *store.Tx, b *book) (step, error) {
		e, err := b.matching(number, match)
		if err != nil {
			return step{}, err
		}
		seen := e.Digest
		if !isDigestOf(in.Digest, e.Digest) {
			seen = topospec.Digest{}
			if err := seen.UnmarshalText([]byte(in.Digest)); err != nil || seen.IsZero() {
				return step{}, refuse(refusal.Conflict, "topospec_refused", "look at it again: portcullis topospec show "+fmt.Sprint(number),
					"approve revision %d: refused: what was looked at is %.71s, the draft is %s", number, in.Digest, e.Digest.Short())
			}
		}
		if err := b.history.Approve(number, seen, history.Person(actor), s.now()); err != nil {
			return step{}, err
		}
		detail := e.Digest.Short()
		if why := strings.TrimSpace(in.Reason); why != "" {
			detail += ": " + why
		}
		return step{actor: actor, action: "approve", number: number, detail: detail}, nil
	})
	if err != nil {
		return nil, err
	}
	return s.Revision(ctx, number)
}

// isDigestOf reports a digest, or at least twelve of its first digits.
func isDigestOf(text string, d topospec.Digest) bool {
	whole := d.String()
	digits := strings.TrimPrefix(whole, "sha256:")
	return text == whole || len(text) >= len(d.Short()) && strings.HasPrefix(digits, text)
}

// Reject ends a draft.
func (s *Service) Reject(ctx context.Context, actor string, number uint64, match string, in v1.TopospecReject) (*v1.TopospecRevision, error) {
	err := s.change(ctx, func(_ *store.Tx, b *book) (step, error) {
		if _, err := b.matching(number, match); err != nil {
			return step{}, err
		}
		why := strings.TrimSpace(in.Reason)
		if err := b.history.Reject(number, history.Person(actor), why); err != nil {
			return step{}, err
		}
		return step{actor: actor, action: "reject", number: number, detail: why}, nil
	})
	if err != nil {
		return nil, err
	}
	return s.Revision(ctx, number)
}

// note records in the book and the audit log that an actor had a revision checked.
func (s *Service) note(ctx context.Context, actor string, number uint64, action, outcome string) error {
	return s.change(ctx, func(_ *store.Tx, b *book) (step, error) {
		e, err := b.entry(number)
		if err != nil {
			return step{}, err
		}
		n := &Note{By: actor, At: s.now(), Outcome: outcome}
		if action == "simulate" {
			e.Simulated = n
		} else {
			e.Checked = n
		}
		b.more[number] = e
		return step{actor: actor, action: action, number: number, detail: outcome}, nil
	})
}

// contents is a revision and what is in force, as of one moment.
type contents struct {
	book         *book
	entry        *Entry
	active, next *topospec.Spec
}

func (s *Service) contents(ctx context.Context, number uint64) (*contents, error) {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, explain(err)
	}
	c := &contents{}
	if c.book, err = s.load(ctx, snap); err != nil {
		return nil, unreadable(err)
	}
	if c.entry, err = c.book.entry(number); err != nil {
		return nil, explain(err)
	}
	if c.next, err = s.content(ctx, snap, &c.entry.Entry); err == nil {
		c.active, err = s.activeContent(ctx, snap, c.book)
	}
	if err != nil {
		return nil, unreadable(err)
	}
	return c, nil
}

// Validate returns what is wrong or suspicious in a revision, without looking at the fabric.
func (s *Service) Validate(ctx context.Context, actor string, number uint64) (*v1.TopospecCheck, error) {
	c, err := s.contents(ctx, number)
	if err != nil {
		return nil, err
	}
	out := &v1.TopospecCheck{
		Fabric: c.entry.Fabric, Revision: number, Digest: c.entry.Digest.String(), Devices: c.entry.Devices, Links: c.entry.Links,
		Expected: c.entry.Expected, Findings: []v1.TopospecFinding{}, Refused: c.standing(),
	}
	for _, f := range lint.Check(c.next) {
		out.Findings = append(out.Findings, v1.TopospecFinding{Rule: string(f.Rule), Line: f.Line, Object: f.Object, Text: f.Text})
	}
	if c.active != nil {
		out.Changed = diff.Compare(c.active, c.next, diff.Everything).Links()
	}
	outcome := fmt.Sprintf("%d findings", len(out.Findings))
	for _, r := range out.Refused {
		outcome += "; refused by " + r.Guard
	}
	return out, s.note(ctx, actor, number, "validate", outcome)
}

// standing returns the guards that refuse a revision whatever the fabric shows.
func (c *contents) standing() []v1.TopospecRefusal {
	out := []v1.TopospecRefusal{}
	add := func(g simulate.Guard, do, format string, args ...any) {
		out = append(out, v1.TopospecRefusal{Guard: string(g), Text: fmt.Sprintf(format, args...), Do: do})
	}
	if c.active == nil || c.active.Digest() == c.next.Digest() {
		return out
	}
	now := c.active.Revision()
	if a, b := now.Fabric, c.next.Revision().Fabric; a != b {
		add(simulate.GuardFabric, "check that the file is the one you meant", "it describes fabric %q, in force is %q", b, a)
	}
	if c.entry.Status == history.Draft && c.entry.Parent != c.active.Digest() {
		add(guardParent, "draft it again", "it was made from %s, which is not in force any more", c.entry.Parent.Short())
	}
	limit := min(now.Policy.Flips(c.active.NumActive()), c.next.Revision().Policy.Flips(c.next.NumActive()))
	if n := diff.Compare(c.active, c.next, diff.Everything).Links(); n > limit && c.book.head.Mode > topospec.Observe {
		add(simulate.GuardFlips, "activate it in steps, or approve a higher limit (policy max_flips) first; look whether the file is whole",
			"%d links are otherwise than in force, %d may change in one activation", n, limit)
	}
	return out
}

// guardParent refuses a draft that was made from what is not in force any more.
const guardParent simulate.Guard = "parent"

// Simulate returns what putting a revision into force would do to the fabric as it is seen now.
func (s *Service) Simulate(ctx context.Context, actor string, number uint64, in v1.TopospecSimulate) (*v1.TopospecSimulation, error) {
	c, err := s.foresee(ctx, number, in.Mode)
	if err != nil {
		return nil, err
	}
	return showSimulation(c.entry, c.report, c.at), s.note(ctx, actor, number, "simulate", outcomeOf(c.report))
}

// foreseen is what putting a revision into force would do.
type foreseen struct {
	*contents
	mode   topospec.Mode
	report *simulate.Report
	at     time.Time // the fabric was seen
}

// foresee simulates that a revision is put into force in a mode, "" for the present one.
func (s *Service) foresee(ctx context.Context, number uint64, mode string) (*foreseen, error) {
	c, err := s.contents(ctx, number)
	if err != nil {
		return nil, err
	}
	f := &foreseen{contents: c}
	if f.mode, err = modeOf(mode, s.present(c.book)); err != nil {
		return nil, err
	}
	if f.report, f.at, err = s.simulate(c, f.mode); err != nil {
		return nil, err
	}
	return f, nil
}

func outcomeOf(r *simulate.Report) string {
	text := fmt.Sprintf("mode %v: %d of %d expected links verified, %d ports would change, %d would be acted on, %d hosts, %d tenants",
		r.Mode, r.Verified, r.Expected, r.Flips, len(r.Hits), r.Hosts, len(r.Tenants))
	for _, x := range r.Refused {
		text += "; refused by " + string(x.Guard)
	}
	return text
}

// modeOf reads a mode; "" is the one that is given.
func modeOf(text string, otherwise topospec.Mode) (topospec.Mode, error) {
	if text == "" {
		return otherwise, nil
	}
	var m topospec.Mode
	if err := m.UnmarshalText([]byte(text)); err != nil {
		return 0, refuse(refusal.Invalid, "mode_unknown", "want observe, warn or enforce", "%v", err)
	}
	return m, nil
}

// matching returns an entry, if it is still what the caller saw.
func (b *book) matching(number uint64, match string) (*Entry, error) {
	e, err := b.entry(number)
	if err != nil {
		return nil, err
	}
	if !matches(match, b.version[number]) {
		return nil, refuse(refusal.Changed, v1.CodeChanged, "look at it again, then decide", "revision %d was changed since it was looked at", number)
	}
	return e, nil
}

// matches reports whether If-Match names a version.
func matches(match string, version int64) bool {
	return match == "" || match == "*" || strings.Trim(strings.TrimPrefix(match, "W/"), `"`) == versionOf(version)
}

func versionOf(v int64) string { return fmt.Sprintf("%d", v) }

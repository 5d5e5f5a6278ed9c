package topology

import (
	"context"
	"fmt"
	"strings"

	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/history"
	"portcullis/fabricsm/topospec/simulate"
)

// Activate puts an approved draft into force, or the revision in force into another
// mode. It is durable when it returns; the Subnet Manager takes it from there.
func (s *Service) Activate(ctx context.Context, actor string, number uint64, match string, in v1.TopospecActivate) (*v1.Topospec, error) {
	c, err := s.foresee(ctx, number, in.Mode)
	if err != nil {
		return nil, err
	}
	if err := s.opens(ctx, c); err != nil {
		return nil, err
	}
	mode, report := c.mode, c.report
	why := strings.TrimSpace(in.Reason)
	err = s.change(ctx, func(_ *store.Tx, b *book) (step, error) {
		if _, err := b.matching(number, match); err != nil {
			return step{}, err
		}
		if err := b.unmoved(c.book); err != nil {
			return step{}, err
		}
		was := b.head
		err := b.history.Activate(history.Step{
			Number: number, Mode: mode, By: history.Person(actor), Why: why, At: s.now(), Report: report, Active: c.active, Next: c.next,
		})
		if err != nil {
			return step{}, err
		}
		b.lead(c.entry, mode, actor, why, s)
		b.head.Watch = s.watch(&was, &b.head, c.next, report)
		return step{actor: actor, action: "activate", number: number, code: mode.String(), detail: why + "; " + outcomeOf(report)}, nil
	})
	if err != nil {
		return nil, err
	}
	s.o.Log.Warn("a declared topology is to be in force", "revision", number, "mode", mode, "actor", actor, "why", why)
	return s.Status(ctx)
}

// opens refuses a revision that is to be enforced if packets would pass under it that do not pass now. A way back is not asked: a
// person must get out of what is wrong.
func (s *Service) opens(ctx context.Context, c *foreseen) error {
	if s.o.Opens == nil || c.mode < topospec.Enforce {
		return nil
	}
	return s.o.Opens(ctx, c.next)
}

// Rollback puts a revision that was in force into force again. match is the version of
// what is in force, "" for any.
func (s *Service) Rollback(ctx context.Context, actor, match string, in v1.TopospecRollback) (*v1.Topospec, error) {
	seen, err := s.book(ctx)
	if err != nil {
		return nil, err
	}
	to, err := seen.history.Target(in.Revision)
	if err != nil {
		return nil, explain(err)
	}
	c, err := s.contents(ctx, to.Number)
	if err != nil {
		return nil, err
	}
	mode, err := modeOf(in.Mode, min(to.Mode, s.present(c.book)))
	if err != nil {
		return nil, err
	}
	if now := s.present(c.book); mode > now {
		return nil, refuse(refusal.Conflict, "topospec_refused", "roll back first, look at the score, then promote", "a rollback to mode %v from %v would promote", mode, now)
	}
	report, err := s.foretell(c, mode)
	if err != nil {
		return nil, err
	}
	why := strings.TrimSpace(in.Reason)
	err = s.change(ctx, func(_ *store.Tx, b *book) (step, error) {
		if !matches(match, b.headed) {
			return step{}, refuse(refusal.Changed, v1.CodeChanged, "look at it again: portcullis topospec status", "what is in force was changed since it was looked at")
		}
		if err := b.unmoved(c.book); err != nil {
			return step{}, err
		}
		from := b.head.Revision
		if _, err := b.history.Rollback(history.Step{Number: to.Number, Mode: mode, By: history.Person(actor), Why: why, At: s.now(), Report: report}); err != nil {
			return step{}, err
		}
		b.lead(c.entry, mode, actor, why, s)
		b.head.Back = true
		return step{actor: actor, action: "rollback", number: to.Number, code: mode.String(), detail: fmt.Sprintf("from revision %d: %s", from, why)}, nil
	})
	if err != nil {
		return nil, err
	}
	s.o.Log.Warn("the declared topology is rolled back", "revision", to.Number, "mode", mode, "actor", actor, "why", why)
	return s.Status(ctx)
}

// foretell simulates a way back. Where nothing is switched off, it need not be possible:
// a person must get out of what is wrong while the fabric is out of sight, too.
func (s *Service) foretell(c *contents, mode topospec.Mode) (*simulate.Report, error) {
	report, _, err := s.simulate(c, mode)
	if err != nil && mode < topospec.Enforce && refusal.IsKind(err, refusal.Unavailable) {
		return nil, nil
	}
	return report, err
}

// lead makes a revision what is wanted in force.
func (b *book) lead(e *Entry, mode topospec.Mode, by, why string, s *Service) {
	b.head = Head{Revision: e.Number, Digest: e.Digest, Mode: mode, By: by, Why: why, Since: s.now()}
}

// watch returns the time in which an activation is taken back if it makes things worse: none, if nothing was in force
// before or the mode became milder.
func (s *Service) watch(was, now *Head, next *topospec.Spec, report *simulate.Report) *Watch {
	if s.rules().Watch <= 0 || s.fromFile() || was.Revision == 0 || was.Revision == now.Revision && now.Mode < was.Mode {
		return nil
	}
	w := &Watch{Until: now.Since.Add(s.rules().Watch), Back: was.Revision, BackMode: was.Mode, Foretold: report.Verified, Allowance: s.allowance(next.NumActive())}
	if now.Mode == topospec.Enforce {
		w.Backbone, w.Foretold, w.Allowance = true, report.Backbone, s.allowance(report.Backbone)
	}
	return w
}

// unmoved refuses a step that was decided upon what is not in force any more.
func (b *book) unmoved(seen *book) error {
	if b.head.Revision != seen.head.Revision || b.head.Mode != seen.head.Mode || b.head.Digest != seen.head.Digest {
		return refuse(refusal.Conflict, "busy", "look at it again: portcullis topospec status", "another operator changed what is in force meanwhile")
	}
	return nil
}

package topology

import (
	"context"
	"errors"
	"fmt"
	"time"

	"portcullis/api/store"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/declared"
	"portcullis/fabricsm/topospec/history"
)

const (
	// retryPause is the rest after the store did not answer.
	retryPause = time.Second
	// sustained is how long the fabric must be worse for an activation to be taken back:
	// a link that trains again is no reason.
	sustained = 3 * time.Second
	// lookEvery is how often the fabric is looked at while it is watched and nothing
	// happens, and how long the rest is after the Subnet Manager took nothing.
	lookEvery = time.Second
)

// serviceName is the actor of a rollback.
const serviceName = "service"

// Give has the Subnet Manager put something into force. It stops trying after a moment, or when ctx ends, and reports
// whether it was taken.
type Give func(ctx context.Context, w Wanted) (taken bool)

// OnView takes that there is a new view of the Subnet Manager. It does not block.
func (s *Service) OnView() {
	s.mu.Lock()
	s.viewed++
	s.mu.Unlock()
	select {
	case s.views <- struct{}{}:
	default:
	}
}

// OnEvent takes an event of the Subnet Manager. It does not block.
func (s *Service) OnEvent(e sm.Event) {
	if r, ok := e.(*declared.TopologyRefused); ok && r.Revision != 0 {
		s.mu.Lock()
		s.refused, s.refusedAt = r, s.viewed
		s.mu.Unlock()
	}
}

// Run has the Subnet Manager follow what is wanted until ctx ends, and takes back an activation that makes things worse. It
// outlives every failure of the store: the topology in force stays. last is what the Subnet Manager was started with.
func (s *Service) Run(ctx context.Context, last Wanted, give Give) error {
	for ctx.Err() == nil {
		err := s.follow(ctx, &last, give)
		if ctx.Err() != nil {
			return nil
		}
		s.o.Log.Error("the declared topology does not follow the store; what is in force stays", "error", err, "retry_in", retryPause)
		s.say(err.Error())
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
		}
	}
	return nil
}

func (s *Service) say(broken string) {
	s.mu.Lock()
	s.broken = broken
	s.mu.Unlock()
	s.o.Problem(broken)
}

// follow passes each change of what is wanted to the Subnet Manager.
func (s *Service) follow(ctx context.Context, last *Wanted, give Give) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return err
	}
	changes := Heads().Watch(ctx, s.o.Store, snap.Revision)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	w := &watcher{s: s}
	for changed, taken := true, false; ; {
		if changed || !taken {
			if taken, err = s.pass(ctx, last, give); err != nil {
				return err
			}
			if w.head, err = s.head(ctx); err != nil {
				return err
			}
		}
		if err := w.look(ctx); err != nil {
			return err
		}
		changed = false
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case ev, ok := <-changes:
			if !ok || ev.Err != nil {
				return fmt.Errorf("watch of what is in force ended: %w", errors.Join(ev.Err, context.Cause(ctx)))
			}
			changed = true
		case <-s.views:
		case <-tick.C:
		}
	}
}

func (s *Service) head(ctx context.Context) (Head, error) {
	rec, err := Heads().Get(ctx, s.o.Store, headKey)
	if errors.Is(err, store.ErrNotFound) {
		return Head{}, nil
	}
	return rec.Value, err
}

// pass passes to the Subnet Manager what is wanted, if it has something else. A Subnet Manager that did not take it, since
// it is not attached, begins with what is wanted then. Until then it is read again each time, so that no outdated one is
// taken.
func (s *Service) pass(ctx context.Context, last *Wanted, give Give) (taken bool, err error) {
	now, err := s.Wanted(ctx)
	if err != nil {
		return false, err
	}
	s.say("")
	if now.same(last) || s.fromFile() {
		return true, nil
	}
	s.mu.Lock()
	s.refused = nil
	s.mu.Unlock()
	if !give(ctx, now) {
		return false, nil
	}
	*last = now
	return true, nil
}

func (w *Wanted) same(o *Wanted) bool {
	if w.Spec == nil || o.Spec == nil {
		return w.Spec == o.Spec
	}
	return w.Mode == o.Mode && w.Spec.Digest() == o.Spec.Digest()
}

// watcher looks at the fabric after an activation.
type watcher struct {
	s     *Service
	head  Head
	worse time.Time // since when it is; zero: it is not
}

// look takes an activation back if the Subnet Manager refused it, or the fabric is worse
// for it, and ends the watch when its time is over.
func (w *watcher) look(ctx context.Context) error {
	h := &w.head
	if h.Revision == 0 || w.s.o.Look == nil || w.s.fromFile() {
		return nil
	}
	placed := w.s.placed()
	if r := w.s.refusal(); r != nil && r.Revision == h.Revision && placed != nil && !h.isPlaced(placed) {
		return w.s.back(ctx, h, "the subnet manager refuses it: "+r.Reason)
	}
	if h.Watch == nil {
		return nil
	}
	now := w.s.now()
	over := !now.Before(h.Watch.Until)
	switch {
	case placed == nil:
		return nil // out of sight: nothing can be said
	case !h.isPlaced(placed):
		if over {
			return w.s.back(ctx, h, "the subnet manager did not put it into force")
		}
		return nil
	case !history.Worse(h.Watch.Foretold, h.Watch.counts(placed), h.Watch.Allowance):
		w.worse = time.Time{}
		if over {
			return w.s.kept(ctx, h, placed)
		}
		return nil
	case w.worse.IsZero():
		w.worse = now
		return nil
	case now.Sub(w.worse) < sustained:
		return nil
	}
	w.worse = time.Time{}
	return w.s.back(ctx, h, fmt.Sprintf("%d %s are verified, foretold were %d and at least %d must be", h.Watch.counts(placed), h.Watch.what(), h.Watch.Foretold, h.Watch.least()))
}

// refusal returns what the Subnet Manager refused, once a view shows what it has instead.
func (s *Service) refusal() *declared.TopologyRefused {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.viewed == s.refusedAt {
		return nil
	}
	return s.refused
}

// back takes an activation back, if it still is what is wanted.
func (s *Service) back(ctx context.Context, seen *Head, why string) error {
	s.mu.Lock()
	s.refused = nil
	s.mu.Unlock()
	if seen.Watch == nil {
		s.o.Log.Error("the subnet manager does not put the declared topology into force", "revision", seen.Revision, "reason", why)
		s.say(why)
		return nil
	}
	s.o.Log.Error("the declared topology is taken back", "revision", seen.Revision, "back_to", seen.Watch.Back, "mode", seen.Watch.BackMode, "reason", why)
	return s.change(ctx, func(_ *store.Tx, b *book) (step, error) {
		h := &b.head
		if h.Watch == nil || h.Revision != seen.Revision || h.Mode != seen.Mode || !h.Since.Equal(seen.Since) {
			return step{}, nil // another writer was quicker
		}
		to, mode, from := h.Watch.Back, h.Watch.BackMode, h.Revision
		in := history.Step{Number: to, Mode: mode, By: serviceName, Why: why, At: s.now()}
		var err error
		if to == from {
			err = b.history.Activate(in)
		} else {
			_, err = b.history.Rollback(in)
		}
		if err != nil {
			return step{}, err
		}
		e, err := b.entry(to)
		if err != nil {
			return step{}, err
		}
		b.lead(e, mode, serviceName, why, s)
		b.head.Back = true
		return step{actor: serviceName, action: "rollback", number: to, code: mode.String(), detail: fmt.Sprintf("from revision %d: %s", from, why)}, nil
	})
}

// kept ends the watch: the activation stands.
func (s *Service) kept(ctx context.Context, seen *Head, placed *declared.TopologyView) error {
	s.o.Log.Info("the declared topology is kept", "revision", seen.Revision, "verified_links", placed.Verified)
	return s.change(ctx, func(_ *store.Tx, b *book) (step, error) {
		h := &b.head
		if h.Watch == nil || h.Revision != seen.Revision || !h.Since.Equal(seen.Since) {
			return step{}, nil
		}
		h.Watch = nil
		return step{
			actor: serviceName, action: "keep", number: h.Revision, code: h.Mode.String(),
			detail: fmt.Sprintf("%d %s are verified, foretold were %d", seen.Watch.counts(placed), seen.Watch.what(), seen.Watch.Foretold),
		}, nil
	})
}

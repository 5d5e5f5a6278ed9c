package verifier

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"portcullis/api/audit"
	"portcullis/api/audit/chain"
	"portcullis/api/events"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

const (
	// pageSize is how many entries are read at once.
	pageSize = 250
	// minRest is the least pause between two pages. Beyond it a walk rests for restShare times as long as it worked.
	minRest   = 10 * time.Millisecond
	restShare = 9
	maxRest   = 5 * time.Second
	// retry is the pause after a verification that did not come to its end, or while another instance verifies.
	retry = 30 * time.Second
)

// Options say what is verified and how often. All but Shared, Now and OnState are required.
type Options struct {
	Store   *store.Store
	Every   time.Duration // from the end of one verification to the next
	Service string        // name of this instance
	Shared  bool          // other instances use the store, so that there are turns
	Log     *slog.Logger
	Now     func() time.Time // default time.Now
	OnState func(State)      // called after each verification that came to its end; nil: not
}

// State is what is known of the audit log.
type State struct {
	Good   time.Time          // when it was verified last and was whole; zero: not yet
	Head   chain.Head         // its end then
	Broken *chain.Break       // what is wrong with it, by the last verification that came to its end; nil: nothing that was not accepted
	Since  time.Time          // of Broken: when it was found first
	Open   []chain.Break      // Broken and those behind it, chain.MaxBreaks at most
	Taken  []chain.Acceptance // breaks that operators accepted
	Err    error              // why the last attempt did not come to its end; nil: it did

	Whole, NotWhole, Failed uint64 // attempts since the start, by what became of them
}

// Verifier verifies the audit log of a store.
type Verifier struct {
	o    Options
	told *chain.Break  // by the last event; nil: none, or that the log is whole again
	soon chan struct{} // has a token when the log is to be verified now

	mu    sync.Mutex
	state State
}

// New makes a Verifier.
func New(o Options) *Verifier {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Verifier{o: o, soon: make(chan struct{}, 1)}
}

// State returns what is known of the log.
func (v *Verifier) State() State {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.state
}

// Run verifies the log now and then every Options.Every, until ctx ends.
func (v *Verifier) Run(ctx context.Context) {
	for {
		wait := v.o.Every
		if !v.Verify(ctx) {
			wait = min(wait, retry)
		}
		select {
		case <-time.After(wait):
		case <-v.soon:
		case <-ctx.Done():
			return
		}
	}
}

// Verify verifies the log once, and reports whether that came to its end.
func (v *Verifier) Verify(ctx context.Context) bool {
	t, err := v.take(ctx)
	if err == nil {
		err = v.verify(ctx, t)
		t.end(ctx)
	}
	if ctx.Err() != nil {
		return false
	}
	if errors.Is(err, errTaken) {
		v.o.Log.Debug("the audit log is not verified now", "reason", err)
		return false
	}
	if err == nil && v.o.OnState != nil {
		v.o.OnState(v.State())
	}
	if err != nil {
		v.mu.Lock()
		v.state.Err = err
		v.state.Failed++
		v.mu.Unlock()
		v.o.Log.Warn("the audit log could not be verified; tried again", "error", err, "retry_in", retry)
	}
	return err == nil
}

// verify walks the log and notes what it found. The error is why that is not known.
func (v *Verifier) verify(ctx context.Context, t *turn) error {
	before, err := v.before(ctx)
	if err != nil {
		return err
	}
	check := chain.Check{Anchors: before}
	started, worked := time.Now(), time.Now()
	log, err := audit.Follow(ctx, v.o.Store, audit.Walk{
		Page: pageSize, Each: check.Add,
		Pause: func(ctx context.Context, _ chain.Head) error {
			defer func() { worked = time.Now() }()
			return rest(ctx, time.Since(worked), t)
		},
	})
	if err != nil {
		return err
	}
	head := log.Head()
	var open []chain.Break
	for _, f := range log.Breaks() {
		if f.Accepted == nil {
			open = append(open, f.Break)
		}
	}
	if len(open) == 0 {
		if differ := check.End(head); differ != nil {
			was := before[len(before)-1]
			open = []chain.Break{{
				Cause: chain.RolledBack, Seq: was.Seq, Text: differ.Error(), From: chain.Head{Seq: was.Seq, Hash: was.Hash, Branch: was.Branch}, To: head,
			}}
		}
	}
	v.mu.Lock()
	v.state.Taken, v.state.Open = log.Accepted(), open
	v.mu.Unlock()
	if len(open) > 0 {
		return v.notWhole(ctx, &open[0])
	}
	v.o.Log.Info("the audit log is whole", "entries", head.Seq, "hash", head.Hash, "accepted_breaks", len(log.Accepted()), "took", time.Since(started).Round(time.Millisecond))
	return v.whole(ctx, head)
}

// rest pauses a walk for its share, and keeps the turn.
func rest(ctx context.Context, worked time.Duration, t *turn) error {
	select {
	case <-time.After(min(max(minRest, restShare*worked), maxRest)):
		return t.keep(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// before returns what is known of the log that was verified last: by this process, and by any that used the store.
func (v *Verifier) before(ctx context.Context) ([]chain.Anchor, error) {
	now := v.State()
	noted, err := lastVerified(ctx, v.o.Store)
	if err != nil {
		return nil, err
	}
	var out []chain.Anchor
	for _, m := range []mark{{Time: now.Good, Head: now.Head}, noted} {
		if m.Head.Seq > 0 {
			out = append(out, chain.Anchor{Time: m.Time, Branch: m.Head.Branch, Seq: m.Head.Seq, Hash: m.Head.Hash})
		}
	}
	if noted.Time.After(now.Good) {
		v.mu.Lock()
		v.state.Good, v.state.Head = noted.Time, noted.Head
		v.mu.Unlock()
	}
	return chain.Sorted(out), nil
}

// notWhole notes that the log is not whole. The event comes once for each finding.
func (v *Verifier) notWhole(ctx context.Context, b *chain.Break) error {
	now := v.o.Now().UTC().Round(0)
	v.o.Log.Error("the audit log is not whole", "cause", b.Cause, "entry", b.Seq, "found", b.Text)
	v.mu.Lock()
	if v.state.Broken == nil {
		v.state.Since = now
	}
	v.state.Broken, v.state.Err = b, nil
	v.state.NotWhole++
	v.mu.Unlock()
	if v.told != nil && v.told.Cause == b.Cause && v.told.Seq == b.Seq { // the text changes as the log goes on
		return nil
	}
	err := v.report(ctx, now, v1.Event{
		Type: events.AuditBroken, Cause: b.Cause, Expected: "each entry as it was written, and the head that was verified before", Seen: b.Text,
		Do: "keep a copy of the state as it is, find out who wrote to the store, and compare with anchors: portcullis audit verify --anchor FILE; once that is known: portcullis audit accept-break",
	}, nil)
	if err == nil {
		v.told = b
	}
	return err
}

// whole notes that the log is whole up to head. State says so once the store has it: a service that ends in between says the
// same when it starts again.
func (v *Verifier) whole(ctx context.Context, head chain.Head) error {
	now := v.o.Now().UTC().Round(0)
	if err := v.noteWhole(ctx, now, head); err != nil {
		return err
	}
	v.told = nil
	v.mu.Lock()
	v.state.Good, v.state.Head, v.state.Broken, v.state.Since, v.state.Err = now, head, nil, time.Time{}, nil
	v.state.Whole++
	v.mu.Unlock()
	return nil
}

// noteWhole records that the log is whole up to head, with an event if it was reported not to be.
func (v *Verifier) noteWhole(ctx context.Context, now time.Time, head chain.Head) error {
	note := func(tx *store.Tx) error {
		return marks().Put(tx, markKey, mark{Time: now, By: v.o.Service, Head: head})
	}
	if v.told == nil {
		_, err := v.o.Store.Update(ctx, note)
		return wrapNote(err)
	}
	return v.report(ctx, now, v1.Event{
		Type: events.AuditWhole, Cause: "verified", Expected: "each entry as it was written", Seen: fmt.Sprintf("%d entries, and before: %s", head.Seq, v.told.Text),
	}, note)
}

// report records an event, together with what note writes.
func (v *Verifier) report(ctx context.Context, now time.Time, e v1.Event, note func(*store.Tx) error) error {
	e.By = events.ByService
	_, err := v.o.Store.Update(ctx, func(tx *store.Tx) error {
		if note != nil {
			if err := note(tx); err != nil {
				return err
			}
		}
		return events.Record(ctx, tx, now, e)
	})
	return wrapNote(err)
}

func wrapNote(err error) error {
	if err != nil {
		return fmt.Errorf("note what was found of the audit log: %w", err)
	}
	return nil
}

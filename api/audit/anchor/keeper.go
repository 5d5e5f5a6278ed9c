package anchor

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"portcullis/api/audit"
	"portcullis/api/audit/chain"
	"portcullis/api/events"
	"portcullis/api/review"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

const (
	// minPause and maxPause bound the pause after an attempt that failed.
	minPause = time.Second
	maxPause = 5 * time.Minute
	// readTimeout bounds the wait for anchors at a start.
	readTimeout = 15 * time.Second
)

// Options say what is anchored where. All but Alone and Now are required.
type Options struct {
	Store   *store.Store
	Sinks   []Sink // with names of their own
	Every   time.Duration
	Tell    time.Duration // after how long without an anchor there is an event
	Service string        // name of this instance
	// Alone: no other process uses the store, so that Judge may remove what others rely on.
	Alone bool
	Log   *slog.Logger
	Now   func() time.Time // default time.Now
}

// Keeper anchors the head of the audit log.
type Keeper struct {
	o     Options
	feeds []*feed
	sign  func(ctx context.Context, content []byte) (string, error) // nil: anchors are not signed

	mu     sync.Mutex
	newest chain.Anchor // of those that this instance wrote
	held   bool         // the state is in review because it was rolled back: nothing is anchored
}

// New makes a Keeper.
func New(o Options) *Keeper {
	if o.Now == nil {
		o.Now = time.Now
	}
	k := &Keeper{o: o}
	for _, s := range o.Sinks {
		k.feeds = append(k.feeds, &feed{sink: s, news: make(chan struct{}, 1)})
	}
	return k
}

// readAll asks all sinks that can be read, together, and returns what they have in the order of the sinks. A sink that does not
// answer in time is left out, and the log says so.
func (k *Keeper) readAll(ctx context.Context) []found {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	type answer struct {
		found
		err error
	}
	answers, asked := make(chan answer, len(k.o.Sinks)), map[string]bool{}
	for _, s := range k.o.Sinks {
		r, ok := s.(Reader)
		if w, is := s.(*Webhook); !ok || is && !w.Reads() {
			continue
		}
		asked[s.Name()] = true
		go func() { // a file on a disk that hangs is not waited for
			list, err := r.Read(ctx)
			answers <- answer{found{s.Name(), list}, err}
		}()
	}
	got := map[string]found{}
	for len(asked) > 0 && ctx.Err() == nil {
		select {
		case a := <-answers:
			delete(asked, a.source)
			if a.err != nil {
				k.o.Log.Error("anchors of the audit log are not readable", "anchor", a.source, "read", len(a.anchors), "error", a.err)
			}
			got[a.source] = a.found
		case <-ctx.Done():
		}
	}
	var out []found
	for _, s := range k.o.Sinks {
		if f, ok := got[s.Name()]; ok {
			out = append(out, f)
		} else if asked[s.Name()] {
			k.o.Log.Error("anchors of the audit log are not readable", "anchor", s.Name(), "error", context.Cause(ctx))
		}
	}
	return out
}

// Run anchors the head of the log after each time that it moved, until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	k.before(ctx)
	for _, f := range k.feeds {
		all.Go(func() { k.feed(ctx, f) })
	}
	tick := time.NewTicker(k.o.Every)
	defer tick.Stop()
	for {
		if err := k.look(ctx); err != nil && ctx.Err() == nil {
			k.o.Log.Error("the audit log is not anchored now", "error", err)
		}
		k.report(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// look has the head of the log anchored if it moved and the log is still what was anchored of it.
func (k *Keeper) look(ctx context.Context) error {
	snap, err := k.o.Store.Snapshot(ctx)
	if err != nil {
		return err
	}
	head, err := audit.Latest(ctx, snap)
	if err != nil {
		return err
	}
	mark, err := review.Current(ctx, snap)
	if err != nil {
		return err
	}
	k.mu.Lock()
	newest := k.newest
	k.held = mark != nil && mark.RolledBack != nil
	held := k.held
	k.mu.Unlock()
	if held || head.Seq == 0 {
		return nil
	}
	if newest.Seq > 0 {
		back, err := compare(ctx, snap, head, []found{{"this instance", []chain.Anchor{newest}}})
		if err != nil {
			return err
		}
		if back != nil {
			return k.rolledBack(ctx, back)
		}
	}
	origin, err := audit.Origin(ctx, snap)
	if err != nil {
		return err
	}
	now := k.o.Now()
	for _, f := range k.feeds {
		f.offer(head, origin, now)
	}
	return nil
}

// SignWith has anchors signed by sign. It must be called before Run.
func (k *Keeper) SignWith(sign func(ctx context.Context, content []byte) (string, error)) {
	k.sign = sign
}

// anchor makes and signs the anchor of a head. One without a signature shows a roll-back as well, so a key that does not
// open holds up nothing.
func (k *Keeper) anchor(ctx context.Context, head chain.Head, origin string) *chain.Anchor {
	a := &chain.Anchor{
		Time: k.o.Now().UTC().Round(0), Service: k.o.Service, Origin: origin, Branch: head.Branch, Seq: head.Seq, Hash: head.Hash,
	}
	if k.sign == nil {
		return a
	}
	content, err := a.Content()
	var jws string
	if err == nil {
		jws, err = k.sign(ctx, content)
	}
	if err != nil {
		k.o.Log.Error("an anchor of the audit log is not signed", "error", err)
		return a
	}
	a.JWS = jws
	return a
}

// write anchors what a feed has to.
func (k *Keeper) write(ctx context.Context, f *feed) error {
	head, origin, due := f.due()
	if !due || k.Held() {
		return nil
	}
	a := k.anchor(ctx, head, origin)
	err := f.sink.Write(ctx, a)
	if ctx.Err() != nil && err != nil {
		return context.Cause(ctx)
	}
	if failed, back := f.wrote(head, err); failed {
		k.o.Log.Warn("the audit log is not anchored", "anchor", f.sink.Name(), "error", err)
	} else if back {
		k.o.Log.Info("the audit log is anchored again", "anchor", f.sink.Name())
	}
	if err == nil {
		k.mu.Lock()
		if a.Later(&k.newest) {
			k.newest = *a
		}
		k.mu.Unlock()
	}
	return err
}

// feed writes to one sink until ctx ends.
func (k *Keeper) feed(ctx context.Context, f *feed) {
	pause := minPause
	for {
		err := k.write(ctx, f)
		if err == nil {
			pause = minPause
			select {
			case <-f.news:
			case <-ctx.Done():
				return
			}
			continue
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, maxPause)
		case <-ctx.Done():
			return
		}
	}
}

// Flush anchors the head as it is now, once and in all sinks together, until ctx ends. It is for the end of a program,
// after Run, while the store still answers: otherwise the last decisions would be in no anchor.
func (k *Keeper) Flush(ctx context.Context) {
	if err := k.look(ctx); err != nil {
		k.o.Log.Error("the end of the audit log is not anchored", "error", err)
		return
	}
	done := make(chan struct{}, len(k.feeds))
	for _, f := range k.feeds {
		go func() {
			// A failure is in the log, as any other.
			_ = k.write(ctx, f)
			done <- struct{}{}
		}()
	}
	for range k.feeds {
		select {
		case <-done:
		case <-ctx.Done():
			k.o.Log.Error("the end of the audit log is not anchored everywhere", "error", context.Cause(ctx))
			return
		}
	}
}

// inSink is what an event expects of a sink.
func inSink(name string) string { return "the head of the audit log in " + name }

// before takes up what an earlier run reported, so that it ends when its sink is written again or, where no other process has sinks of its
// own, is not configured any more. Other instances may have files of the same name.
func (k *Keeper) before(ctx context.Context) {
	kinds, _ := events.KindOf(events.AnchorsFailing)
	for _, cause := range kinds.Causes {
		was, err := events.Lasting(ctx, k.o.Store, events.AnchorsFailing, cause)
		if err != nil && ctx.Err() == nil {
			k.o.Log.Error("what was reported of anchors before was not read", "error", err)
		}
		if was == nil {
			continue
		}
		named := false
		for _, f := range k.feeds {
			if f.sink.Kind() == cause && was.Expected == inSink(f.sink.Name()) {
				named = true
				f.toldOf(k.o.Alone || cause != "file")
			}
		}
		if named || !k.o.Alone {
			continue
		}
		e := v1.Event{Type: events.AnchorsWritten, By: events.ByService, Cause: cause, Expected: was.Expected, Seen: "the configuration does not name the place any more"}
		if _, err := k.o.Store.Update(ctx, func(tx *store.Tx) error { return events.Record(ctx, tx, k.o.Now(), e) }); err != nil && ctx.Err() == nil {
			k.o.Log.Error("that a place of anchors is not configured any more was not recorded", "error", err)
		}
	}
}

// othersFail reports whether another sink of the kind was reported: the event that one has anchors again ends what was reported of all.
func (k *Keeper) othersFail(but *feed) bool {
	for _, f := range k.feeds {
		if f != but && f.sink.Kind() == but.sink.Kind() && f.isTold() {
			return true
		}
	}
	return false
}

// report records the event that a sink has no anchor for long, or has some again.
func (k *Keeper) report(ctx context.Context) {
	for _, f := range k.feeds {
		kind, seen, due := f.toTell(k.o.Now(), k.o.Tell)
		if !due {
			continue
		}
		e := v1.Event{
			Type: kind, By: events.ByService, Cause: f.sink.Kind(), Expected: inSink(f.sink.Name()), Seen: seen,
		}
		if kind == events.AnchorsWritten && k.othersFail(f) {
			f.toldOf(false)
			continue
		}
		if kind == events.AnchorsFailing {
			e.Do = "see to it: a state that is rolled back meanwhile is not noticed by it"
		}
		_, err := k.o.Store.Update(ctx, func(tx *store.Tx) error { return events.Record(ctx, tx, k.o.Now(), e) })
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				k.o.Log.Error("that the audit log is not anchored was not recorded", "error", err)
			}
			continue
		}
		f.toldOf(kind == events.AnchorsFailing)
	}
}

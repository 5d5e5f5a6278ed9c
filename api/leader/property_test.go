package leader_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/leader"
	"portcullis/api/store"
	"portcullis/api/store/memory"
)

// written is a record that leaders write: the epoch of the last of them.
type written struct {
	Epoch uint64 `json:"epoch"`
}

func writings() store.Collection[written] { return store.NewCollection[written]("written", 1) }

// trial is three instances on machines that fail, and what came of it.
type trial struct {
	mu     sync.Mutex
	terms  []*term
	epochs []uint64 // in which records were written, in order
	wrong  []string
}

type term struct {
	*leader.Term
	on *faulty
}

func (r *trial) wrongf(format string, a ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.wrong) < 5 {
		r.wrong = append(r.wrong, fmt.Sprintf(format, a...))
	}
}

// holders looks which instances run and believe that they hold the lease.
func (r *trial) holders() (holding []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.terms {
		if !t.on.isPaused() && t.Left() > 0 {
			holding = append(holding, t.Epoch)
		}
	}
	return holding
}

// lead writes a record as often as it can, and does not look whether it holds the lease.
func (r *trial) lead(s *store.Store, f *faulty) func(context.Context, *leader.Term) error {
	return func(ctx context.Context, t *leader.Term) error {
		r.mu.Lock()
		if slices.ContainsFunc(r.terms, func(o *term) bool { return o.Epoch == t.Epoch }) {
			r.wrong = append(r.wrong, fmt.Sprintf("epoch %d twice", t.Epoch))
		}
		r.terms = append(r.terms, &term{t, f})
		r.mu.Unlock()
		for ctx.Err() == nil {
			time.Sleep(f.upTo(200 * time.Millisecond))
			short, cancel := context.WithTimeout(ctx, ttl)
			_, err := s.Update(short, func(tx *store.Tx) error {
				if err := t.Guard(short, tx); err != nil {
					return err
				}
				return writings().Put(tx, "last", written{t.Epoch})
			})
			cancel()
			_ = err // what landed is read in the end
		}
		return nil
	}
}

// run plays one trial. The clocks of the machines differ by up to a twentieth.
func (r *trial) run(t *testing.T, seed uint64, halts bool) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(time.Now)
		ctx, cancel := context.WithTimeout(t.Context(), length)
		defer cancel()
		var all sync.WaitGroup
		for i := range 3 {
			f := newFaulty(b, seed, i)
			s := store.New(f, "")
			c := leader.New(leader.Options{
				Store: s, Role: "sm", Instance: string(rune('a' + i)), TTL: ttl, Margin: margin,
				Clock: f.clock(0.95+0.05*float64(i), halts),
			})
			all.Go(func() {
				if err := c.Run(ctx, r.lead(s, f)); err != nil {
					r.wrongf("%v", err)
				}
			})
		}
		for tick := time.NewTicker(7 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			if h := r.holders(); len(h) > 1 {
				r.wrongf("epochs %v hold the lease at once", h)
			}
			if ctx.Err() == nil && nearEnd(ctx) && len(r.holders()) == 0 {
				r.wrongf("none leads though nothing fails any longer")
			}
		}
		all.Wait()
		r.audit(t, store.New(b, ""))
	})
}

// nearEnd reports whether nothing has failed for a while, in a trial that ends with ctx.
func nearEnd(ctx context.Context) bool {
	end, _ := ctx.Deadline()
	return time.Until(end) < time.Second
}

// audit reads what was written: no epoch may follow a higher one.
func (r *trial) audit(t *testing.T, s *store.Store) {
	watch, cancel := context.WithCancel(t.Context())
	defer cancel()
	snap, err := s.Snapshot(watch)
	if err != nil {
		t.Fatal(err)
	}
	last := uint64(0)
	for ev := range writings().Watch(watch, s, 0) {
		if ev.Err != nil {
			t.Fatal(ev.Err)
		}
		if ev.Value.Epoch < last {
			r.wrongf("epoch %d wrote after epoch %d", ev.Value.Epoch, last)
		}
		last = ev.Value.Epoch
		r.epochs = append(r.epochs, last)
		if now, err := writings().Get(watch, s, "last"); err == nil && now.Modified == ev.Modified || ev.Modified >= snap.Revision {
			break
		}
	}
}

// TestNeverTwo: whatever is lost, delayed, cut and paused, no two instances hold the lease at
// once, no record is written by a leader after one of a later epoch, and when all works
// again one leads.
func TestNeverTwo(t *testing.T) {
	terms, records := 0, 0
	for seed := range uint64(150) {
		r := &trial{}
		r.run(t, seed, false)
		for _, w := range r.wrong {
			t.Errorf("seed %d: %s", seed, w)
		}
		terms, records = terms+len(r.terms), records+len(r.epochs)
	}
	if terms < 300 || records < 5000 {
		t.Errorf("%d terms and %d records in all: the trials try too little", terms, records)
	}
	t.Logf("%d terms, %d records", terms, records)
}

// TestClockThatHalts: by a clock that stands still in pauses, two instances would hold the
// lease at once. The trials notice that. Records are fenced all the same.
func TestClockThatHalts(t *testing.T) {
	two := false
	for seed := uint64(0); !two && seed < 500; seed++ {
		r := &trial{}
		r.run(t, seed, true)
		for _, w := range r.wrong {
			var a, b uint64
			if n, _ := fmt.Sscanf(w, "epochs [%d %d] hold", &a, &b); n == 2 {
				two = true
			} else {
				t.Errorf("seed %d: %s", seed, w)
			}
		}
	}
	if !two {
		t.Error("no trial had two holders: the trials would not notice them")
	}
}

// TestTermGuard: a term that is over writes no record, also while another has begun.
func TestTermGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(time.Now)
		f := steady(b)
		stop := make(chan struct{})
		first, second := candidate(store.New(b, ""), f, "first"), candidate(store.New(b, ""), f, "second")
		write := func(term *leader.Term) error {
			_, err := store.New(b, "").Update(t.Context(), func(tx *store.Tx) error {
				if err := term.Guard(t.Context(), tx); err != nil {
					return err
				}
				return writings().Put(tx, "x", written{term.Epoch})
			})
			return err
		}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		terms := make(chan *leader.Term, 2)
		all.Go(func() {
			if err := first.Run(ctx, func(ctx context.Context, t *leader.Term) error {
				terms <- t
				select {
				case <-stop:
				case <-ctx.Done():
				}
				return errEnough
			}); !errors.Is(err, errEnough) {
				t.Errorf("Run returns %v, want the error of lead", err)
			}
		})
		one := <-terms
		all.Go(func() {
			if err := second.Run(ctx, func(ctx context.Context, t *leader.Term) error { terms <- t; <-ctx.Done(); return nil }); err != nil {
				t.Error(err)
			}
		})
		if err := write(one); err != nil {
			t.Errorf("the leader cannot write: %v", err)
		}
		began := time.Now()
		close(stop)
		two := <-terms
		if took := time.Since(began); took > 0 {
			t.Errorf("the other leads %v after the lease was given back, want at once", took)
		}
		if one.Left() != 0 || two.Left() == 0 || two.Epoch <= one.Epoch {
			t.Errorf("left %v and %v in epochs %d and %d", one.Left(), two.Left(), one.Epoch, two.Epoch)
		}
		if err := write(one); !errors.Is(err, leader.ErrDeposed) {
			t.Errorf("a term that is over writes: %v, want ErrDeposed", err)
		}
		if err := write(two); err != nil {
			t.Errorf("the leader cannot write: %v", err)
		}
		cancel()
		all.Wait()
	})
}

var errEnough = errors.New("enough")

func candidate(s *store.Store, f *faulty, name string) *leader.Candidate {
	return leader.New(leader.Options{Store: s, Role: "sm", Instance: name, TTL: ttl, Margin: margin, Clock: f.clock(1, false)})
}

// TestKilled: another instance leads within the time of a lease.
func TestKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(time.Now)
		f := steady(b)
		dead := steady(b)
		one, two := candidate(store.New(dead, ""), dead, "one"), candidate(store.New(b, ""), f, "two")
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		terms := make(chan *leader.Term, 2)
		lead := func(ctx context.Context, t *leader.Term) error { terms <- t; <-ctx.Done(); return nil }
		for _, c := range []*leader.Candidate{one, two} {
			all.Go(func() { _ = c.Run(ctx, lead) })
			if c == one {
				<-terms
			}
		}
		time.Sleep(5 * ttl)
		dead.cutOff(time.Hour) // and it is not heard of again
		began := time.Now()
		if term := <-terms; term.Instance != "two" || time.Since(began) > ttl+10*time.Millisecond {
			t.Errorf("%s leads after %v, want two within %v", term.Instance, time.Since(began), ttl)
		}
		if s, left := one.State(); left != 0 || !s.Leads {
			t.Errorf("cut off: %+v with %v left, want that it leads, as far as it knows, and nothing left", s, left)
		}
		if s, left := two.State(); left <= 0 || s != (leader.State{Leader: "two", Epoch: 2, Leads: true}) {
			t.Errorf("%+v with %v left", s, left)
		}
		cancel()
		all.Wait()
	})
}

// TestStepDown: a leader that steps down revokes its lease, and another instance takes one.
func TestStepDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(time.Now)
		f := steady(b)
		one, two := candidate(store.New(b, ""), f, "one"), candidate(store.New(b, ""), f, "two")
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		terms := make(chan *leader.Term, 2)
		for _, c := range []*leader.Candidate{one, two} {
			all.Go(func() {
				if err := c.Run(ctx, func(ctx context.Context, t *leader.Term) error { terms <- t; <-ctx.Done(); return nil }); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		if term := <-terms; term.Instance != "one" {
			t.Fatalf("%s leads, want one", term.Instance)
		}
		if err := two.StepDown(t.Context(), 0); err == nil {
			t.Error("an instance that does not lead steps down")
		}
		if err := one.StepDown(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if term := <-terms; term.Instance != "two" {
			t.Errorf("%s leads, want two", term.Instance)
		}
		time.Sleep(5 * ttl)
		if s, _ := one.State(); s != (leader.State{Leader: "two", Epoch: 2}) {
			t.Errorf("the one that stepped down: %+v", s)
		}
		cancel()
		all.Wait()
	})
}

// TestBoottime: the clock runs, and allocates nothing.
func TestBoottime(t *testing.T) {
	a := leader.Boottime()
	if b := leader.Boottime(); a <= 0 || b < a {
		t.Errorf("%d, then %d", a, b)
	}
	if n := testing.AllocsPerRun(100, func() { leader.Boottime() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

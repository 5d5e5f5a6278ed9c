package proving

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"portcullis/api/isolation"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/pause"
	"portcullis/fabricsm/proof/reader"
	"portcullis/fabricsm/readback"
)

// Pace says how the service examines all tenants by itself.
type Pace struct {
	Every      time.Duration // from one examination to the next; 0: it makes none
	Rate       int           // requests a second, at most
	Membership bool          // what is assumed; see v1.IsolationQuery
}

// agesOf is after how many times Every a result counts no more.
const agesOf = 3

// MaxAge is how old a result may be that still counts.
func (p *Pace) MaxAge() time.Duration {
	if p.Every == 0 {
		return maxAgeUnpaced
	}
	return agesOf * p.Every
}

const (
	// firstAfter is how long an instance leads before it examines all tenants by itself.
	firstAfter = time.Minute
	// lookEvery is how often the fabric is looked at that cannot be examined yet.
	lookEvery = 5 * time.Second
	// againAfter is the pause after an examination that was ended, or not begun, in favor of a request.
	againAfter = 30 * time.Second
	// retryMin is the first pause after an examination without a result. It doubles up to Pace.Every.
	retryMin = time.Minute
	// leastTime is how long one examination may take in any case.
	leastTime = 10 * time.Minute
	// pacedWindow is how many requests are out at a time.
	pacedWindow = 8
)

// Keeper has a Prover examine all tenants again and again.
type Keeper struct {
	Prover *Prover
	// Settled reports whether this Subnet Manager is master, and has discovered and settled the fabric.
	Settled func() bool

	declared *isolation.Intent // when it was looked last whether something was touched
	looks    int               // in a row at which something else was declared than before, and not taken in
}

// Keep examines all tenants, unless Pace.Every is 0, and records events of what changes. It returns when ctx ends, which is to be while
// this instance leads.
func (k *Keeper) Keep(ctx context.Context) {
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { k.lead(ctx) })
	beside.Go(func() { k.Prover.written.Run(ctx) })
	if every := k.Prover.Pace.Every; every > 0 {
		beside.Go(func() { k.follow(ctx) })
		k.keep(ctx, every)
	}
}

func (k *Keeper) keep(ctx context.Context, every time.Duration) {
	s := schedule{every: every}
	for wait := firstAfter; pause.For(ctx, wait); {
		if !k.Settled() {
			wait = lookEvery
			continue
		}
		if wait = k.due(); wait > 0 {
			continue
		}
		wait = s.next(k.examine(ctx))
	}
}

// due returns how long the newest result is good for, whatever asked for it.
func (k *Keeper) due() time.Duration {
	found, begun := k.Prover.Last()
	if found == nil {
		return 0
	}
	every := k.Prover.Pace.Every
	return min(every, max(0, every-k.Prover.Now().Sub(begun)))
}

// schedule says when the next examination is.
type schedule struct {
	every  time.Duration
	failed int // in a row
}

// next returns the pause after an examination.
func (s *schedule) next(err error) time.Duration {
	switch {
	case err == nil:
		s.failed = 0
		return s.every
	case errors.Is(err, errYielded), errors.Is(err, errBusy):
		return min(againAfter, s.every)
	default:
		s.failed++
		return min(retryMin<<min(s.failed-1, 20), s.every)
	}
}

// errMeanwhile is why a result was dropped.
var errMeanwhile = errors.New("the Subnet Manager changed the fabric while it was read, and not everything was read")

// examine examines all tenants once.
func (k *Keeper) examine(ctx context.Context) error {
	p := k.Prover
	limit := max(p.Pace.Every, leastTime)
	bounded, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it was not over after %v: raise verify.rate", limit))
	defer cancel()
	q := v1.IsolationQuery{Membership: p.Pace.Membership}
	r, err := p.reading(bounded, q, itself)
	var out *v1.Isolation
	if err == nil {
		out = r.proven.Report(q)
		if out.Verdict == v1.IsolationUnknown && !k.Settled() {
			err = errMeanwhile
		}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err() // this instance does not lead any more
	case errors.Is(err, errYielded), errors.Is(err, errBusy):
		p.Log.Debug("the service examines the isolation of tenants later", "reason", err)
		return err
	case err != nil:
		p.Log.Warn("the service did not examine the isolation of tenants", "error", err)
		p.noteFailure(err)
		return err
	}
	p.note(r, out, q, itself)
	p.Log.Info("the service examined the isolation of tenants", "verdict", out.Verdict, "reason", out.Reason,
		"isolated", out.Pairs.Isolated, "leaks", out.Pairs.Leaks, "unknown", out.Pairs.Unknown, "requests", out.Bounds.Requests)
	return nil
}

// options returns how the fabric is read.
func (p *Prover) options(read reader.Options, why origin, hurry <-chan struct{}) readback.Options {
	o := readback.Options{Reader: read, Timeout: p.Timeout, Hurry: hurry}
	if why == itself {
		o.Rate, o.Reader.Window = p.Pace.Rate, pacedWindow
	}
	return o
}

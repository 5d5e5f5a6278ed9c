package proving

import (
	"context"
	"errors"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/proving/touched"
	"portcullis/fabricsm/pause"
)

const (
	// followEvery is how often the service looks whether something was touched since the newest reading.
	followEvery = 2 * time.Second
	// followMax bounds the pause after readings of it that failed.
	followMax = time.Minute
	// followRest is how many times as long the pause is as what it follows took: so changes without end take at most a sixth of the time.
	followRest = 5
	// mostLooks is how often in a row something else may be declared than at the look before, until it is taken in all the same.
	mostLooks = 5
)

// follow keeps the newest proof of all tenants current until ctx ends: it reads what the Subnet Manager touched, while everything is
// read at the pace of the configuration. So one event does not cost a reading of everything.
func (k *Keeper) follow(ctx context.Context) {
	for wait := followEvery; pause.For(ctx, wait); {
		began := k.Prover.Now()
		err := k.catchUp(ctx)
		took := k.Prover.Now().Sub(began)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errMeanwhile):
			// Nothing failed: what was touched is read once the Subnet Manager is done.
			wait = afterReading(took)
		case err != nil:
			k.Prover.Log.Debug("the proof of isolation is not current: what the Subnet Manager touched was not read", "error", err)
			wait = min(2*wait, followMax)
		default:
			wait = afterReading(took)
		}
	}
}

// afterReading returns the pause after a reading that took so long.
func afterReading(took time.Duration) time.Duration {
	return max(followEvery, min(followRest*took, followMax))
}

// catchUp reads what was touched since the newest reading, and takes in which hosts are of other tenants since, if something is.
func (k *Keeper) catchUp(ctx context.Context) error {
	p := k.Prover
	base, now := p.newest(p.Pace.Membership), p.view()
	if base == nil || base.seen == nil || now == nil || !k.Settled() {
		return nil
	}
	bounded, cancel := context.WithTimeoutCause(ctx, leastTime, errors.New("it was not over in time"))
	defer cancel()
	d, err := p.current(bounded)
	if err != nil {
		return err
	}
	if base.seen == now || base.seen.Revision == now.Revision && touched.Since(base.seen, now).IsEmpty() {
		// What is declared and did not reach the Subnet Manager yet would show as drift.
		if d.intent.Equal(base.intent) {
			k.declared, k.looks = d.intent, 0
			return nil
		}
		if k.declared != d.intent && k.looks < mostLooks {
			k.declared = d.intent
			k.looks++
			return nil
		}
	}
	k.looks = 0
	q := v1.IsolationQuery{Membership: p.Pace.Membership}
	r, err := p.readWith(bounded, d, q, p.options(d.intent.Options(q), itself, nil), base)
	if err == nil && len(r.found.Unknown) > len(base.found.Unknown) && p.hasOtherKeys(&d) {
		r, err = p.readWith(bounded, d, q, p.options(d.intent.Options(q), itself, nil), base)
	}
	if err != nil {
		return err
	}
	if err := p.conclude(bounded, r, base); err != nil {
		return err
	}
	out := r.proven.Report(q)
	if out.Verdict == v1.IsolationUnknown && !k.Settled() {
		return errMeanwhile
	}
	if !p.replace(base, r) {
		return nil // everything was read meanwhile, and that reading is looked at next
	}
	p.note(r, out, q, itself)
	p.Log.Debug("the service read what was touched, and examined the isolation of tenants", "verdict", out.Verdict, "reason", out.Reason,
		"requests", out.Bounds.Requests)
	return nil
}

// replace makes a reading the newest, if another one is.
func (p *Prover) replace(base, by *reading) bool {
	p.told.Lock()
	defer p.told.Unlock()
	last := p.last(by.q.Membership)
	if *last != base {
		return false
	}
	*last = by
	return true
}

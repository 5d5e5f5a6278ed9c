package smrole

import (
	"context"
	"errors"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/api/leader"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
)

const (
	// formerFor bounds for how long the Subnet Manager of an ended term answers.
	formerFor = 2 * time.Minute
	// formerAtEnd bounds for how long the end of the service waits for that.
	formerAtEnd = 40 * time.Second
	// formerAlone bounds it where the store does not answer, so that no other instance can lead.
	formerAlone = 10 * time.Second
	// formerLooks is how often it is asked whether another instance could lead, and how long an answer may take.
	formerLooks = time.Second
)

// former is the Subnet Manager of a term that was ended on purpose: by an operator, or by the end of the service. It writes
// nothing, and answers the queries of hosts until the Subnet Manager of the next term does. The zero former answers nothing.
// Its methods are for one goroutine.
type former struct {
	cancel context.CancelFunc
	ended  <-chan struct{}
}

// stop ends it.
func (f *former) stop() {
	if f.cancel != nil {
		f.cancel()
		<-f.ended
	}
	*f = former{}
}

// finish waits for its end, and ends it after some time.
func (f *former) finish(after time.Duration) {
	if f.ended == nil {
		return
	}
	select {
	case <-f.ended:
	case <-time.After(after):
	}
	f.stop()
}

// drive runs the Subnet Manager until ctx ends. It leaves a former one behind if the term was ended on purpose.
func (r *Role) drive(ctx context.Context, o driver.Options, intents <-chan sm.Intent) error {
	if o.Fence == nil {
		return driver.Run(ctx, o, intents)
	}
	until, cancel := context.WithCancel(context.WithoutCancel(ctx))
	begun, ended, own := make(chan struct{}), make(chan struct{}), o.Port.GUID()
	o.Stay = &driver.Stay{Until: until.Done(), Begin: func() bool {
		if !r.ends() && !errors.Is(context.Cause(ctx), leader.ErrSteppedDown) {
			return false
		}
		close(begun)
		return true
	}}
	var err error
	go func() {
		defer close(ended)
		err = driver.Run(ctx, o, intents)
	}()
	select {
	case <-ended:
		cancel()
		return err
	case <-begun:
	}
	r.former = former{cancel, ended}
	go func() {
		r.Log.Info("this instance answers the queries of hosts until the next leader does", "at_most", formerFor)
		r.awaitNext(until, own)
		cancel()
		<-ended
		if err != nil {
			r.Log.Warn("this instance answered the queries of hosts until the port failed", "error", err)
			return
		}
		r.Log.Info("this instance no longer answers the queries of hosts")
	}()
	return nil
}

// awaitNext returns when the Subnet Manager at another port has settled the fabric, no other instance could, formerFor is
// over, or ctx ends. When the service ends, it also returns once the store has not answered for formerAlone.
func (r *Role) awaitNext(ctx context.Context, own ib.GUID) {
	ctx, cancel := context.WithTimeout(ctx, formerFor)
	defer cancel()
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		for ctx.Err() == nil && !r.seesNext(ctx, own) {
			select {
			case <-time.After(formerLooks):
			case <-ctx.Done():
			}
		}
	}()
	known := time.Now() // when the store last answered
	for {
		switch others, err := r.others(ctx); {
		case err == nil && len(others) == 0:
			cancel()
		case err == nil:
			known = time.Now()
		case r.ends() && time.Since(known) >= formerAlone:
			cancel()
		}
		select {
		case <-settled:
			return
		case <-time.After(formerLooks):
		}
	}
}

// others returns the other instances that could lead. A store without a majority of its members does not answer at all.
func (r *Role) others(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, formerLooks)
	defer cancel()
	return r.Candidate.Others(ctx)
}

// seesNext waits until the Subnet Manager at another port has settled the fabric. It returns false when the store reports no
// more.
func (r *Role) seesNext(ctx context.Context, own ib.GUID) bool {
	next := func(now *v1.SM) bool { return now.Settled && now.GUID != own }
	recs, from, err := records.SMs().List(ctx, r.Store, records.Master)
	if err != nil {
		return false
	}
	for i := range recs {
		if next(&recs[i].Value) {
			return true
		}
	}
	for ev := range records.SMs().Watch(ctx, r.Store, from) {
		switch {
		case ev.Err != nil:
			return false
		case !ev.Deleted && next(&ev.Value):
			return true
		}
	}
	return false
}

// Package portcounters has the counters of all ports of the fabric read while this Subnet Manager is master, beside it and over a port
// of its own.
package portcounters

import (
	"context"
	"log/slog"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/pause"
	"portcullis/fabricsm/perfmgr"
	"portcullis/fabricsm/perfread"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/transport"
)

const (
	// lookEvery is how often the fabric is looked at: what changed is read from then on.
	lookEvery = time.Second
	// retryMin and retryMax bound the doubling pause between attempts to attach.
	retryMin = time.Second
	retryMax = 5 * time.Minute
	// steady is how long an attachment must have held for the pause to start again from its first value.
	steady = time.Minute
	// leastTimeout is for how long a request waits at least: agents of general management are slower than those of subnet
	// management.
	leastTimeout = 500 * time.Millisecond
)

// Options are what a Keeper is made of. All are required.
type Options struct {
	Every   time.Duration // from one reading of a port to the next
	Rate    int           // requests in a second, at most
	Timeout time.Duration // for which a request waits for its answer; less than half a second counts as that
	View    func() (*sm.View, error)
	// Open attaches to the port of the Subnet Manager, for performance management. timeout is for how long answers are awaited.
	Open func(ctx context.Context, timeout time.Duration) (transport.Port, error)
	Log  *slog.Logger
}

// Keeper has counters read.
type Keeper struct {
	Options
	collector *perfread.Collector
}

// New returns a Keeper that has read nothing.
func New(o Options) (*Keeper, error) {
	o.Timeout = max(o.Timeout, leastTimeout)
	c, err := perfread.New(perfread.Options{Every: o.Every, Rate: o.Rate, Timeout: o.Timeout})
	if err != nil {
		return nil, err
	}
	return &Keeper{Options: o, collector: c}, nil
}

// Append appends the totals of all ports that were read lately.
func (k *Keeper) Append(to []perfmgr.Reading) []perfmgr.Reading { return k.collector.Append(to) }

// Rates appends the rates of ports of switches, in the order of the ports.
func (k *Keeper) Rates(of []ib.Place, to []perfmgr.Rate) []perfmgr.Rate {
	return k.collector.Rates(of, to)
}

// Stats returns how the reading goes.
func (k *Keeper) Stats() perfmgr.Stats { return k.collector.Stats() }

// Keep has counters read until ctx ends, which is to be while this instance manages the fabric. What was read is not shown
// afterwards.
func (k *Keeper) Keep(ctx context.Context) {
	defer k.collector.See(nil)
	said := ""
	wait := retryMin
	for {
		if !k.wait(ctx) {
			return
		}
		began := time.Now()
		err := k.attached(ctx)
		k.collector.See(nil)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > steady {
			wait, said = retryMin, ""
		}
		if err == nil {
			continue // another Subnet Manager is master
		}
		if said != err.Error() {
			said = err.Error()
			k.Log.Warn("counters of ports are not read; trying again", "error", err)
		}
		if !pause.For(ctx, wait) {
			return
		}
		wait = min(2*wait, retryMax)
	}
}

// wait waits until this Subnet Manager is master and has settled the fabric once. It returns false if ctx ends.
func (k *Keeper) wait(ctx context.Context) bool {
	for {
		if v, err := k.View(); err == nil && v.State == ib.SMMaster && v.Settled {
			return true
		}
		if !pause.For(ctx, lookEvery) {
			return false
		}
	}
}

// attached reads counters until ctx ends, the port fails or this Subnet Manager is no longer master.
func (k *Keeper) attached(ctx context.Context) error {
	port, err := k.Open(ctx, k.Timeout)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		defer end()
		k.look(ctx)
	}()
	err = k.collector.Run(ctx, port)
	end()
	<-looked
	return err
}

// look has the collector see the fabric as it changes. It returns if ctx ends or this Subnet Manager is no longer master.
func (k *Keeper) look(ctx context.Context) {
	var last *topo.Fabric
	for {
		v, err := k.View()
		if err != nil || v.State != ib.SMMaster {
			return
		}
		if v.Fabric != last {
			last = v.Fabric
			k.collector.See(last)
		}
		if !pause.For(ctx, lookEvery) {
			return
		}
	}
}

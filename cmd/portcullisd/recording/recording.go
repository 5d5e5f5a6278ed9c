// Package recording has how the fabric changes recorded while this instance leads, and answers out of what was recorded.
package recording

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"portcullis/api/fabric/past"
	"portcullis/api/fabric/query"
	"portcullis/api/fabric/timeline/spool"
	"portcullis/api/store"
	"portcullis/cmd/portcullisd/config"
	"portcullis/cmd/portcullisd/metrics"
	"portcullis/fabricsm/pause"
)

// retryAfter is the pause before the directory is opened again.
const retryAfter = 30 * time.Second

// Options are what a Keeper is made of. All are required.
type Options struct {
	History  config.History
	StateDir string // the files are in a directory of it
	Store    *store.Store
	Observer *query.Observer
	Proof    func() past.Proof
	Now      func() time.Time
	Log      *slog.Logger
}

// Keeper records and answers.
type Keeper struct {
	past.Reader
	o        Options
	spool    atomic.Pointer[spool.Spool]
	why      atomic.Pointer[string] // the spool is not open
	recorder atomic.Pointer[past.Recorder]
}

// New returns a Keeper that has opened nothing.
func New(o Options) *Keeper {
	k := &Keeper{o: o}
	k.Reader = past.Reader{Spool: k.spool.Load, Every: k.every, Keep: o.History.Keep, Why: k.unopened, Now: o.Now}
	return k
}

func (k *Keeper) every() time.Duration {
	if r := k.recorder.Load(); r != nil {
		return r.Every()
	}
	return past.Every
}

func (k *Keeper) unopened() string {
	if why := k.why.Load(); why != nil {
		return *why
	}
	return ""
}

// Keep records until ctx ends, which is to be while this instance leads. It does nothing where nothing is to be recorded.
func (k *Keeper) Keep(ctx context.Context) {
	if k.o.History.Keep == 0 {
		return
	}
	if !k.open(ctx) {
		return
	}
	hosts := past.NewHosts()
	r := past.NewRecorder(past.Options{
		Spool: k.spool.Load(), Fabric: k.o.Observer, Sight: k.sight, Hosts: hosts, Proof: k.o.Proof, Now: k.o.Now, Log: k.o.Log,
	})
	k.recorder.Store(r)
	var both sync.WaitGroup
	both.Go(func() { hosts.Follow(ctx, k.o.Store, k.o.Log) })
	r.Run(ctx)
	both.Wait()
}

// open opens the directory, again and again where that fails, and reports whether it did.
func (k *Keeper) open(ctx context.Context) bool {
	for k.spool.Load() == nil {
		s, err := spool.Open(spool.Options{
			Dir: filepath.Join(k.o.StateDir, "history"), Keep: k.o.History.Keep, Size: int64(k.o.History.Size) << 20, Class: past.Class,
		}, k.o.Now())
		if err == nil {
			k.spool.Store(s)
			break
		}
		why := err.Error()
		if was := k.why.Swap(&why); was == nil || *was != why {
			k.o.Log.Warn("how the fabric changes is not recorded; nothing else depends on it", "error", err, "retry_in", retryAfter)
		}
		if !pause.For(ctx, retryAfter) {
			return false
		}
	}
	return ctx.Err() == nil
}

// sight says what the Subnet Manager here sees.
func (k *Keeper) sight() past.Sight {
	s, err := k.o.Observer.Standing()
	if err != nil {
		return past.Sight{Why: err.Error()}
	}
	if !s.Master {
		return past.Sight{Why: "another Subnet Manager was master"}
	}
	return past.Sight{Version: s.Version, Settled: s.Settled}
}

// State returns how recording stands, and false while nothing is recorded here.
func (k *Keeper) State() (metrics.Recording, bool) {
	s := k.spool.Load()
	if s == nil {
		return metrics.Recording{Failing: k.why.Load() != nil}, k.why.Load() != nil
	}
	now := k.o.Now()
	known := s.Known(now, spool.Confined)
	out := metrics.Recording{Bytes: s.Size(), Failing: known.Failed != ""}
	if !known.From.IsZero() {
		out.Known = now.Sub(known.From)
	}
	return out, true
}

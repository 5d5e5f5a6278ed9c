// Package observe is "portcullisd observe": it shows what taking over a fabric would change, and writes nothing.
package observe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"portcullis/cmd/portcullisd/command"
	"portcullis/cmd/portcullisd/config"
	"portcullis/cmd/portcullisd/devicekeys"
	"portcullis/cmd/portcullisd/fabricport"
	"portcullis/cmd/portcullisd/journal"
	"portcullis/cmd/portcullisd/partitionfile"
	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/shadow"
	"portcullis/fabricsm/sm"
)

// ErrNoticed is returned after a report of what jobs would notice.
var ErrNoticed = errors.New("jobs that run would notice a takeover")

// forever is how long P_Keys are left as they are until the partition file was applied.
const forever = 10 * 365 * 24 * time.Hour

// observer is one run.
type observer struct {
	o          *config.ObserveOptions
	core       sm.Config
	partitions *partitionfile.File // nil: none
	ring       *devicekeys.Ring
	store      driver.Store
	port       *shadow.Port
	notes      []string
	problems   []string
	silent     int
	stop       context.CancelCauseFunc
}

// Run is "portcullisd observe".
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := config.ParseObserve(args, stdout, stderr)
	if err != nil {
		return err
	}
	s := &observer{o: o}
	if err := s.prepare(journal.New(stderr, slog.LevelWarn)); err != nil {
		return err
	}
	ctx, release := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer release()
	ctx, s.stop = context.WithCancelCause(ctx)
	defer s.stop(nil)
	if err := s.attach(ctx); err != nil {
		return err
	}
	if err := s.look(ctx); err != nil {
		return err
	}
	r, err := s.result()
	if err != nil {
		return err
	}
	if o.JSON {
		err = r.writeJSON(stdout)
	} else {
		err = r.writeText(stdout)
	}
	if err == nil && r.Noticed {
		err = ErrNoticed
	}
	return err
}

// prepare makes the configuration of a core that takes over and is let alone: it believes no other Subnet Manager, and keeps
// nothing.
func (s *observer) prepare(log *slog.Logger) (err error) {
	f := &s.o.Config.Fabric
	if s.core, err = f.Core(s.o.Config.Path); err != nil {
		return err
	}
	if s.store, s.ring, err = devicekeys.Open(&f.Keys, &driver.Memory{}, s.o.Config.Path, &s.core); err != nil {
		return err
	}
	if s.o.Partitions != "" {
		if s.partitions, err = partitionfile.Open(s.o.Partitions, log); err != nil {
			return command.Hint(err, "nothing was read; correct the file")
		}
		s.core.IntentWait = forever
	} else {
		s.notes = append(s.notes, "No partition file was named: hosts are judged as limited members of the default partition and of nothing else.")
	}
	c := &s.core
	if c.ClassKeys.On() {
		s.notes = append(s.notes, "Keys of classes (CC, VS, N2N) are not looked at: they are given out by packets that are no SMPs.")
	}
	c.SMKey, c.Election, c.Siblings = ib.SMKey{}, sm.ElectionConfig{}, nil
	c.ClassKeys, c.Counters = sm.ClassKeysConfig{}, sm.CountersConfig{}
	c.AuditPeriod, c.LIDPeriod = -1, -1
	c.Window = s.o.Window
	return nil
}

func (s *observer) attach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, fabricport.DialTimeout)
	defer cancel()
	f := &s.o.Config.Fabric
	port, err := fabricport.Attach(ctx, f.Port, f.Timeout)
	if err != nil {
		return command.Hint(fmt.Errorf("port %s: %w", f.Port, err), fabricport.Hint(err, "--port"))
	}
	s.port = shadow.New(port, shadow.Options{Rate: s.o.Rate, Silent: s.onSilent, Locked: func(w shadow.Where) { s.stop(locked(w)) }})
	return nil
}

// onSilent ends the run when devices are silent that should answer: to ask on would only count violations of their keys.
func (s *observer) onSilent(x shadow.Silence) {
	if s.silent++; isFirst(x) || s.silent > s.o.Silent {
		s.stop(tooSilent(s.silent, x))
	}
}

// isFirst reports whether nothing of the fabric can be read without a device: our own, and the one that it is cabled to.
func isFirst(x shadow.Silence) bool { return x.Route.Len() <= 1 }

// tooSilent says that so many devices answer nothing, the last of which is x.
func tooSilent(n int, x shadow.Silence) error {
	if x.Route.Len() == 0 {
		return command.Hint(errors.New("the port that the fabric is read from does not answer: it may have an M_Key that the configuration does not have"),
			"take over the key of the present Subnet Manager with \"portcullis import\", from its configuration or its guid2mkey")
	}
	return command.Hint(fmt.Errorf("no answer from %s though the link is up, such as that %s: an M_Key that the configuration does not have may be the cause", counted(n, "device"), behind(x)),
		"take over the keys with \"portcullis import\"; where devices really are silent, allow for that with --silent")
}

// locked says that nothing can be written to a port.
func locked(w shadow.Where) error {
	return command.Hint(fmt.Errorf("%s has an M_Key that the configuration does not have: it would refuse all that is written", place(w)),
		"take over the keys of the present Subnet Manager with \"portcullis import\", from its configuration or its guid2mkey")
}

func behind(x shadow.Silence) string {
	if x.Node == 0 {
		return "by the directed route " + x.Route.String()
	}
	return fmt.Sprintf("behind port %d of %s", x.Port, x.Name)
}

// look runs a Subnet Manager until it has nothing left to change.
func (s *observer) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.Within, fmt.Errorf("the fabric was not read whole within %v (--within)", s.o.Within))
	defer cancel()
	group, within := errgroup.WithContext(ctx)
	within, done := context.WithCancel(within)
	defer done()
	var settled atomic.Bool
	o := s.driver(&settled)
	group.Go(func() error {
		defer done()
		return driver.Run(within, o, nil)
	})
	group.Go(func() error {
		if s.rests(within, &settled) {
			done()
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

func (s *observer) driver(settled *atomic.Bool) driver.Options {
	o := driver.Options{
		Port: s.port, Core: s.core, Store: s.store, Timeout: s.o.Config.Fabric.Timeout,
		OnEvent: func(e sm.Event) {
			if s.partitions != nil {
				s.partitions.OnEvent(e)
			}
		},
		OnView: func(v *sm.View) {
			if err := s.ring.Fill(); err != nil {
				s.stop(err)
			}
			if s.partitions != nil {
				s.partitions.OnView(v)
			}
			s.problems = v.Problems
			settled.Store(v.Settled && (s.partitions == nil || s.partitions.InForce(v)))
		},
	}
	if s.partitions != nil {
		o.Inputs = s.partitions.Inputs()
	}
	return o
}

const (
	// lookEvery is how often it is looked whether the fabric is settled.
	lookEvery = 20 * time.Millisecond
	// names is how long a settled fabric is waited for to say how its devices are called.
	names = 5 * time.Second
)

// rests waits until the Subnet Manager is settled and has read the names of devices, and reports false if ctx ends before.
func (s *observer) rests(ctx context.Context, settled *atomic.Bool) bool {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var since time.Time
	for {
		select {
		case <-ctx.Done():
			return false
		case now := <-tick.C:
			switch {
			case !settled.Load():
				since = time.Time{}
			case since.IsZero():
				since = now
			case s.port.Unnamed() == 0 || now.Sub(since) > names:
				return true
			}
		}
	}
}

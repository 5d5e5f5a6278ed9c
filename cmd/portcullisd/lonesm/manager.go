// Package lonesm is "portcullisd sm": a Subnet Manager that runs alone, without the service and its store.
package lonesm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"portcullis/api/fabric/query"
	"portcullis/cmd/portcullisd/administration"
	"portcullis/cmd/portcullisd/command"
	"portcullis/cmd/portcullisd/config"
	"portcullis/cmd/portcullisd/devicekeys"
	"portcullis/cmd/portcullisd/fabriclog"
	"portcullis/cmd/portcullisd/fabricport"
	"portcullis/cmd/portcullisd/inputs"
	"portcullis/cmd/portcullisd/journal"
	"portcullis/cmd/portcullisd/partitionfile"
	"portcullis/cmd/portcullisd/portcounters"
	"portcullis/cmd/portcullisd/watch"
	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/driver/factfile"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/replay"
	"portcullis/fabricsm/transport/pcap"
)

// forever is how long P_Keys are left as they are until partitions are known:
// while this SM stands by, for years.
const forever = 10 * 365 * 24 * time.Hour

// manager is one run of "portcullisd sm".
type manager struct {
	o              *config.SMOptions
	args           []string
	began          time.Time
	log            *slog.Logger
	wire           *meter
	core           sm.Config
	partitions     *partitionfile.File // nil: none
	routing        *fabriclog.Routes
	phases         phases
	since          cause
	out            *eventLines // nil: events are not printed
	last           *sm.View
	seen           *query.Observer
	counters       *portcounters.Keeper // nil: none are read
	watched        *watch.Server
	marks          *inputs.Operator
	state          *factfile.Store  // nil: nothing is kept
	kept           driver.Store     // of state, with keys sealed
	ring           *devicekeys.Ring // nil: devices get no keys
	administration *administration.Keeper
	answers        *sa.Agent // nil: no request is answered
	recorded       *os.File  // nil: nothing is recorded
	recorder       *replay.Writer
	captured       *os.File // nil: nothing is captured
	capture        *pcap.Writer
	standby        bool // ended because another SM is master
	lean           bool // what discovery and routing needed of the program was given back
}

// Run is "portcullisd sm".
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	began := time.Now()
	o, err := config.ParseSM(args, stdout, stderr)
	if err != nil {
		return err
	}
	level := slog.LevelInfo
	if o.Once || o.JSON {
		level = slog.LevelWarn
	}
	s := &manager{o: o, args: args, began: began, log: journal.New(stderr, level)}
	if s.core, err = o.Config.Fabric.Core(o.Config.Path); err != nil {
		return err
	}
	for _, n := range o.Config.Fabric.Notices() {
		s.log.Warn(n)
	}
	if err := s.openState(); err != nil {
		return err
	}
	defer s.closeState()
	if err := s.openKeys(); err != nil {
		return err
	}
	s.sayKeys()
	if err := s.openRecord(); err != nil {
		return err
	}
	defer s.closeRecord()
	if err := s.openCapture(); err != nil {
		return err
	}
	defer s.closeCapture()
	s.routing = &fabriclog.Routes{Engines: s.core.Engines, Log: s.log}
	if o.Partitions != "" {
		if s.partitions, err = partitionfile.Open(o.Partitions, s.log); err != nil {
			return command.Hint(err, "nothing was started; correct the file")
		}
	}
	s.administration = administration.New()
	s.partitioned()
	if s.answers, err = s.administration.Agent(&o.Config.Fabric, &s.core, s.ring.SAKeys(), o.Config.Path); err != nil {
		return err
	}
	if err := s.openSeen(); err != nil {
		return err
	}
	s.marks = inputs.New(s.seen, s.log)
	s.marks.Sealed = func() ([]sm.Fact, error) { return s.state.Load() }
	if s.watched, err = watch.Open(o.Config.Fabric.Watch, o.Config.Path, s.seen, s.marks, nil, s.log); err != nil {
		return err
	}
	defer s.watched.Close()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := s.attach(ctx); err != nil {
		return err
	}
	spareMemory()
	if o.Once {
		return s.runOnce(ctx, stdout)
	}
	return s.runOn(ctx, stdout)
}

// openSeen makes what shows the fabric. Counters of ports are read where they are served.
func (s *manager) openSeen() (err error) {
	var seen query.Options
	if f := &s.o.Config.Fabric; !s.o.Once && f.Watch != (config.Watch{}) {
		if s.counters, err = portcounters.Of(f, func() (*sm.View, error) { return s.seen.View() }, s.log); err != nil {
			return err
		}
	}
	if s.counters != nil {
		seen.Counters = s.counters
	}
	s.seen = query.New(seen)
	return nil
}

func (s *manager) attach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, fabricport.DialTimeout)
	defer cancel()
	f := &s.o.Config.Fabric
	port, err := fabricport.Open(ctx, f.Port, f.Timeout, fabricport.Agents(&s.core))
	if err != nil {
		return command.Hint(fmt.Errorf("port %s: %w", f.Port, err), fabricport.Hint(err, "--port"))
	}
	s.wire = &meter{Port: s.captures(port), began: s.began}
	if f.Enforcement != "verified" && s.partitions != nil {
		s.log.Warn("enforcement is accepted: switches are believed to enforce P_Keys without proof; for simulators only")
	}
	return nil
}

func (s *manager) driver() driver.Options {
	o := driver.Options{
		Port: s.wire.port(), Log: s.log, Timeout: s.o.Config.Fabric.Timeout, Core: s.core,
		OnEvent: s.event, Inputs: s.marks.Inputs,
		OnView: s.view, OnKeys: s.seen.OnKeys, OnSA: s.seen.OnSA,
	}
	if !s.o.Once {
		o.SA, o.SASettings = s.answers, s.administration.Settings
	}
	s.keepState(&o)
	if s.o.Once && s.partitions == nil {
		o.Core.ViewEvery = max(o.Core.ViewEvery, time.Second) // views are not read before it is settled
	}
	s.keepRecord(&o)
	if s.partitions != nil {
		o.Core.IntentWait = forever // the first view as master makes an intent
		o.Inputs = s.partitions.Inputs()
	}
	return o
}

// sayKeys logs how devices are protected. Without a root nothing else is expected of a subnet manager that runs alone.
func (s *manager) sayKeys() {
	c := &s.o.Config.Fabric.Keys
	level := slog.LevelWarn
	if !c.ManagesMKeys() && c.MKey == config.KeyAuto {
		level = slog.LevelInfo
	}
	for _, n := range c.KeyNotices(&s.core) {
		s.log.Log(context.Background(), level, n)
	}
}

func (s *manager) event(e sm.Event) {
	now := time.Now()
	s.phases.event(now, e)
	s.seen.OnEvent(e)
	s.marks.Told.OnEvent(e)
	if s.partitions != nil {
		s.partitions.OnEvent(e)
	}
	if _, ok := e.(*sm.Routed); ok && !s.lean {
		s.lean = true // tables, of which there are most, are still to be written
		forgetProgram()
	}
	if s.out != nil {
		s.since.event(now, e, s.wire)
		s.out.event(now, e, &s.since, s.wire.requests())
		if _, ok := e.(*sm.Settled); ok {
			s.wire.answered()
		}
	}
}

func (s *manager) view(v *sm.View) {
	s.last = v
	s.seen.OnView(v)
	s.marks.OnView()
	s.routing.OnView(v)
	s.captureEnd(v)
	if err := s.ring.Fill(); err != nil {
		s.log.Error("no new keys of devices were drawn", "error", err)
	}
	if s.partitions != nil && s.partitions.OnView(v) {
		s.since.begin(time.Now(), s.wire.requests())
	}
}

// runOnce brings the fabric up and reports.
func (s *manager) runOnce(ctx context.Context, stdout io.Writer) error {
	o := s.driver()
	o.Until = func(v *sm.View) bool {
		s.standby = v.State == ib.SMStandby || v.State == ib.SMNotActive
		return s.standby || v.Settled && (s.partitions == nil || s.partitions.InForce(v))
	}
	group, within := errgroup.WithContext(ctx)
	within, done := context.WithCancel(within)
	defer done()
	s.watched.Serve(within, group)
	group.Go(func() error {
		defer done()
		return driver.Run(within, o, nil)
	})
	if err := group.Wait(); err != nil {
		return err
	}
	switch {
	case s.standby:
		return command.Hint(errors.New("another subnet manager is master, so nothing was configured"),
			"stop the other one, or set a higher --priority; portcullisd sm without --once stands by")
	case ctx.Err() != nil:
		return errors.New("stopped before the fabric was settled")
	}
	r := s.report(s.last)
	if s.o.JSON {
		return r.writeJSON(stdout)
	}
	return r.writeTable(stdout)
}

// runOn manages the fabric until it is stopped.
func (s *manager) runOn(ctx context.Context, stdout io.Writer) error {
	group, ctx := errgroup.WithContext(ctx)
	ctx, done := context.WithCancel(ctx)
	defer done()
	// Events while the subnet manager ends are printed, too.
	printing, printed := context.WithCancel(context.WithoutCancel(ctx))
	defer printed()
	if s.o.JSON {
		s.out = newEventLines()
		group.Go(func() error { return s.out.write(printing, stdout) })
	}
	s.watched.Serve(ctx, group)
	if s.counters != nil {
		group.Go(func() error { s.counters.Keep(ctx); return nil })
	}
	s.flushState(ctx, group)
	o := s.driver()
	if s.partitions != nil {
		o.Inputs = joined(ctx, group, s.partitions.Inputs(), s.marks.Inputs)
	}
	hup := command.Hangups()
	group.Go(func() error { return s.reloadOnSignal(ctx, hup) })
	group.Go(func() error {
		defer printed()
		defer done()
		return driver.Run(ctx, o, nil)
	})
	return group.Wait()
}

// reloadOnSignal reads the partitions, if there are any, and the configuration again
// on SIGHUP.
func (s *manager) reloadOnSignal(ctx context.Context, hup chan os.Signal) error {
	command.OnHangup(ctx, hup, func() {
		if s.partitions != nil {
			s.reload()
		}
		s.reconfigure(ctx)
	})
	return nil
}

// partitioned passes the settings of the partition file to subnet administration.
func (s *manager) partitioned() {
	if s.partitions != nil {
		s.administration.Partition((*administration.PartitionFile)(s.partitions.Rules()))
	}
}

func (s *manager) reload() {
	s.since.begin(time.Now(), s.wire.requests())
	changed, err := s.partitions.Reload()
	if !changed {
		s.since.forget()
	}
	if err != nil {
		s.log.Error("reload: the partitions that were in use stay in use", "error", err)
		return
	}
	s.partitioned()
	s.log.Warn("partitions were read again", "file", s.o.Partitions, "changed", changed)
}

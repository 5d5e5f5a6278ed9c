package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
)

const smUsage = `Usage:
  portcullisd sm --port PORT [options]    run a Subnet Manager alone

PORT is
  umad:DEVICE[:PORT]    a port of an HCA
  ibsim:SOCKET/NODE     a node of a running simulator
  sim:NETLIST           the first CA of a fabric simulated in this process

Options:
  --once                end when the fabric is settled, and say what was done
  --json                print the outcome, or without --once each event, as JSON
  --partitions FILE     read partitions from FILE, in OpenSM's grammar
  --enforcement HOW     proof that switches enforce P_Keys: verified (default), or
                        accepted, for simulators
  --priority N          priority among Subnet Managers, 0 to 15; default 14
  --sm-key-file FILE    SM_Key that other Subnet Managers must show
  --timeout DURATION    how long an answer may take; default 200ms

Signals: SIGHUP reads the partitions again; SIGTERM stops.
`

// forever is how long P_Keys are left as they are until partitions are known:
// while this SM stands by, for years.
const forever = 10 * 365 * 24 * time.Hour

// smOptions is the command line of "portcullisd sm".
type smOptions struct {
	port        string
	once, json  bool
	partitions  string
	enforcement string
	priority    uint
	keyFile     string
	timeout     time.Duration
}

func parseSM(args []string, stderr io.Writer) (*smOptions, error) {
	o := &smOptions{}
	fs := flag.NewFlagSet("portcullisd sm", flag.ContinueOnError)
	fs.Usage = func() { fmt.Fprint(stderr, smUsage) }
	fs.StringVar(&o.port, "port", "", "")
	fs.BoolVar(&o.once, "once", false, "")
	fs.BoolVar(&o.json, "json", false, "")
	fs.StringVar(&o.partitions, "partitions", "", "")
	fs.StringVar(&o.enforcement, "enforcement", "verified", "")
	fs.UintVar(&o.priority, "priority", 14, "")
	fs.StringVar(&o.keyFile, "sm-key-file", "", "")
	fs.DurationVar(&o.timeout, "timeout", 200*time.Millisecond, "")
	if err := parse(fs, args, stderr); err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		report(stderr, hint(err, "portcullisd sm --help"))
		return nil, errUsage
	}
	return o, nil
}

func (o *smOptions) check() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.port == "" {
		wrong("--port is missing: name the port to run on")
	}
	if _, ok := enforcements()[o.enforcement]; !ok {
		wrong("--enforcement %q: want verified or accepted", o.enforcement)
	}
	if o.priority > 15 {
		wrong("--priority %d: want 0 to 15", o.priority)
	}
	if o.timeout < 10*time.Millisecond || o.timeout > time.Minute {
		wrong("--timeout %v: want 10ms to 1m", o.timeout)
	}
	return errors.Join(errs...)
}

// loneSM is one run of "portcullisd sm".
type loneSM struct {
	o          *smOptions
	began      time.Time
	log        *slog.Logger
	wire       *meter
	key        ib.SMKey
	partitions *partitions // nil: none
	phases     phases
	since      cause
	out        *eventLines // nil: events are not printed
	last       *sm.View
	standby    bool // ended because another SM is master
}

// runSM is "portcullisd sm".
func runSM(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	began := time.Now()
	o, err := parseSM(args, stderr)
	if err != nil {
		return err
	}
	level := slog.LevelInfo
	if o.once || o.json {
		level = slog.LevelWarn
	}
	s := &loneSM{o: o, began: began, log: newLog(stderr, level)}
	if s.key, err = smKeyFrom(o.keyFile); err != nil {
		return err
	}
	if o.partitions != "" {
		if s.partitions, err = openPartitions(o.partitions, s.log); err != nil {
			return hint(err, "nothing was started; correct the file")
		}
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := s.attach(ctx); err != nil {
		return err
	}
	if o.once {
		return s.runOnce(ctx, stdout)
	}
	return s.runOn(ctx, stdout)
}

func smKeyFrom(file string) (ib.SMKey, error) {
	if file != "" {
		if err := private(file); err != nil {
			return ib.SMKey{}, err
		}
	}
	return loadSMKey(file)
}

func (s *loneSM) attach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	port, err := openPort(ctx, s.o.port, s.o.timeout)
	if err != nil {
		return fmt.Errorf("--port: %w", err)
	}
	s.wire = &meter{Port: port, began: s.began}
	if s.o.enforcement != "verified" && s.partitions != nil {
		s.log.Warn("--enforcement is accepted: switches are believed to enforce P_Keys without proof; for simulators only")
	}
	return nil
}

func (s *loneSM) driver() driver.Options {
	o := driver.Options{
		Port: s.wire, Log: s.log, Timeout: s.o.timeout,
		Core: sm.Config{
			Priority: uint8(s.o.priority), SMKey: s.key, Enforcement: enforcements()[s.o.enforcement],
		},
		OnEvent: s.event,
		OnView:  s.view,
	}
	if s.partitions != nil {
		o.Core.IntentWait = forever // the first view as master gives an intent
	}
	return o
}

// intents gives what the driver takes memberships from; nil is a channel that
// stays silent.
func (s *loneSM) intents() <-chan sm.Intent {
	if s.partitions == nil {
		return nil
	}
	return s.partitions.intents
}

func (s *loneSM) event(e sm.Event) {
	now := time.Now()
	s.phases.event(now, e)
	if s.partitions != nil {
		s.partitions.event(e)
	}
	if s.out != nil {
		s.since.event(now, e, s.wire)
		s.out.event(now, e, &s.since, s.wire.requests())
		if _, ok := e.(*sm.Settled); ok {
			s.wire.answered()
		}
	}
}

func (s *loneSM) view(v *sm.View) {
	s.last = v
	if s.partitions != nil && s.partitions.view(v) {
		s.since.begin(time.Now(), s.wire.requests())
	}
}

// runOnce brings the fabric up and reports.
func (s *loneSM) runOnce(ctx context.Context, stdout io.Writer) error {
	o := s.driver()
	o.Until = func(v *sm.View) bool {
		s.standby = v.State == ib.SMStandby
		return s.standby || v.Settled && (s.partitions == nil || s.partitions.inForce(v))
	}
	if err := driver.Run(ctx, o, s.intents()); err != nil {
		return err
	}
	switch {
	case s.standby:
		return hint(errors.New("another subnet manager is master, so nothing was configured"),
			"stop the other one, or give a higher --priority")
	case ctx.Err() != nil:
		return errors.New("stopped before the fabric was settled")
	}
	r := s.report(s.last)
	if s.o.json {
		return r.writeJSON(stdout)
	}
	return r.writeTable(stdout)
}

// runOn manages the fabric until it is told to stop.
func (s *loneSM) runOn(ctx context.Context, stdout io.Writer) error {
	group, ctx := errgroup.WithContext(ctx)
	ctx, done := context.WithCancel(ctx)
	defer done()
	if s.o.json {
		s.out = newEventLines()
		group.Go(func() error { return s.out.write(ctx, stdout) })
	}
	group.Go(func() error { return s.reloadOnSignal(ctx) })
	group.Go(func() error {
		defer done()
		return driver.Run(ctx, s.driver(), s.intents())
	})
	return group.Wait()
}

// reloadOnSignal reads the partitions, if there are any, again on SIGHUP.
func (s *loneSM) reloadOnSignal(ctx context.Context) error {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hup:
			if s.partitions != nil {
				s.reload()
			}
		}
	}
}

func (s *loneSM) reload() {
	s.since.begin(time.Now(), s.wire.requests())
	changed, err := s.partitions.reload()
	if !changed {
		s.since.forget()
	}
	if err != nil {
		s.log.Error("reload: the partitions that were in use stay in use", "error", err)
		return
	}
	s.log.Warn("partitions were read again", "file", s.o.partitions, "changed", changed)
}

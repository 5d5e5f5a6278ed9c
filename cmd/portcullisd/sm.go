package main

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

	"portcullis/api/fabric/seen"
	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/driver/factfile"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/record"
	"portcullis/fabricsm/transport/pcap"
)

const smUsage = `Usage:
  portcullisd sm --port PORT [options]    run a Subnet Manager alone

PORT is
  umad:DEVICE[:PORT]    a port of an HCA
  ibsim:SOCKET/NODE     a node of a running simulator
  sim:NETLIST           the first CA of a fabric simulated in this process

Options:
  --port PORT           the port to run on; may stand in FILE of --config instead
  --once                end when the fabric is settled, and say what was done; names
                        of nodes are read only after that
  --json                print the outcome, or without --once each event, as JSON
  --partitions FILE     read partitions from FILE, in OpenSM's grammar
  --record FILE         write all that the subnet manager is told into FILE, which must
                        not be there, for "portcullis replay FILE"; no key is in it
  --capture FILE        write all packets both ways into FILE, which must not be there,
                        as pcap with link type 247; keys in it are zeros
  --state-dir DIR       keep LIDs and what devices forget in DIR, and DIR/guid2lid for
                        OpenSM; default: LIDs stay as they are on the ports
  --config FILE         take what follows from the section "fabric" of FILE, which
                        "portcullisd --print-config" explains; options override it
  --enforcement HOW     proof that switches enforce P_Keys: verified (default), or
                        accepted, for simulators
  --priority N          priority among Subnet Managers, 0 to 15; default 14
  --sm-key-file FILE    SM_Key that other Subnet Managers must show
  --sa                  answer hosts as subnet administration (default); --sa=false: do not
  --sa-key-file FILE    SA_Key that makes a request to subnet administration trusted
  --sa-options FILE     OpenSM's options about subnet administration, such as its
                        opensm.conf
  --sa-enhanced-trust-model
                        drop what hosts need not ask without the SA_Key (default)
  --service-name2key-map-file FILE
                        service names that need a key, and which
  --prefix-routes-file FILE
                        routers to other subnets, as in OpenSM's prefix-routes.conf
  --allowed-sm SM       another Subnet Manager to work with, PORT-GUID or
                        PORT-GUID@SWITCH-GUID/PORT; may be repeated
  --master-priority N   priority while master, if above --priority; default 15
  --poll-every DURATION how often a standby looks whether the master lives;
                        default 500ms
  --attached-to GUID    switch that the port is cabled to, where devices have M_Keys and
                        neither the state nor the declared topology knows it
  --lmc N               2^N LIDs and ways for every port of a host, 0 to 7; default 0
  --timeout DURATION    how long an answer may take; default 200ms
  --audit-period DURATION
                        how often every port is read again; default 10m
  --lid-period DURATION
                        how often the LID of every adapter is read again; default 2s,
                        0: with the audit only
  --counter-period DURATION
                        how often counters are looked at, to tell of those that
                        somebody reset; default 0, never
  --mute-period DURATION
                        how often the packets are read that ports of switches without
                        trap 259 have refused; default 30s, 0: never
  --window N            requests under way at once; default 64
  --tries N             tries before a node counts as silent; default 3
  --keys-root FILE      give devices M_Keys, sealed under FILE of "portcullis keys root"
                        in DIR of --state-dir
  --topology FILE       which device belongs behind which switch port: a native revision
                        or a topoconfig.conf (docs/understand/topospec.md)
  --topology-mode MODE  observe, warn, or enforce: ports that differ are switched off
  --guid2lid FILE       LIDs for ports that have none in DIR, as OpenSM kept them
  --qos                 program quality of service: SL-to-VL and arbitration tables
  --qos-options FILE    OpenSM's options qos and qos_*, such as its opensm.conf
  --qos-policy FILE     OpenSM's qos-policy.conf: levels for paths
  --prefix PREFIX       subnet prefix; default 0xfe80000000000000
  --max-mtu BYTES       largest MTU of a link; default 4096
  --max-vls N           largest number of data VLs of a link; default 15
  --engine LIST         routing engines, tried in this order: some of dfp,
                        dfsssp, dnup, dor, file, ftree, minhop, torus-2QoS and updn,
                        with commas between; default minhop,updn
  --root-guid-file FILE switches on top of updn and ftree, a node GUID a line
  --cn-guid-file FILE   compute nodes, for ftree, a port GUID a line
  --io-guid-file FILE   I/O nodes, for ftree, a port GUID a line
  --ids-guid-file FILE  which of equally high switches is on top of updn, a node GUID
                        and a number a line
  --max-reverse-hops N  links that routes of I/O nodes may go down before they go up
                        again, for ftree; default -1, any number
  --port-search-ordering-file FILE
                        switches whose ports are not in the order of dimensions, for
                        dor, a node GUID and the ports a line
  --torus-config FILE   size and seeds of a torus, as torus-2QoS.conf(5) says
  --group-file FILE     groups of a dragonfly+, a node GUID and a number a line
  --lfts-file FILE      tables for the engine file, as in opensm-lfts.dump
  --guid-routing-order-file FILE
                        ports to be routed before others, for minhop, updn, dnup, ftree
                        and dfsssp, a port GUID a line
  --ignore-guids-file FILE
                        ports that are left out when the load of links is counted, for
                        the same engines, a node GUID and a port a line
  --hop-weights-file FILE
                        what ports of switches count for in place of one hop, for
                        minhop, a node GUID, a port and 1 to 255 a line
  --max-lanes N         largest number of VLs that routes are dealt to; default 8
  --link-speed SPEED    speeds to enable: keep as found (default), supported, or the
                        fastest, SDR to XDR
  --link-width WIDTH    widths to enable: keep (default), supported, or 1x to 12x
  --retrain             take links down and up for a change of these
  --socket PATH         make a unix socket, for "portcullis sm top --socket PATH" and
                        "portcullis fabric ... --socket PATH"
  --metrics ADDR:PORT   serve /metrics for Prometheus; loopback only

Signals: SIGHUP reads the partitions and the configuration again, and says which
keys need a restart; SIGTERM stops.
`

// forever is how long P_Keys are left as they are until partitions are known:
// while this SM stands by, for years.
const forever = 10 * 365 * 24 * time.Hour

// loneSM is one run of "portcullisd sm".
type loneSM struct {
	o              *smOptions
	args           []string
	began          time.Time
	log            *slog.Logger
	wire           *meter
	core           sm.Config
	partitions     *partitions // nil: none
	routing        *routingNotes
	phases         phases
	since          cause
	out            *eventLines // nil: events are not printed
	last           *sm.View
	seen           *seen.Observer
	watched        *watched
	marks          *marks
	state          *factfile.Store // nil: nothing is kept
	kept           driver.Store    // of state, with keys sealed
	ring           *keyring        // nil: devices get no keys
	administration *administration
	answers        *sa.Agent // nil: no request is answered
	recorded       *os.File  // nil: nothing is recorded
	recorder       *record.Writer
	captured       *os.File // nil: nothing is captured
	capture        *pcap.Writer
	standby        bool // ended because another SM is master
	lean           bool // what discovery and routing needed of the program was given back
}

// runSM is "portcullisd sm".
func runSM(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	began := time.Now()
	o, err := parseSM(args, stdout, stderr)
	if err != nil {
		return err
	}
	level := slog.LevelInfo
	if o.once || o.json {
		level = slog.LevelWarn
	}
	s := &loneSM{o: o, args: args, began: began, log: newLog(stderr, level)}
	if s.core, err = o.config.Fabric.core(o.config.path); err != nil {
		return err
	}
	for _, n := range o.config.Fabric.notices() {
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
	s.routing = &routingNotes{engines: s.core.Engines, log: s.log}
	if o.partitions != "" {
		if s.partitions, err = openPartitions(o.partitions, s.log); err != nil {
			return hint(err, "nothing was started; correct the file")
		}
	}
	s.administration = newAdministration()
	s.partitioned()
	if s.answers, err = s.administration.agent(&o.config.Fabric, &s.core, s.ring.saKeys(), o.config.path); err != nil {
		return err
	}
	s.seen = seen.New(seen.Options{})
	s.marks = newMarks(s.seen, s.log)
	s.marks.Sealed = func() ([]sm.Fact, error) { return s.state.Load() }
	if s.watched, err = watch(o.config.Fabric.Watch, o.config.path, s.seen, s.marks, nil, s.log); err != nil {
		return err
	}
	defer s.watched.close()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := s.attach(ctx); err != nil {
		return err
	}
	spareMemory()
	if o.once {
		return s.runOnce(ctx, stdout)
	}
	return s.runOn(ctx, stdout)
}

func (s *loneSM) attach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	f := &s.o.config.Fabric
	port, err := openPort(ctx, f.Port, f.Timeout, agents(&s.core))
	if err != nil {
		return hint(fmt.Errorf("port %s: %w", f.Port, err), portHint(err, "--port"))
	}
	s.wire = &meter{Port: s.captures(port), began: s.began}
	if f.Enforcement != "verified" && s.partitions != nil {
		s.log.Warn("enforcement is accepted: switches are believed to enforce P_Keys without proof; for simulators only")
	}
	return nil
}

func (s *loneSM) driver() driver.Options {
	o := driver.Options{
		Port: s.wire.port(), Log: s.log, Timeout: s.o.config.Fabric.Timeout, Core: s.core,
		OnEvent: s.event, Inputs: s.marks.inputs,
		OnView: s.view, OnKeys: s.seen.OnKeys, OnSA: s.seen.OnSA,
	}
	if !s.o.once {
		o.SA, o.SASettings = s.answers, s.administration.settings
	}
	s.keepState(&o)
	if s.o.once && s.partitions == nil {
		o.Core.ViewEvery = max(o.Core.ViewEvery, time.Second) // views are not read before it is settled
	}
	s.keepRecord(&o)
	if s.partitions != nil {
		o.Core.IntentWait = forever // the first view as master makes an intent
		o.Inputs = s.partitions.inputs
	}
	return o
}

// sayKeys logs how devices are protected. Without a root nothing else is expected of a subnet manager that runs alone.
func (s *loneSM) sayKeys() {
	c := &s.o.config.Fabric.Keys
	level := slog.LevelWarn
	if !c.managesMKeys() && c.MKey == keyAuto {
		level = slog.LevelInfo
	}
	for _, n := range c.keyNotices(&s.core) {
		s.log.Log(context.Background(), level, n)
	}
}

func (s *loneSM) event(e sm.Event) {
	now := time.Now()
	s.phases.event(now, e)
	s.seen.OnEvent(e)
	s.marks.told.event(e)
	if s.partitions != nil {
		s.partitions.event(e)
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

func (s *loneSM) view(v *sm.View) {
	s.last = v
	s.seen.OnView(v)
	s.marks.view()
	s.routing.view(v)
	s.captureEnd(v)
	if err := s.ring.fill(); err != nil {
		s.log.Error("no new keys of devices were drawn", "error", err)
	}
	if s.partitions != nil && s.partitions.view(v) {
		s.since.begin(time.Now(), s.wire.requests())
	}
}

// runOnce brings the fabric up and reports.
func (s *loneSM) runOnce(ctx context.Context, stdout io.Writer) error {
	o := s.driver()
	o.Until = func(v *sm.View) bool {
		s.standby = v.State == ib.SMStandby || v.State == ib.SMNotActive
		return s.standby || v.Settled && (s.partitions == nil || s.partitions.inForce(v))
	}
	group, within := errgroup.WithContext(ctx)
	within, done := context.WithCancel(within)
	defer done()
	s.watched.serve(within, group)
	group.Go(func() error {
		defer done()
		return driver.Run(within, o, nil)
	})
	if err := group.Wait(); err != nil {
		return err
	}
	switch {
	case s.standby:
		return hint(errors.New("another subnet manager is master, so nothing was configured"),
			"stop the other one, or give a higher --priority; portcullisd sm without --once stands by")
	case ctx.Err() != nil:
		return errors.New("stopped before the fabric was settled")
	}
	r := s.report(s.last)
	if s.o.json {
		return r.writeJSON(stdout)
	}
	return r.writeTable(stdout)
}

// runOn manages the fabric until it is stopped.
func (s *loneSM) runOn(ctx context.Context, stdout io.Writer) error {
	group, ctx := errgroup.WithContext(ctx)
	ctx, done := context.WithCancel(ctx)
	defer done()
	// Events while the subnet manager ends are printed, too.
	printing, printed := context.WithCancel(context.WithoutCancel(ctx))
	defer printed()
	if s.o.json {
		s.out = newEventLines()
		group.Go(func() error { return s.out.write(printing, stdout) })
	}
	s.watched.serve(ctx, group)
	s.flushState(ctx, group)
	o := s.driver()
	if s.partitions != nil {
		o.Inputs = joined(ctx, group, s.partitions.inputs, s.marks.inputs)
	}
	hup := hangups()
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
func (s *loneSM) reloadOnSignal(ctx context.Context, hup chan os.Signal) error {
	onHangup(ctx, hup, func() {
		if s.partitions != nil {
			s.reload()
		}
		s.reconfigure(ctx)
	})
	return nil
}

// partitioned passes the settings of the partition file to subnet administration.
func (s *loneSM) partitioned() {
	if s.partitions != nil {
		s.administration.partition((*partitionFile)(s.partitions.now()))
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
	s.partitioned()
	s.log.Warn("partitions were read again", "file", s.o.partitions, "changed", changed)
}

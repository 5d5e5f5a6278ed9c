package smrole

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/fabric/owed"
	"portcullis/api/fabric/query"
	"portcullis/api/fabric/records"
	"portcullis/api/leader"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/topology"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/administration"
	"portcullis/cmd/portcullisd/config"
	"portcullis/cmd/portcullisd/inputs"
	"portcullis/cmd/portcullisd/readiness"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// undeclared is a declared topology that declares nothing.
type undeclared struct{}

func (undeclared) With(_ context.Context, c sm.Config) sm.Config { return c }
func (undeclared) SetRules(topology.Rules)                       {}
func (undeclared) OnEvent(sm.Event)                              {}
func (undeclared) OnView()                                       {}

// lines collects a log that is written while the test reads it.
type lines struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (l *lines) Write(p []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.buf.Write(p) }

func (l *lines) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.buf.String() }

// site is a role over a simulated fabric of a switch with four hosts, in this process.
type site struct {
	*Role
	t      *testing.T
	fabric *sim.Fabric
	log    *lines
	status *readiness.Status
	refuse []error // what opening the port fails with, one after the other
	opened []time.Duration
}

func newSite(t *testing.T, change func(*Options)) *site {
	t.Helper()
	list, err := netlist.Single(netlist.Shape{Hosts: 4, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, fabric: sim.New(list), log: &lines{}, status: readiness.New(func(string) {})}
	log := slog.New(slog.NewTextHandler(s.log, nil))
	c := config.Default()
	c.Fabric.SA.Enabled = false // the receivers of two lanes do not both end with the driver
	c.File = filepath.Join(t.TempDir(), "portcullisd.yaml")
	core, err := c.Fabric.Core(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	link, answers, began := &Link{}, administration.New(), time.Now()
	answers.Awaits = true
	o := Options{
		Config: c, InUse: config.NewInUse(core), Store: store.New(memory.New(time.Now), ""), Log: log, Now: time.Now,
		State: readiness.NewFabric(s.status, c.Fabric.SA.Enabled, log), Keys: func(string) {}, Link: link,
		Observer: query.New(query.Options{Hosts: link.Hosts, Cables: link.Cables, Tenants: link.Tenants}),
		Owed:     owed.New(log), Declared: undeclared{}, Administration: answers,
		Open: func(context.Context, *sm.Config) (transport.Port, error) {
			s.opened = append(s.opened, time.Since(began))
			if len(s.refuse) > 0 {
				err := s.refuse[0]
				s.refuse = s.refuse[1:]
				return nil, err
			}
			return s.fabric.Attach("sm", true)
		},
	}
	o.Marks = inputs.New(o.Observer, log)
	if change != nil {
		change(&o)
	}
	s.Role = New(o)
	return s
}

// run runs the role for some time, calls then, and ends it.
func (s *site) run(d time.Duration, then func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	<-time.After(d)
	synctest.Wait()
	then()
	cancel()
	if err := <-done; err != nil {
		s.t.Errorf("the role ended with %v", err)
	}
}

// obstacle returns what readiness says of the part sm, "" for nothing.
func (s *site) obstacle() string {
	all := s.status.Conditions(s.t.Context())
	i := slices.IndexFunc(all, func(c v1.Condition) bool { return c.Name == readiness.SM })
	if i < 0 {
		s.t.Fatalf("readiness has no part %s: %+v", readiness.SM, all)
	}
	return all[i].Detail
}

// The role brings a fabric up, and readiness, store and observer show it.
func TestBringsAFabricUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		s.Begin(t.Context())
		if got := s.obstacle(); got != readiness.Unattached {
			t.Errorf("before it attached readiness says %q", got)
		}
		s.run(10*time.Second, func() {
			if got := s.obstacle(); got != "" {
				t.Errorf("readiness says %q\n%s", got, s.log)
			}
			v, err := s.Observer.View()
			if err != nil || !v.Settled || v.State != ib.SMMaster || v.Fabric.NumNodes() != 5 {
				t.Errorf("view %+v, %v", v, err)
			}
			rec, err := records.SMs().Get(t.Context(), s.Store, records.Master)
			if err != nil || !rec.Value.Settled {
				t.Errorf("the store has %+v, %v", rec.Value, err)
			}
			if err := s.Marks.Alive(t.Context()); err != nil || s.Link.Load() == nil {
				t.Errorf("the loop: %v", err)
			}
		})
		if _, err := s.Observer.View(); err == nil {
			t.Error("the fabric is shown that is not managed any more")
		}
		if !strings.Contains(s.log.String(), "the fabric is settled") {
			t.Errorf("the log says\n%s", s.log)
		}
	})
}

// Where the port does not open, the role tries again after pauses that double. The reason is logged once, and is in readiness
// and store. The fabric is managed once the cause is gone.
func TestTriesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		gone := errors.New("no simulator listens")
		s.refuse = []error{gone, gone, gone}
		s.run(5*time.Second, func() {
			if got := s.obstacle(); got != gone.Error() {
				t.Errorf("readiness says %q", got)
			}
			rec, err := records.SMs().Get(t.Context(), s.Store, records.Master)
			if err != nil || rec.Value.State != "unreachable" || !slices.Equal(rec.Value.Problems, []string{gone.Error()}) {
				t.Errorf("the store has %+v, %v", rec.Value, err)
			}
			<-time.After(10 * time.Second)
			synctest.Wait()
			if got := s.obstacle(); got != "" {
				t.Errorf("the cause is gone, and readiness says %q\n%s", got, s.log)
			}
		})
		if want := []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second}; !slices.Equal(s.opened, want) {
			t.Errorf("opened at %v, want %v", s.opened, want)
		}
		if n := strings.Count(s.log.String(), "out of reach"); n != 1 {
			t.Errorf("the log tells %d times that the fabric is out of reach, want once:\n%s", n, s.log)
		}
	})
}

// candidate leads at once, and remembers how it stepped down.
type candidate struct{ rests []time.Duration }

func (*candidate) State() (leader.State, time.Duration) { return leader.State{}, 0 }

func (*candidate) Others(context.Context) ([]string, error) { return nil, nil }

func (c *candidate) StepDown(_ context.Context, rest time.Duration) error {
	c.rests = append(c.rests, rest)
	return nil
}

func (*candidate) Run(ctx context.Context, lead func(context.Context, *leader.Term) error) error {
	return lead(ctx, nil)
}

// Where one of several instances does not reach the fabric, another one is to lead, for as long as this one rests.
func TestYieldsWithoutAFabric(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &candidate{}
		s := newSite(t, func(o *Options) { o.Candidate, o.Name = c, "a" })
		s.refuse = []error{errors.New("no adapter"), errors.New("no adapter")}
		s.run(2*time.Second, func() {})
		if want := []time.Duration{time.Second, 2 * time.Second}; !slices.Equal(c.rests, want) {
			t.Errorf("it stepped down for %v, want %v", c.rests, want)
		}
		if !strings.Contains(s.log.String(), "another instance is to lead") {
			t.Errorf("the log says\n%s", s.log)
		}
	})
}

// What runs beside the Subnet Manager ends when leadership does, and the next leader does not wait for it.
func TestRunsBeside(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended, on := make(chan struct{}), make(chan struct{})
		s := newSite(t, func(o *Options) {
			o.Beside = func(ctx context.Context) {
				<-ctx.Done()
				close(ended)
				<-on
			}
		})
		term, end := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() { over <- s.manage(term, nil) }()
		<-time.After(time.Minute)
		synctest.Wait()
		select {
		case <-ended:
			t.Error("it ended before leadership")
		default:
		}
		end()
		<-ended
		if err := <-over; err != nil {
			t.Error(err)
		}
		close(on)
		s.beside.Wait()
	})
}

// A configuration that is read again changes the running Subnet Manager and the next attachment. One with an error changes
// nothing.
func TestReconfigure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, nil)
		put := func(text string) {
			t.Helper()
			if err := os.WriteFile(s.Config.File, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s.run(10*time.Second, func() {
			was := s.InUse.Core()
			put("fabric:\n  audit_period: 5m\n  health:\n    flapping: 3 in 1m disable\n")
			if err := s.Reconfigure(t.Context()); err != nil {
				t.Fatal(err)
			}
			now := s.InUse.Core()
			if now.Health == was.Health {
				t.Errorf("rules of health are %+v as before", now.Health)
			}
			if now.AuditPeriod != was.AuditPeriod || !strings.Contains(s.log.String(), "fabric.audit_period changed: restart to apply") {
				t.Errorf("the period of audits changed, or the log does not say that it waits:\n%s", s.log)
			}
			if !strings.Contains(s.log.String(), "the configuration was read again") {
				t.Errorf("the subnet manager did not take it:\n%s", s.log)
			}
			put("fabric:\n  audit_period: often\n")
			if err := s.Reconfigure(t.Context()); err == nil || s.InUse.Core().Health != now.Health {
				t.Errorf("with an error in it: %v", err)
			}
		})
	})
}

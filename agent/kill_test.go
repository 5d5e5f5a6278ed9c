package agent_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"portcullis/agent"
	"portcullis/api"
	"portcullis/api/admission"
	"portcullis/api/apitest"
	"portcullis/api/fabric/ledger"
	"portcullis/api/inventory"
	"portcullis/api/limit"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/attesttest"
	"portcullis/attest/tpm"
	"portcullis/attest/tpm/tpmtest"
)

const (
	childConfig = "PORTCULLIS_TEST_AGENT"      // what a child provisions, as JSON
	childWrite  = "PORTCULLIS_TEST_AGENT_DIES" // "before", "torn" or "after", and the number of a write
)

// TestMain is the agent when a test has started its own program again, so that it
// can be killed.
func TestMain(m *testing.M) {
	if text := os.Getenv(childConfig); text != "" {
		os.Exit(child(text))
	}
	os.Exit(m.Run())
}

func child(text string) int {
	o := agent.Options{Version: "v1-test", Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), Goal: agent.HandedOver}
	if err := json.Unmarshal([]byte(text), &o.Config); err != nil {
		panic(err)
	}
	if when, n, ok := strings.Cut(os.Getenv(childWrite), " "); ok {
		agent.SetWrite(&o, dyingWriter(when, n))
	}
	err := agent.Provision(context.Background(), o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return int(agent.ClassOf(err))
	}
	return 0
}

// dyingWriter kills this process at the n-th write of a file.
func dyingWriter(when, n string) func(path string, data []byte) error {
	die := func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} }
	writes := 0
	return func(path string, data []byte) error {
		if writes++; strconv.Itoa(writes) != n {
			return agent.WriteFile(path, data)
		}
		switch when {
		case "torn": // as far as it comes before it is renamed
			half := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"123")
			if err := os.WriteFile(half, data[:len(data)/2], 0o600); err != nil {
				panic(err)
			}
		case "after":
			if err := agent.WriteFile(path, data); err != nil {
				panic(err)
			}
		}
		die()
		return nil
	}
}

// realSite is the agent with a software TPM, and the real service over a store.
type realSite struct {
	t      *testing.T
	dev    *tpmtest.TPM
	store  *store.Store
	policy *attest.Policy
	config agent.Config
	spy    *spy // between agent and TPM

	mu    sync.Mutex // guards what follows
	svc   *admission.Service
	skew  time.Duration
	calls int
	// onCall is told of each call once the service is done with it; its answer is
	// sent when it returns, and not if it gives false.
	onCall func(n int, name string) bool
}

func newRealSite(t *testing.T) *realSite {
	t.Helper()
	s := &realSite{t: t, dev: tpmtest.New(t, tpmtest.Options{P256: true}), store: store.New(memory.New(time.Now), ""), policy: attest.DefaultPolicy()}
	s.policy.Assurance, s.policy.RequireLock = attest.AssuranceNone, false
	roots, err := s.dev.RootsPEM()
	must(t, err)
	must(t, s.policy.AddCertificates(roots))
	trusted := attesttest.References()[0]
	_, err = s.store.Update(t.Context(), func(tx *store.Tx) error {
		return admission.References().Put(tx, admission.ReferenceKey(trusted.Class, trusted.Version), trusted)
	})
	must(t, err)
	s.restart()
	s.populate()
	server := apitest.Start(t, &called{Service: s.svc, s: s}, func(o *api.Options) {
		many := limit.Rate{PerSecond: 1e9, Burst: 1e9}
		o.Limits.Requests, o.Limits.Attestations = many, many
	})
	l := &lab{t: t, tpm: s.dev}
	dir := t.TempDir()
	s.config = agent.DefaultConfig()
	s.config.Service, s.config.CA, s.config.Host = server.URL, server.CAFile, "compute-01"
	s.config.Sysfs, s.config.Procfs = filepath.Join(dir, "sys"), filepath.Join(dir, "proc")
	s.config.VendorTools, s.config.FWCTL = false, filepath.Join(dir, "fwctl")
	s.config.StateDir, s.config.Timeout = filepath.Join(dir, "state"), 2*time.Minute
	l.config = s.config
	l.plant("28.43.1014")
	must(t, s.dev.PlantEventLog(s.config.Sysfs))
	s.spy = newSpy(t, s.dev.Device())
	s.config.TPM = s.spy.device()
	return s
}

// restart makes another service over the same store, as a restart or a failover
// does.
func (s *realSite) restart() {
	many := limit.Rate{PerSecond: 1e9, Burst: 1e9}
	svc := admission.New(admission.Options{
		Store: s.store.Twin(), Policy: s.policy, Log: storetest.Quiet(), Now: s.now,
		SourceRate: many, AttemptRate: many, HostRate: many,
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.svc = svc
}

func (s *realSite) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.skew)
}

// later lets time pass for the service.
func (s *realSite) later(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skew += d
}

func (s *realSite) populate() {
	s.t.Helper()
	ctx := s.t.Context()
	file := fmt.Sprintf("hosts:\n- id: compute-01\n  ek_sha256: %s\n  hcas:\n  - {node_guid: 0x%016x, ports: [{port: 1, guid: 0x%016x, cable: 0x10/1}]}\n",
		s.dev.EKDigest(), uint64(base), uint64(base+1))
	_, err := s.svc.ImportInventory(ctx, "alice", []inventory.File{{Name: "hosts.yaml", Data: []byte(file)}}, v1.RepairTicket{}, false)
	must(s.t, err)
	_, err = s.svc.CreateTenant(ctx, "alice", v1.NewTenant{Name: "acme"})
	must(s.t, err)
	_, err = s.svc.CreateCluster(ctx, "alice", v1.NewCluster{Name: "train", Tenant: "acme"})
	must(s.t, err)
	s.assign()
}

func (s *realSite) assign() {
	s.t.Helper()
	_, err := s.svc.Assign(s.t.Context(), "alice", "compute-01", v1.Assignment{Cluster: "train"})
	must(s.t, err)
}

func (s *realSite) host() *v1.Host {
	s.t.Helper()
	h, err := s.svc.Host(s.t.Context(), "compute-01")
	must(s.t, err)
	return h
}

func (s *realSite) sealed() bool { return !s.host().Status.Sealed.IsZero() }

// boot begins anew: another boot of the host, an empty state folder, a new window.
func (s *realSite) boot() {
	s.t.Helper()
	must(s.t, s.dev.PowerCycle(s.t.Context()))
	must(s.t, os.RemoveAll(s.config.StateDir))
	s.assign()
}

// provision runs the agent in this process.
func (s *realSite) provision(goal agent.Goal) error {
	s.t.Helper()
	return agent.Provision(s.t.Context(), agent.Options{Config: s.config, Version: "v1-test", Log: slog.New(slog.NewTextHandler(s.t.Output(), nil)), Goal: goal})
}

// admit plays the fabric.
func (s *realSite) admit() {
	s.t.Helper()
	_, err := s.store.Update(s.t.Context(), func(tx *store.Tx) error {
		h, err := inventory.Hosts().Get(s.t.Context(), tx, "compute-01")
		if err != nil {
			return err
		}
		p := h.Value.Ports()[0]
		return ledger.Ports().Put(tx, p.GUID.String(), ledger.Port{Place: p.Cable, NodeGUID: base, HCACap: 32, SwitchCap: 32})
	})
	must(s.t, err)
	must(s.t, s.svc.Settle(s.t.Context()))
	grants, _, err := ledger.Grants().List(s.t.Context(), s.store, "")
	must(s.t, err)
	_, err = s.store.Update(s.t.Context(), func(tx *store.Tx) (err error) {
		for _, g := range grants {
			err = errors.Join(err, ledger.Memberships().Put(tx, g.Key, ledger.Membership{State: ledger.Applied, Revision: g.Modified}))
		}
		return err
	})
	must(s.t, err)
	must(s.t, s.svc.Settle(s.t.Context()))
}

// called is the service as agents call it.
type called struct {
	*admission.Service
	s *realSite
}

// now gives the service that answers at present.
func (c *called) now() *admission.Service {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.s.svc
}

var errCut = &admission.Error{Code: "cut", Status: admission.Unavailable, Detail: "cut"}

func answered[T any](c *called, name string, out *T, err error) (*T, error) {
	c.s.mu.Lock()
	c.s.calls++
	n, f := c.s.calls, c.s.onCall
	c.s.mu.Unlock()
	if f != nil && !f(n, name) {
		return nil, errCut
	}
	return out, err
}

func (c *called) OpenSession(ctx context.Context, req *attest.SessionRequest, source string) (*attest.Session, error) {
	out, err := c.now().OpenSession(ctx, req, source)
	return answered(c, "session", out, err)
}

func (c *called) SubmitEvidence(ctx context.Context, id string, channel []byte, ev *attest.Evidence) (*v1.AttestResult, error) {
	out, err := c.now().SubmitEvidence(ctx, id, channel, ev)
	return answered(c, "evidence", out, err)
}

func (c *called) SubmitSeal(ctx context.Context, id string, channel []byte, ev *attest.SealEvidence) (*v1.SealResult, error) {
	out, err := c.now().SubmitSeal(ctx, id, channel, ev)
	return answered(c, "seal", out, err)
}

func (c *called) RenewSeal(ctx context.Context, token, id string) (*attest.Seal, error) {
	out, err := c.now().RenewSeal(ctx, token, id)
	return answered(c, "seal-nonce", out, err)
}

func (c *called) HostStatusByToken(ctx context.Context, token string) (*v1.Host, error) {
	out, err := c.now().HostStatusByToken(ctx, token)
	return answered(c, "status", out, err)
}

// spy passes commands to a software TPM, one client at a time.
type spy struct {
	t    *testing.T
	path string
	to   string

	mu       sync.Mutex // guards what follows
	commands int
	// onAnswer is told of each command once the TPM has done it; the answer is passed
	// on when it returns, and not if it gives false.
	onAnswer func(n int, command uint32) bool
}

func newSpy(t *testing.T, device string) *spy {
	t.Helper()
	s := &spy{t: t, path: filepath.Join(tpmtest.ShortDir(t), "spy"), to: strings.TrimPrefix(device, "unix:")}
	l, err := net.Listen("unix", s.path)
	must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.serve(c)
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return s
}

func (s *spy) device() string { return "unix:" + s.path }

func (s *spy) serve(c net.Conn) {
	defer c.Close()
	dev, err := net.Dial("unix", s.to)
	if err != nil {
		return
	}
	defer dev.Close()
	for {
		command, err := readTPM(c)
		if err != nil {
			return
		}
		if _, err := dev.Write(command); err != nil {
			return
		}
		answer, err := readTPM(dev)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.commands++
		n, f := s.commands, s.onAnswer
		s.mu.Unlock()
		if f != nil && !f(n, binary.BigEndian.Uint32(command[6:])) {
			return
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

// readTPM reads one command or answer: tag, size, code, and the rest.
func readTPM(r io.Reader) ([]byte, error) {
	b := make([]byte, 10, 4096)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	b = b[:min(binary.BigEndian.Uint32(b[2:]), 4096)]
	_, err := io.ReadFull(r, b[10:])
	return b, err
}

// victim is an agent that is to be killed.
type victim struct {
	cmd     *exec.Cmd
	started chan struct{} // closed once there is a process
	once    sync.Once
}

func newVictim(cmd *exec.Cmd) *victim { return &victim{cmd: cmd, started: make(chan struct{})} }

func (v *victim) start() error {
	err := v.cmd.Start()
	if err == nil {
		close(v.started)
	}
	return err
}

// kill is called where the agent is waited for, so it was started, or is just being.
func (v *victim) kill() {
	<-v.started
	v.once.Do(func() { _ = v.cmd.Process.Kill() })
}

// point is where an agent is killed.
type point struct {
	write   string // before, torn, after: the n-th write
	command bool   // the TPM has done the n-th command
	call    bool   // the service has done the n-th call
	n       int
}

func (p point) String() string {
	switch {
	case p.command:
		return fmt.Sprintf("TPM command %d", p.n)
	case p.call:
		return fmt.Sprintf("call %d", p.n)
	default:
		return fmt.Sprintf("%s write %d", p.write, p.n)
	}
}

// killAt runs an agent as a process of its own, kills it at a point, and reports
// whether it came there, and how it ended.
func (s *realSite) killAt(p point) (killed bool, output string) {
	s.t.Helper()
	self, err := os.Executable()
	must(s.t, err)
	config, err := json.Marshal(s.config)
	must(s.t, err)
	var out strings.Builder
	v := newVictim(exec.CommandContext(s.t.Context(), self))
	v.cmd.Env = append(os.Environ(), childConfig+"="+string(config))
	v.cmd.Stderr = &out
	if p.write != "" {
		v.cmd.Env = append(v.cmd.Env, fmt.Sprintf("%s=%s %d", childWrite, p.write, p.n))
	}
	s.mu.Lock()
	s.calls = 0
	s.onCall = func(n int, _ string) bool {
		if !p.call || n < p.n {
			return true
		}
		v.kill()
		return false
	}
	s.mu.Unlock()
	s.spy.mu.Lock()
	s.spy.commands = 0
	s.spy.onAnswer = func(n int, _ uint32) bool {
		if !p.command || n < p.n {
			return true
		}
		v.kill()
		return false
	}
	s.spy.mu.Unlock()
	must(s.t, v.start())
	err = v.cmd.Wait()
	s.mu.Lock()
	s.onCall = nil
	s.mu.Unlock()
	s.spy.mu.Lock()
	s.spy.onAnswer = nil
	s.spy.mu.Unlock()
	if e, ok := errors.AsType[*exec.ExitError](err); ok && e.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true, out.String()
	}
	if err != nil {
		s.t.Fatalf("killed %v: the agent ended by itself: %v\n%s", p, err, out.String())
	}
	return false, out.String()
}

// TestKilledAnywhere kills agents at each write, TPM command and call of the service,
// and runs them again in the same boot: each ends handed over, without a reboot and
// with one seal, and is admitted.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	s := newRealSite(t)
	// One that nobody kills tells how many points there are.
	if killed, out := s.killAt(point{}); killed || !s.sealed() {
		t.Fatalf("nobody killed it, and it was not handed over:\n%s", out)
	}
	s.spy.mu.Lock()
	commands := s.spy.commands
	s.spy.mu.Unlock()
	calls := s.calls
	const writes = 3 // measured.json, handover.json, outcome.json
	if commands < 40 || calls != 3 {
		t.Fatalf("%d TPM commands and %d calls, want more than 40, and 3", commands, calls)
	}
	var points []point
	for n := range writes {
		for _, when := range []string{"before", "torn", "after"} {
			points = append(points, point{write: when, n: n + 1})
		}
	}
	for n := range calls {
		points = append(points, point{call: true, n: n + 1})
	}
	for n := range commands {
		// From the hand-over on all of them, also when little time is to be spent.
		if !testing.Short() || n%9 == 0 || n > commands-16 {
			points = append(points, point{command: true, n: n + 1})
		}
	}
	capped := 0
	for _, p := range points {
		s.boot()
		killed, out := s.killAt(p)
		if !killed {
			t.Errorf("%v: the agent never came there:\n%s", p, out)
			continue
		}
		if _, err := os.Stat(filepath.Join(s.config.StateDir, "handover.json")); err == nil && !s.sealed() {
			capped++
		}
		if err := s.provision(agent.HandedOver); err != nil || !s.sealed() {
			t.Errorf("%v: run again: sealed %t, %v\nthe first run:\n%s", p, s.sealed(), err, out)
			continue
		}
		left, err := filepath.Glob(filepath.Join(s.config.StateDir, ".*"))
		if err != nil || len(left) > 0 {
			t.Errorf("%v: left in the state folder: %v, %v", p, left, err)
		}
		if err := s.provision(agent.HandedOver); err != nil { // and it can be run once more
			t.Errorf("%v: run a third time: %v", p, err)
		}
	}
	t.Logf("killed at %d points, %d of them between the record of the hand-over and the seal", len(points), capped)
	if capped < 6 {
		t.Errorf("only %d agents were killed between the record of the hand-over and the seal", capped)
	}
	s.admit()
	must(t, s.provision(agent.Admitted))
	if p := s.host().Status.Phase; p != v1.PhaseAdmitted {
		t.Errorf("the host is %s", p)
	}
}

// killCapped kills an agent right after its register was capped: the TPM has done the
// last extension, and nobody told the agent.
func (s *realSite) killCapped() {
	s.t.Helper()
	s.boot()
	const pcrExtend, wanted = 0x182, 3 // start, statement, hand-over
	extended := 0
	self, err := os.Executable()
	must(s.t, err)
	config, err := json.Marshal(s.config)
	must(s.t, err)
	v := newVictim(exec.CommandContext(s.t.Context(), self))
	v.cmd.Env = append(os.Environ(), childConfig+"="+string(config))
	s.spy.mu.Lock()
	s.spy.onAnswer = func(_ int, command uint32) bool {
		if command == pcrExtend {
			extended++
		}
		if extended == wanted {
			v.kill()
		}
		return extended < wanted
	}
	s.spy.mu.Unlock()
	must(s.t, v.start())
	_ = v.cmd.Wait() // it was killed
	s.spy.mu.Lock()
	s.spy.onAnswer = nil
	s.spy.mu.Unlock()
	if extended != wanted || s.sealed() {
		s.t.Fatalf("%d extensions, sealed %t: want an agent killed at the cap", extended, s.sealed())
	}
}

func (s *realSite) record() string { return filepath.Join(s.config.StateDir, "handover.json") }

// change edits the record of a hand-over.
func (s *realSite) change(f func(map[string]any)) {
	s.t.Helper()
	b, err := os.ReadFile(s.record())
	must(s.t, err)
	var m map[string]any
	must(s.t, json.Unmarshal(b, &m))
	f(m)
	b, err = json.Marshal(m)
	must(s.t, err)
	must(s.t, os.WriteFile(s.record(), b, 0o600))
}

// TestGoesOn: what may happen between the cap and the next run, and the host is
// sealed all the same.
func TestGoesOn(t *testing.T) {
	t.Parallel()
	s := newRealSite(t)
	for _, c := range []struct {
		name string
		do   func(t *testing.T)
		then func(t *testing.T)
	}{
		{"nothing", func(*testing.T) {}, nil},
		{"the service was restarted", func(*testing.T) { s.restart() }, nil},
		{"the network was down for longer than the nonce is good", func(*testing.T) { s.later(20 * time.Minute) }, nil},
		{"and the host's clock is behind", func(*testing.T) {
			s.change(func(m map[string]any) { m["expires"] = time.Now().Add(24 * time.Hour) })
			s.later(11 * time.Minute)
		}, nil},
		{"the host's clock is ahead", func(*testing.T) {
			s.change(func(m map[string]any) { m["expires"] = time.Now().Add(-24 * time.Hour) })
		}, nil},
		{"the service ended with the seal in its hands", func(t *testing.T) {
			s.cutAt(t, "seal", func() { s.restart() })
		}, nil},
		{"somebody could read the record", func(t *testing.T) { must(t, os.Chmod(s.record(), 0o644)) }, func(t *testing.T) {
			info, err := os.Stat(s.record())
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the record has mode %v, %v", info.Mode(), err)
			}
		}},
		{"no adapter can be read any more", func(t *testing.T) {
			must(t, os.Rename(filepath.Join(s.config.Sysfs, "class"), filepath.Join(s.config.Sysfs, "hidden")))
		}, func(t *testing.T) {
			must(t, os.Rename(filepath.Join(s.config.Sysfs, "hidden"), filepath.Join(s.config.Sysfs, "class")))
		}},
		{"the disk is full", func(*testing.T) {}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.mu.Lock()
			s.skew = 0
			s.mu.Unlock()
			s.killCapped()
			c.do(t)
			o := agent.Options{Config: s.config, Version: "v1-test", Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Goal: agent.HandedOver}
			if c.name == "the disk is full" {
				agent.SetWrite(&o, func(string, []byte) error { return syscall.ENOSPC })
			}
			if err := agent.Provision(t.Context(), o); err != nil || !s.sealed() {
				t.Errorf("sealed %t, %v", s.sealed(), err)
			}
			if c.then != nil {
				c.then(t)
			}
		})
	}
}

// cutAt has the service do the next call of a name, and never answer it.
func (s *realSite) cutAt(t *testing.T, name string, then func()) {
	t.Helper()
	done := false
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onCall = func(_ int, called string) bool {
		if done || called != name {
			return true
		}
		done = true
		then()
		return false
	}
}

// TestNeedsAReboot lists where a hand-over that was cut off can not be brought to an
// end: the error says so, and nothing is sealed.
func TestNeedsAReboot(t *testing.T) {
	t.Parallel()
	s := newRealSite(t)
	bootID := filepath.Join(s.config.Procfs, "sys/kernel/random/boot_id")
	spent := func(t *testing.T, err error) {
		t.Helper()
		wantClass(t, err, agent.ClassReboot, "")
		wantHint(t, err, "reboot the host")
	}
	for _, c := range []struct {
		name string
		do   func(t *testing.T)
		text string
	}{
		{"the record is gone", func(t *testing.T) { must(t, os.Remove(s.record())) }, "the record of it is lost"},
		{"the record is cut off", func(t *testing.T) { must(t, os.Truncate(s.record(), 100)) }, "not as it was written"},
		{"the record is empty", func(t *testing.T) { must(t, os.Truncate(s.record(), 0)) }, "not as it was written"},
		{"the record is garbage", func(t *testing.T) { must(t, os.WriteFile(s.record(), []byte("\x00\xff{{{"), 0o600)) }, "not as it was written"},
		{"the record is a folder", func(t *testing.T) {
			must(t, os.Remove(s.record()))
			must(t, os.Mkdir(s.record(), 0o700))
		}, "not as it was written"},
		{"the record has another host's key", func(t *testing.T) {
			s.change(func(m map[string]any) { m["ak2"] = secondKey(t, m["open"].(string)) })
		}, "the attestation key that was kept"},
		{"the record is of another TPM", func(*testing.T) {
			s.change(func(m map[string]any) { m["ek_sha256"] = strings.Repeat("ab", 32) })
		}, "EK " + strings.Repeat("ab", 32)},
		{"the state folder is gone", func(t *testing.T) { must(t, os.RemoveAll(s.config.StateDir)) }, "no record of"},
		{"another kernel was started without a reset", func(t *testing.T) {
			was, err := os.ReadFile(bootID)
			must(t, err)
			t.Cleanup(func() { must(t, os.WriteFile(bootID, was, 0o644)) })
			must(t, os.WriteFile(bootID, []byte("00000000-0000-4000-8000-000000000000\n"), 0o644))
		}, "kexec"},
		{"the TPM was restarted, and its registers kept", func(*testing.T) {
			s.change(func(m map[string]any) { m["restart_count"] = 7 })
		}, "suspend"},
		{"the window is over", func(*testing.T) { s.later(2 * time.Hour) }, "takes no hand-over of it any more"},
		{"the host was released", func(t *testing.T) {
			_, err := s.svc.Release(t.Context(), "alice", "compute-01")
			must(t, err)
		}, "takes no hand-over of it any more"},
		{"the host was assigned again", func(*testing.T) { s.assign() }, "takes no hand-over of it any more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.mu.Lock()
			s.skew = 0
			s.mu.Unlock()
			s.killCapped()
			c.do(t)
			for range 2 { // a second try is told the same
				err := s.provision(agent.HandedOver)
				spent(t, err)
				wantClass(t, err, agent.ClassReboot, c.text)
			}
			if s.sealed() {
				t.Error("sealed")
			}
		})
	}
}

// secondKey makes the key of a hand-over in another TPM.
func secondKey(t *testing.T, open string) tpm.StoredAK {
	t.Helper()
	value, err := base64.StdEncoding.DecodeString(open)
	must(t, err)
	dev, err := tpm.Open(t.Context(), tpmtest.New(t, tpmtest.Options{}).Device())
	must(t, err)
	defer dev.Close()
	keys, err := dev.NewKeys(t.Context())
	must(t, err)
	ak, err := keys.NewAK(t.Context(), attest.DefaultAgentPCR, attest.CappedPCRValue(value))
	must(t, err)
	return ak.Stored()
}

// TestForeignState: what others could have written is not believed, and what is of
// another host or boot is not used; neither needs a reboot.
func TestForeignState(t *testing.T) {
	t.Parallel()
	s := newRealSite(t)
	t.Run("others can write to the record", func(t *testing.T) {
		s.killCapped()
		must(t, os.Chmod(s.record(), 0o666))
		err := s.provision(agent.HandedOver)
		wantClass(t, err, agent.ClassOther, "others can write to it")
		wantHint(t, err, "mode 600")
		must(t, os.Chmod(s.record(), 0o600))
		must(t, s.provision(agent.HandedOver))
	})
	t.Run("others can write to the folder", func(t *testing.T) {
		s.killCapped()
		must(t, os.Chmod(s.config.StateDir, 0o777))
		err := s.provision(agent.HandedOver)
		wantClass(t, err, agent.ClassOther, "others can write to it")
		wantHint(t, err, "chmod 700")
		must(t, os.Chmod(s.config.StateDir, 0o700))
		must(t, s.provision(agent.HandedOver))
	})
	t.Run("the configuration is of another host", func(t *testing.T) {
		s.killCapped()
		s.config.Host = "compute-02"
		err := s.provision(agent.HandedOver)
		s.config.Host = "compute-01"
		wantClass(t, err, agent.ClassUsage, "handed over as that of host compute-01")
		must(t, s.provision(agent.HandedOver))
	})
	t.Run("of the last boot", func(t *testing.T) {
		s.killCapped()
		kept, err := os.ReadFile(s.record())
		must(t, err)
		s.boot()
		must(t, os.Mkdir(s.config.StateDir, 0o700))
		must(t, os.WriteFile(s.record(), kept, 0o600))
		must(t, s.provision(agent.HandedOver))
		if !s.sealed() {
			t.Error("not sealed")
		}
	})
	t.Run("of another host's disk", func(t *testing.T) {
		s.killCapped()
		s.change(func(m map[string]any) { m["host"], m["open"] = "compute-09", make([]byte, 32) })
		kept, err := os.ReadFile(s.record())
		must(t, err)
		s.boot()
		must(t, os.Mkdir(s.config.StateDir, 0o700))
		must(t, os.WriteFile(s.record(), kept, 0o600))
		must(t, s.provision(agent.HandedOver))
	})
	t.Run("garbage, before anything was capped", func(t *testing.T) {
		s.boot()
		must(t, os.Mkdir(s.config.StateDir, 0o700))
		for _, name := range []string{"handover.json", "measured.json", "locked.json", "outcome.json"} {
			must(t, os.WriteFile(filepath.Join(s.config.StateDir, name), []byte("{\"digests\": 7"), 0o600))
		}
		must(t, s.provision(agent.HandedOver))
	})
}

// TestFullDisk: each write fails by itself. Nothing is lost, and a run with room goes
// on in the same boot.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := newRealSite(t)
	for n, name := range []string{"measured.json", "handover.json", "outcome.json"} {
		s.boot()
		writes := 0
		o := agent.Options{Config: s.config, Version: "v1-test", Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Goal: agent.HandedOver}
		agent.SetWrite(&o, func(path string, data []byte) error {
			if writes++; writes > n {
				if writes == n+1 && filepath.Base(path) != name {
					t.Errorf("write %d is of %s, want %s", writes, path, name)
				}
				return syscall.ENOSPC
			}
			return agent.WriteFile(path, data)
		})
		err := agent.Provision(t.Context(), o)
		if name == "outcome.json" {
			must(t, err) // what is only told is no reason to fail
			continue
		}
		wantClass(t, err, agent.ClassOther, "no space left")
		wantHint(t, err, "make room")
		if s.sealed() {
			t.Errorf("%s: sealed", name)
		}
		must(t, s.provision(agent.HandedOver))
	}
}

// TestAnotherAgentRuns: the second of two is refused at once, and says who has the
// folder; when the first was killed, nothing of it is in the way.
func TestAnotherAgentRuns(t *testing.T) {
	t.Parallel()
	s := newRealSite(t)
	var second error
	s.onCall = func(n int, _ string) bool {
		if n == 1 {
			second = s.provision(agent.HandedOver)
		}
		return true
	}
	must(t, s.provision(agent.HandedOver))
	wantClass(t, second, agent.ClassOther, fmt.Sprintf("another portcullis-agent, process %d, uses", os.Getpid()))
	wantHint(t, second, "wait for it to end")
	s.killCapped()
	must(t, s.provision(agent.HandedOver))
	for _, goal := range []agent.Goal{agent.Attested, agent.Locked, agent.Opened} {
		wantClass(t, s.provision(goal), agent.ClassReboot, "nothing more can be attested")
	}
	must(t, s.provision(agent.HandedOver))
	if !slices.Contains([]v1.Phase{v1.PhaseVerified, v1.PhaseGranting}, s.host().Status.Phase) {
		t.Errorf("the host is %s", s.host().Status.Phase)
	}
}

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "portcullis/api/v1"
)

const rack = `hosts:
- id: compute-1
  ek_sha256: "1111111111111111111111111111111111111111111111111111111111111111"
  rack: r1
  hcas:
  - node_guid: 0x0000000000200000
    ports:
    - {port: 1, guid: 0x0000000000200001, cable: 0x0000000000100000/1}
- id: compute-2
  ek_sha256: "2222222222222222222222222222222222222222222222222222222222222222"
  rack: r1
  hcas:
  - node_guid: 0x0000000000300000
    ports:
    - {port: 1, guid: 0x0000000000300001, cable: 0x0000000000100000/2}
`

// nobody is a fabric port that nothing listens on.
func nobody() string { return fmt.Sprintf("ibsim:portcullisd-test-%d-nobody/", os.Getpid()) }

// Changes by the API survive a power cut; without a fabric the service runs and says why no host is admitted.
func TestStateSurvives(t *testing.T) {
	t.Parallel()
	dir, address := install(t, "--fabric-port", nobody())
	d := start(t, dir)
	c, ctx := operator(t, dir, address), t.Context()

	report, err := c.Inventory().Import(ctx, []v1.InventoryFile{{Name: "rack.yaml", Content: rack}}, v1.RepairTicket{}, false)
	if err != nil || len(report.Added) != 2 {
		t.Fatalf("import: %+v, %v", report, err)
	}
	if _, err := c.Tenants().Create(ctx, v1.NewTenant{Name: "acme"}); err != nil {
		t.Fatal(err)
	}
	cluster, err := c.Clusters().Create(ctx, v1.NewCluster{Name: "train", Tenant: "acme"})
	if err != nil || !cluster.PKey.Valid() {
		t.Fatalf("cluster %+v, %v", cluster, err)
	}
	if _, err := c.Hosts().Assign(ctx, "compute-1", v1.Assignment{Cluster: "train"}); err != nil {
		t.Fatal(err)
	}
	before, err := c.Hosts().All(ctx)
	if err != nil || len(before) != 2 || before[0].Status.Phase != v1.PhaseAwaiting {
		t.Fatalf("hosts %+v, %v; want compute-1 awaiting", before, err)
	}

	d.kill()
	d = start(t, dir)
	after, err := c.Hosts().All(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(after, before); diff != "" {
		t.Errorf("hosts changed by a restart (-after +before):\n%s", diff)
	}
	if got, err := c.Clusters().Get(ctx, "train"); err != nil || got.PKey != cluster.PKey {
		t.Errorf("cluster %+v, %v; want P_Key %v", got, err, cluster.PKey)
	}
	eventually(t, "the state of the fabric at systemd", func() (bool, string) {
		line := d.awaitStatus("STATUS=serving, but ")
		return strings.Contains(line, "; sm: no simulator listens"), line
	})
	eventually(t, "word of the missing simulator", func() (bool, string) {
		state, err := c.SM().Get(ctx)
		return err == nil && state.State == "unreachable" && len(state.Problems) > 0 && strings.Contains(state.Problems[0], "portcullisd-test-"), fmt.Sprint(state, err)
	})
	if n := strings.Count(d.lines.String(), "out of reach"); n != 1 {
		t.Errorf("the log tells %d times that the fabric is out of reach, want once:\n%s", n, d.lines)
	}
	d.stop()
	d.await("STOPPING=1")
}

func TestSecondServiceIsRefused(t *testing.T) {
	t.Parallel()
	dir, _ := install(t, "--fabric-port", nobody())
	d := start(t, dir)
	out := refused(t, dir)
	for _, want := range []string{"state", fmt.Sprint(d.cmd.Process.Pid), "portcullisd: hint: one service holds a state directory"} {
		if !strings.Contains(out, want) {
			t.Errorf("refusal does not say %q:\n%s", want, out)
		}
	}
}

func TestBusyPortIsRefused(t *testing.T) {
	t.Parallel()
	dir, address := install(t, "--fabric-port", nobody())
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out := refused(t, dir)
	for _, want := range []string{"portcullisd: listen on " + address + ": another program listens there", "portcullisd: hint: "} {
		if !strings.Contains(out, want) {
			t.Errorf("refusal does not say %q:\n%s", want, out)
		}
	}
}

func TestUnreadableKeyIsRefused(t *testing.T) {
	t.Parallel()
	dir, _ := install(t, "--fabric-port", nobody())
	if err := os.Chmod(filepath.Join(dir, "tls/server.key"), 0); err != nil {
		t.Fatal(err)
	}
	var wrapper []string
	if os.Getuid() == 0 {
		// Root reads every file, unless it drops the privilege.
		wrapper = []string{"setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"}
	}
	out := refused(t, dir, wrapper...)
	for _, want := range []string{"server.key: permission denied", "portcullisd: hint: the service runs as user"} {
		if !strings.Contains(out, want) {
			t.Errorf("refusal does not say %q:\n%s", want, out)
		}
	}
}

// SIGHUP takes new tokens; a broken file leaves the old ones in force.
func TestReload(t *testing.T) {
	t.Parallel()
	dir, address := install(t, "--fabric-port", nobody())
	d := start(t, dir)
	tokens := filepath.Join(dir, "tokens.yaml")
	old, err := os.ReadFile(tokens)
	if err != nil {
		t.Fatal(err)
	}
	var token, entry strings.Builder
	cmd := exec.Command("portcullisd", "token", "--name", "vic", "--role", "viewer")
	cmd.Stdout, cmd.Stderr = &token, &entry
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	_, lines, _ := strings.Cut(entry.String(), "\n")
	vic := withToken(t, dir, address, strings.TrimSpace(token.String()))
	if _, err := vic.Hosts().All(t.Context()); err == nil {
		t.Fatal("an unknown token was accepted")
	}
	write(t, tokens, string(old)+lines)
	d.hup()
	if _, err := vic.Hosts().All(t.Context()); err != nil {
		t.Errorf("after a reload: %v", err)
	}
	write(t, tokens, "tokens: nonsense\n")
	d.hup()
	if _, err := vic.Hosts().All(t.Context()); err != nil {
		t.Errorf("after a reload of nonsense: %v", err)
	}
	if !strings.Contains(d.lines.String(), "what was in use stays in use") {
		t.Errorf("the log does not tell of the broken file:\n%s", d.lines)
	}
}

func (d *process) hup() {
	d.t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		d.t.Fatal(err)
	}
	d.await("RELOADING=1")
	d.await("READY=1")
}

func TestWatchdog(t *testing.T) {
	t.Parallel()
	dir, _ := install(t, "--fabric-port", nobody())
	d := start(t, dir, "WATCHDOG_USEC=300000")
	d.await("WATCHDOG=1")
	d.await("WATCHDOG=1")
}

// A passed socket is served in place of the configured address. Package systemd has those that are refused.
func TestSocketActivation(t *testing.T) {
	t.Parallel()
	dir, address := install(t, "--fabric-port", nobody())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	passed := l.Addr().String()
	l.Close()
	// LISTEN_PID is the process itself, so a shell sets it and becomes
	// the service.
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ exec portcullisd --config "$0"`, filepath.Join(dir, "portcullisd.yaml"))
	cmd.ExtraFiles = []*os.File{f}
	d := launch(t, cmd, "LISTEN_FDS=1", "LISTEN_FDNAMES=api")
	d.await("READY=1")
	if _, err := operator(t, dir, passed).Hosts().All(t.Context()); err != nil {
		t.Errorf("over the passed socket: %v", err)
	}
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("the configured address is served, too")
	}
}

//go:build vm

package vm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/packaging/testenv"
	"portcullis/packaging/vm/machine"
)

// site is what machines are hosts of: a simulated fabric, the service with its Subnet Manager, and two operators. All of it
// are programs on this machine, on loopback.
type site struct {
	t        *testing.T
	dir      string
	url      string
	fabric   string // of the simulator's socket
	ca       string
	operator string // files of tokens
	second   string
	service  *output // what the service says
}

// GUIDs and names of the fabric: a switch, the adapter of the Subnet Manager, and the host's.
const (
	hostID      = "compute-01"
	hostGUID    = "0x0020000000000100"
	hostPort    = "0x0020000000000101"
	switchGUID  = "0x0010000000000001"
	hostNode    = "h1"
	managerNode = "sm"
	clusterName = "lattice"
	hostFabric  = "switchguid=" + switchGUID + "\nSwitch 4 \"leaf\"\n[1] \"sm\"[1]\n[2] \"h1\"[1]\n\n" +
		"caguid=0x0020000000000000\nCa 1 \"sm\"\n[1] \"leaf\"[1]\n\ncaguid=" + hostGUID + "\nCa 1 \"h1\"\n[1] \"leaf\"[2]\n"
)

// gateway is this machine as those see it that are on qemu's user network.
const gateway = "10.0.2.2"

// newSite starts a site whose inventory has one host, with a TPM, and an adapter behind the socket of qemu.
func newSite(t *testing.T, tpm *machine.TPM, adapter string) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir()}
	s.fabric = filepath.Join(s.dir, "fabric")
	s.ca = filepath.Join(s.dir, "etc/tls/ca.pem")
	s.operator, s.second = filepath.Join(s.dir, "etc/operator.token"), filepath.Join(s.dir, "second.token")
	listen := testenv.Address(t)
	s.url = "https://" + listen
	s.simulate(adapter)
	manager := "ibsim:" + s.fabric + "/" + managerNode
	command(t, program(t, "portcullisd"), "init", "--dir", filepath.Join(s.dir, "etc"), "--names", "localhost,127.0.0.1,"+gateway,
		"--listen", listen, "--state-dir", filepath.Join(s.dir, "state"), "--fabric-port", manager)
	s.addOperator("second", s.second)
	s.write("vendor.pem", string(tpm.Roots(t)))
	s.write("portcullisd.yaml", s.configuration(listen, manager))
	s.serve()
	s.write("inventory.yaml", fmt.Sprintf("hosts:\n  - id: %s\n    ek_sha256: %s\n    hcas:\n"+
		"      - {node_guid: %[3]s, system_image_guid: %[3]s, ports: [{port: 1, guid: %[4]s}]}\n"+
		"cables:\n  - {guid: %[4]s, switch: %[5]s, port: 2}\n", hostID, tpm.EK(t), hostGUID, hostPort, switchGUID))
	s.do("inventory", "import", filepath.Join(s.dir, "inventory.yaml"))
	s.do("tenant", "create", "physics")
	s.do("cluster", "create", clusterName, "--tenant", "physics")
	return s
}

// configuration quotes every register that a boot loader of TestBoots measures into.
func (s *site) configuration(listen, manager string) string {
	etc := filepath.Join(s.dir, "etc")
	return fmt.Sprintf(`listen: %s
state_dir: %s
tls: {cert: %[3]s/tls/server.pem, key: %[3]s/tls/server.key}
tokens: %[3]s/tokens.yaml
fabric: {port: %[4]q, keys: {root: %[3]s/keys.root}}
attestation:
  pcrs: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14]
  ek: {roots: [%[5]s/vendor.pem]}
  assurance: none
  require_lock: false
`, listen, filepath.Join(s.dir, "state"), etc, manager, s.dir)
}

// addOperator adds a token to those that init made.
func (s *site) addOperator(name, file string) {
	s.t.Helper()
	token := strings.TrimSpace(command(s.t, program(s.t, "portcullisd"), "token", "--name", name, "--role", "operator"))
	must(s.t, os.WriteFile(file, []byte(token+"\n"), 0o600))
	sum := sha256.Sum256([]byte(token))
	tokens, err := os.OpenFile(filepath.Join(s.dir, "etc/tokens.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	must(s.t, err)
	_, err = fmt.Fprintf(tokens, "- {name: %s, role: operator, sha256: %s}\n", name, hex.EncodeToString(sum[:]))
	must(s.t, err)
	must(s.t, tokens.Close())
}

func (s *site) write(name, content string) {
	s.t.Helper()
	must(s.t, os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o600))
}

// serve starts the service.
func (s *site) serve() {
	s.service = background(s.t, exec.Command(program(s.t, "portcullisd"), "--config", filepath.Join(s.dir, "portcullisd.yaml")))
	eventually(s.t, 30*time.Second, "the service answers", s.service, func() bool {
		_, err := s.try(s.operator, "host", "list")
		return err == nil
	})
}

// try runs the command line with a token, and returns what it printed.
func (s *site) try(token string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	args = append(args, "--service", s.url, "--ca", s.ca, "--token-file", token)
	cmd := exec.CommandContext(ctx, program(s.t, "portcullis"), args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("portcullis %s: %w: %s", strings.Join(args[:2], " "), err, said.String())
	}
	return out.String(), nil
}

// do runs the command line as the first operator; it must succeed.
func (s *site) do(args ...string) string {
	s.t.Helper()
	out, err := s.try(s.operator, args...)
	must(s.t, err)
	return out
}

// host returns what the service says of the host.
func (s *site) host() (h v1.Host, err error) {
	out, err := s.try(s.operator, "host", "show", hostID, "-o", "json")
	if err == nil {
		err = json.Unmarshal([]byte(out), &h)
	}
	return h, err
}

// assign wants the host in its cluster and opens a window.
func (s *site) assign() error {
	_, err := s.try(s.operator, "host", "assign", hostID, "--cluster", clusterName)
	return err
}

// release withdraws the admission and returns when tables were read back.
func (s *site) release() error {
	_, err := s.try(s.operator, "host", "release", hostID, "--yes", "--wait")
	return err
}

// refused tests that the host's last evidence was refused for a reason, and the detail has the words.
func (s *site) refused(t *testing.T, reason string, words ...string) {
	t.Helper()
	h, err := s.host()
	must(t, err)
	d := h.Status.LastDenial
	if d == nil || d.Code != reason {
		t.Fatalf("the last refusal is %+v, want reason %q", d, reason)
	}
	for _, w := range words {
		if !strings.Contains(d.Detail, w) {
			t.Errorf("the refusal says %q, want %q in it", d.Detail, w)
		}
	}
}

// learn learns reference values of the boot that the host was refused with, which the same operator may not approve, and the
// second does.
func (s *site) learn() error {
	out, err := s.try(s.operator, "reference", "learn", "default", "--host", hostID, "--reason", "first boot", "-o", "json")
	if err != nil {
		return err
	}
	var set v1.Reference
	if err := json.Unmarshal([]byte(out), &set); err != nil {
		return err
	}
	if _, err := s.try(s.operator, "reference", "approve", set.Name); err == nil {
		return fmt.Errorf("who learned %s could approve it", set.Name)
	}
	_, err = s.try(s.second, "reference", "approve", set.Name)
	return err
}

// differing tests that the host's last boot differs from a set in exactly these registers.
func (s *site) differing(t *testing.T, set string, registers ...int) {
	t.Helper()
	if found := s.differences(t, set); !slices.Equal(found, registers) {
		t.Errorf("the boot differs from %s in PCRs %v, want %v", set, found, registers)
	}
}

// differences returns the registers in which the host's last boot differs from a set, ascending.
func (s *site) differences(t *testing.T, set string) []int {
	t.Helper()
	out, err := s.try(s.operator, "reference", "diff", set, hostID, "-o", "json")
	if err == nil {
		t.Fatalf("the boot does not differ from %s: %s", set, out)
	}
	var diff v1.ReferenceDiff
	if err := json.Unmarshal([]byte(out), &diff); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	var found []int
	for _, d := range diff.Differences {
		found = append(found, d.PCR)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// background starts a program that ends with the test, and returns what it says.
func background(t *testing.T, cmd *exec.Cmd) *output {
	t.Helper()
	said := &output{}
	cmd.Stdout, cmd.Stderr = said, said
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s said at the end:\n%s", filepath.Base(cmd.Path), lastLines(said.String(), 30))
		}
	})
	return said
}

// output keeps what a program writes while it runs.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

var _ io.Writer = (*output)(nil)

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func eventually(t *testing.T, limit time.Duration, what string, said *output, condition func() bool) {
	t.Helper()
	tick, late := time.NewTicker(50*time.Millisecond), time.After(limit)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not within %v: %s; it said:\n%s", limit, what, lastLines(said.String(), 30))
		}
	}
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/transport/ibsim"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// call runs the program to its end.
func call(t testing.TB, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, complaint bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(stdin), &out, &complaint)
	return code, out.String(), complaint.String()
}

// socketName is unique to a test.
func socketName(t testing.TB) string {
	return fmt.Sprintf("psim-%d-%s", os.Getpid(), strings.ReplaceAll(t.Name(), "/", "-"))
}

// netlistFile generates a small fabric into a file.
func netlistFile(t testing.TB, kind ...string) string {
	t.Helper()
	code, out, complaint := call(t, "", append([]string{"generate"}, kind...)...)
	if code != exitOK {
		t.Fatalf("generate: %d %s", code, complaint)
	}
	path := filepath.Join(t.TempDir(), "fabric.net")
	if err := os.WriteFile(path, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMistakes(t *testing.T) {
	good := netlistFile(t, "single", "--hosts", "2")
	bad := filepath.Join(t.TempDir(), "bad.net")
	if err := os.WriteFile(bad, []byte("Ca 1 \"a\"\n[7] \"b\"[1]\nnonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		args []string
		code int
		want []string
	}{
		{"no command", nil, exitUsage, []string{"want a command: run, generate, drill or sysfs", "hint: portcullis-sim --help"}},
		{"unknown command", []string{"fly"}, exitUsage, []string{`unknown command "fly"`}},
		{"unknown flag", []string{"run", "--fly"}, exitUsage, []string{"unknown flag: --fly", "hint: portcullis-sim run --help"}},
		{"no netlist", []string{"run"}, exitUsage, []string{"want one netlist"}},
		{"missing file", []string{"run", "/no/such.net"}, exitError, []string{"/no/such.net: no such file"}},
		{"broken netlist", []string{"run", bad}, exitError, []string{"bad.net:2: want a port from 1 to 1", `bad.net:3: unknown statement "nonsense"`}},
		{"long socket name", []string{"run", good, "--socket", strings.Repeat("s", 99)}, exitError, []string{"at most 80 bytes"}},
		{"a card's key that is none", []string{"run", good, "--socket", socketName(t), "--cards", t.TempDir(), "--card-key", "c0ffee00-1122-3344-5566-778899aabbcc=" + bad}, exitError, []string{"no PEM block"}},
		{"a card's key without UUID", []string{"run", good, "--socket", socketName(t), "--cards", t.TempDir(), "--card-key", bad}, exitUsage, []string{"want UUID=FILE"}},
		{"a card's version that is none", []string{"run", good, "--socket", socketName(t), "--cards", t.TempDir(), "--firmware", "new"}, exitUsage, []string{"--firmware: "}},
		{"unknown kind", []string{"generate", "moebius"}, exitUsage, []string{`unknown kind "moebius": want single, ft2`}},
		{"no kind", []string{"generate"}, exitUsage, []string{"want one kind"}},
		{"bad shape", []string{"generate", "ft2", "--hosts", "99999"}, exitError, []string{"99999 hosts, want 1 to 40000"}},
		{"number that is none", []string{"generate", "ft2", "--hosts", "many"}, exitUsage, []string{`invalid argument "many"`}},
		{"no drill", []string{"drill"}, exitUsage, []string{"want threats, such as T17 or T1-T16, or all"}},
		{"unknown drill", []string{"drill", "T0"}, exitUsage, []string{`no drill "T0": want T17, T1-T16 or all`}},
		{"unknown control", []string{"drill", "T1", "--without", "hope"}, exitUsage, []string{`no control "hope"`, "drill list names all"}},
		{"sysfs of nothing", []string{"sysfs", good}, exitUsage, []string{"want at least one --hca, and --out"}},
		{"sysfs of unknown nodes", []string{"sysfs", good, "--hca", "x", "--hca", "y", "--out", t.TempDir()}, exitError, []string{`has no node "x"`, `has no node "y"`}},
		{"sysfs of a switch", []string{"sysfs", good, "--hca", "leaf1", "--out", t.TempDir()}, exitError, []string{"is a switch, want an HCA"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, out, complaint := call(t, "", tt.args...)
			if code != tt.code || out != "" {
				t.Errorf("exit code %d, want %d; standard output %q", code, tt.code, out)
			}
			for _, want := range tt.want {
				if !strings.Contains(complaint, want) {
					t.Errorf("standard error %q does not say %q", complaint, want)
				}
			}
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"run", "--help"}, {"generate", "--help"}, {"drill", "--help"}, {"sysfs", "--help"}, {"--version"}, {"version"}} {
		code, out, complaint := call(t, "", args...)
		if code != exitOK || complaint != "" || !strings.Contains(out, "portcullis-sim") {
			t.Errorf("%v: exit code %d, %q, %q", args, code, out, complaint)
		}
	}
}

func TestGenerateEveryKind(t *testing.T) {
	for _, k := range kinds {
		code, out, complaint := call(t, "", "generate", k.name)
		if code != exitOK {
			t.Errorf("generate %s: %d %s", k.name, code, complaint)
			continue
		}
		if l, err := netlist.Parse(k.name, []byte(out)); err != nil || l.Nodes[0].Name != "sm" {
			t.Errorf("generate %s: %v", k.name, err)
		}
	}
}

// server runs "portcullis-sim run" until the end of the test. The returned function sends a console command and returns its
// answer.
func server(t testing.TB, file, socket string) func(command string) string {
	t.Helper()
	// Not t.Context, which ends before the clients are closed.
	ctx, cancel := context.WithCancel(context.Background())
	in, stdin := io.Pipe()
	stdout, out := io.Pipe()
	var complaint bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"run", file, "--socket", socket}, in, out, &complaint)
		out.Close()
	}()
	t.Cleanup(func() {
		cancel() // as Ctrl-C does
		if got := <-code; got != exitOK || complaint.Len() > 0 {
			t.Errorf("exit code %d: %s", got, complaint.String())
		}
		stdin.Close()
	})
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "ready: ") {
		t.Fatalf("the simulator did not become ready: %q %s", lines.Text(), complaint.String())
	}
	return func(command string) string {
		if _, err := io.WriteString(stdin, command+"\n"); err != nil {
			t.Fatal(err)
		}
		lines.Scan()
		return lines.Text()
	}
}

func TestRunServesClientsOnce(t *testing.T) {
	file, socket := netlistFile(t, "single", "--hosts", "3"), socketName(t)
	server(t, file, socket)
	p, err := ibsim.Dial(t.Context(), ibsim.Options{Socket: socket, Node: "h2", AsSM: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.GUID().String(); got != "0x0020000000000201" {
		t.Errorf("attached to port %s", got)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	code, _, complaint := call(t, "", "run", file, "--socket", socket)
	if want := fmt.Sprintf("a simulator listens on socket %q already", socket); code != exitError || !strings.Contains(complaint, want) {
		t.Errorf("second instance: exit code %d, %q", code, complaint)
	}
}

func TestConsole(t *testing.T) {
	send := server(t, netlistFile(t, "single", "--hosts", "3"), socketName(t))
	for _, tt := range []struct{ command, want string }{
		{"unlink h1 1", "ok"},
		{"unlink h1 1", `error: unlink: port 1 of "h1" has no cable`},
		{"relink h1 1 leaf1 9", "ok"},
		{"relink h1 x leaf1 9", `error: port "x": want a decimal number, or 0x and hexadecimal digits`},
		{"unlink h1 300", `error: port "300": value out of range`},
		{"reboot h2", "ok"},
		{"silence h2", "ok"},
		{"heal h2", "ok"},
		{"loss h2 50", "ok"},
		{"loss h2 101", `error: loss "101": want a number from 0 to 100`},
		{"delay h2 5ms", "ok"},
		{"delay h2 soon", `error: delay "soon": want a duration such as 5ms`},
		{"duplicate h2 10", "ok"},
		{"duplicate h2 some", `error: duplicate "some": want a number from 0 to 100`},
		{"slow leaf1 20us", "ok"},
		{"slow leaf1 -1s", `error: slow "-1s": want a duration such as 5ms`},
		{"slow leaf9 1s", `error: set fault: unknown node: "leaf9" is not in the netlist`},
		{"reboot h9", `error: reboot: unknown node: "h9" is not in the netlist`},
		{"reboot", "error: " + errCommand.Error()},
		{"dance", "error: " + errCommand.Error()},
	} {
		if got := send(tt.command); got != tt.want {
			t.Errorf("%q is answered %q, want %q", tt.command, got, tt.want)
		}
	}
}

// The commands of ibsim, as its users and their scripts write them.
func TestIbsimCommands(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("# a comment\nUnlink \"h2\"[1]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	said := []struct{ command, want string }{
		{`Start`, "ok"},
		{`Unlink "h1"[1]`, "ok"},
		{`ReLink "h1"[1]`, "ok"},
		{`ReLink "h1"[1]`, `error: restore: no cable was pulled out of "h1" there, or another is in its place`},
		{`Unlink "leaf1"`, "ok"},
		{`ReLink "leaf1"`, "ok"},
		{`Unlink "h1"[1]`, "ok"},
		{`Link "h1"[1] "leaf1"[30]`, "ok"},
		{`Clear "h1"[1]`, "ok"},
		{`Clear "h3"`, "ok"},
		{`Guid "h3" 0x77`, "ok"},
		{`Baselid "h3"[1] 7 1`, "ok"},
		{`Error "h3"[1] 20`, "ok"},
		{`Route 7 9`, "\"h3\"[1]\nerror: route: leaf1 has no port for LID 9"},
		{`!` + script, "ok"},
		{`!/no/such/file`, "error: script: open /no/such/file: no such file or directory"},
		{`Attached`, "0 attached"},
		{`Wait 0`, "ok"},
		{`Unlink "h1`, "error: a quote is not closed"},
		{`Unlink "h1"[1`, "error: a bracket is not closed"},
		{`""`, "error: " + errCommand.Error()},
		{`Quit`, "ok"},
	}
	var commands, want strings.Builder
	for _, s := range said {
		commands.WriteString(s.command + "\n")
		want.WriteString(s.want + "\n")
	}
	code, out, complaint := call(t, commands.String(), "run", netlistFile(t, "single", "--hosts", "4"), "--socket", socketName(t))
	_, out, _ = strings.Cut(out, "\n") // that it is ready
	if diff := cmp.Diff(want.String(), out); diff != "" || code != exitOK || complaint != "" {
		t.Errorf("exit code %d, %q, want-, got+\n%s", code, complaint, diff)
	}
}

// TestConsoleTraffic checks the effect of an attacker's packets on a victim, on a fabric that OpenSM has brought up.
func TestConsoleTraffic(t *testing.T) {
	ibsimtest.Need(t, "opensm")
	socket := socketName(t)
	send := server(t, netlistFile(t, "single", "--hosts", "4"), socket)
	if got, want := send("send h1 1 h2 1 0xffff"), "h1 port 1: not sent"; got != want {
		t.Errorf("before there is a subnet manager: %q, want %q", got, want)
	}
	c := ibsimlab.Client{Socket: socket, Dir: t.TempDir()}
	if _, err := c.OpenSM(t.Context(), "sm", c.Dir); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ command, want string }{
		{"send h1 1 h2 1 0xffff", "h2 port 1: delivered"},
		{"send h1 1 h2 1 0x8005", "leaf1 port 2: P_Key refused inbound"},
		{"flow h1 1 h2 1 0xffff", "ok"},
		{"flow h1 1 h2 1 key", `error: P_Key "key": want 0x and hexadecimal digits`},
		{"swap leaf1 3 leaf1 4", "ok"},
		{"recable h1 1 leaf1 30", "ok"},
		{"bounce h1 1", "ok"},
		{"insert router rt1 0x99 2", "ok"},
		{"link rt1 1 leaf1 31", "ok"},
		{"insert bridge b1 0x99 2", `error: node type "bridge": want switch, ca or router`},
		{"rogue h3 15", "ok"},
		{"honest h3", "ok"},
		{"send h1 1 h2 1 0xffff", "h1 port 1: not sent"},
	} {
		if got := send(tt.command); got != tt.want {
			t.Errorf("%q is answered %q, want %q", tt.command, got, tt.want)
		}
	}
}

func TestDump(t *testing.T) {
	code, out, complaint := call(t, "dump h1\nquit\n", "run", netlistFile(t, "single"), "--socket", socketName(t))
	want := "CA \"h1\" guid 0x0020000000000100, 1 ports, description \"h1\"\n[1] \"leaf1\"[2] lid 0 lmc 0 Init/LinkUp\nok\n"
	if code != exitOK || !strings.HasSuffix(out, want) {
		t.Errorf("exit code %d, %q, %q, want %q", code, out, complaint, want)
	}
}

func TestQuit(t *testing.T) {
	code, out, complaint := call(t, "help\nquit\n", "run", netlistFile(t, "single"), "--socket", socketName(t))
	if code != exitOK || !strings.Contains(out, "unlink NODE [PORT]") || complaint != "" {
		t.Errorf("exit code %d, %q, %q", code, out, complaint)
	}
}

func TestDiagnosticsAttach(t *testing.T) {
	ibsimtest.Need(t, "ibnetdiscover", "smpquery")
	socket := socketName(t)
	server(t, netlistFile(t, "ft2", "--hosts", "4", "--radix", "4"), socket)
	c := ibsimlab.Client{Socket: socket, Dir: t.TempDir()}
	out, err := c.Diag(t.Context(), "h3", "ibnetdiscover")
	if err != nil || strings.Count(string(out), "Switch\t") != 3 || strings.Count(string(out), "Ca\t") != 4 {
		t.Errorf("ibnetdiscover: %v\n%s", err, out)
	}
	if out, err = c.Diag(t.Context(), "h3", "smpquery", "-D", "pkeys", "0,1", "1"); err != nil || !strings.Contains(string(out), "0xffff") {
		t.Errorf("smpquery pkeys: %v\n%s", err, out)
	}
}

func TestSysfs(t *testing.T) {
	file, dir := netlistFile(t, "single", "--hosts", "2", "--hcas", "2"), t.TempDir()
	code, _, complaint := call(t, "", "sysfs", file, "--hca", "h1", "--hca", "h1-2", "--out", dir, "--firmware", "28.1.2")
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, complaint)
	}
	for name, want := range map[string]string{
		"sys/class/infiniband/mlx5_1/node_guid": "0020:0001:0000:0100\n",
		"sys/class/infiniband/mlx5_0/fw_ver":    "28.1.2\n",
	} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
}

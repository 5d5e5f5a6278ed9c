package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim"
	"portcullis/packaging/testenv"
)

// asProgram makes the test binary the program.
const asProgram = "PORTCULLIS_SIM_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program is a process of ours that has not been started.
func program(t testing.TB, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

// start runs a simulator as a process and waits until it is ready; the returned
// function kills it with no chance to clean up.
func start(t testing.TB, file, socket string, more ...string) (kill func()) {
	t.Helper()
	cmd := program(t, append([]string{"run", file, "--socket", socket}, more...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed, as requested
		_ = stdin.Close()
	}
	t.Cleanup(kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); !strings.HasPrefix(line, "ready: ") {
		t.Fatalf("the simulator says %q, %v", line, err)
	}
	return kill
}

func attach(t testing.TB, socket, node string) *ibsim.Port {
	t.Helper()
	p, err := ibsim.Dial(t.Context(), ibsim.Options{Socket: socket, Node: node})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// nodeInfo asks the node at the end of a route for its GUID.
func nodeInfo(p *ibsim.Port, route ...ib.PortNum) (ib.GUID, error) {
	packets, way := make([]transport.Packet, 1), mad.MakeRoute(route...)
	packets[0].LID = ib.PermissiveLID
	mad.NewSMP(&packets[0].MAD, mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo, TID: 1}, &way, ib.MKey{})
	if _, err := p.Send(packets); err != nil {
		return 0, err
	}
	if _, err := p.Receive(packets); err != nil {
		return 0, err
	}
	var ni mad.NodeInfo
	if err := mad.Decode(packets[0].MAD.Data(), &ni); err != nil || packets[0].Undelivered {
		return 0, fmt.Errorf("undelivered %v, %v", packets[0].Undelivered, err)
	}
	return ni.NodeGUID, nil
}

// A simulator that is killed leaves nothing behind that keeps another from taking
// its place, and its clients learn that it is gone.
func TestKilledAndStartedAgain(t *testing.T) {
	file, socket := netlistFile(t, "single", "--hosts", "3"), socketName(t)
	kill := start(t, file, socket)
	old := attach(t, socket, "h1")
	kill()
	if _, err := nodeInfo(old); !errors.Is(err, transport.ErrLost) {
		t.Errorf("a client of the killed simulator: %v, want %v", err, transport.ErrLost)
	}
	start(t, file, socket)
	if got, err := nodeInfo(attach(t, socket, "h1"), 1, 3); got != 0x0020000000000200 || err != nil {
		t.Errorf("a client of its successor reads %v, %v", got, err)
	}
}

func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	testenv.Need(t, err)
	defer full.Close()
	file := netlistFile(t, "single")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"generate", "single"}, "write netlist: write /dev/stdout: no space left on device"},
		{[]string{"run", file, "--socket", socketName(t)}, "say that the simulator is ready: write /dev/stdout: no space left on device"},
		{[]string{"drill", "list"}, "no space left on device"},
		{[]string{"version"}, "no space left on device"},
	} {
		cmd := program(t, tt.args...)
		var complaint strings.Builder
		cmd.Stdout, cmd.Stderr = full, &complaint
		err := cmd.Run()
		var failed *exec.ExitError
		if !errors.As(err, &failed) || failed.ExitCode() != exitError || !strings.Contains(complaint.String(), tt.want) {
			t.Errorf("%v: %v, %q; want %q", tt.args, err, complaint.String(), tt.want)
		}
	}
}

// FuzzConsole feeds the console any lines: each gets an answer that is one of ours.
func FuzzConsole(f *testing.F) {
	for _, k := range commands() {
		f.Add(k.name + " \"h1\"[1] leaf1 2 0xffff")
		f.Add(k.name + " h1 1")
		f.Add(k.name + " h1")
		f.Add(k.name)
	}
	f.Add("insert router r1 0x77 2\nlink r1 1 leaf1 30\nsend sm 1 h1 1 0x7fff\nbaselid h1[1] 0xbfff 7\nroute 1 2")
	f.Fuzz(func(t *testing.T, text string) {
		// Files and waiting are not for a fuzzer.
		for line := range strings.Lines(text) {
			if words, err := split(line); err != nil || strings.HasPrefix(strings.TrimSpace(line), "!") || strings.EqualFold(words[0], "wait") {
				return
			}
		}
		l, err := netlist.Single(netlist.Shape{Hosts: 2})
		if err != nil {
			t.Fatal(err)
		}
		fabric := sim.New(l)
		(&console{fabric: fabric, out: io.Discard, quit: func() {}}).run(strings.NewReader(text))
		fabric.Advance(time.Second)
	})
}

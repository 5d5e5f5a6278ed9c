package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"portcullis/cmd/portcullisd/command"
	"portcullis/cmd/portcullisd/lonesm"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// once runs "portcullisd sm --once" over a simulated oneSwitch.
func once(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fabric.net")
	write(t, file, oneSwitch)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, complaint bytes.Buffer
	code = run(ctx, append([]string{"sm", "--port", "sim:" + file, "--once"}, args...), time.Now, nil, &out, &complaint)
	return code, out.String(), complaint.String()
}

func TestSMOnceReports(t *testing.T) {
	t.Parallel()
	code, out, complaint := once(t, "--json")
	if code != command.ExitOK || complaint != "" {
		t.Fatalf("exit code %d, said %q", code, complaint)
	}
	var r struct {
		Nodes lonesm.NodeCount
		Ports lonesm.PortCount
		SMPs  struct {
			Total uint64
			Kinds []struct {
				Method, Attribute, State string
				Sent                     uint64
				First                    float64 `json:"first_seconds"`
				Last                     float64 `json:"last_seconds"`
			}
		}
		Seconds  map[string]float64
		Problems []string
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if want := (lonesm.NodeCount{Switches: 1, CAs: 3}); r.Nodes != want {
		t.Errorf("nodes %+v, want %+v", r.Nodes, want)
	}
	if want := (lonesm.PortCount{Cabled: 6, Active: 6}); r.Ports != want {
		t.Errorf("ports %+v, want %+v", r.Ports, want)
	}
	var sum uint64
	sent := map[string]uint64{}
	for _, k := range r.SMPs.Kinds {
		sum += k.Sent
		sent[k.Method+" "+k.Attribute+" "+k.State] = k.Sent
		if k.First > k.Last || k.Last > r.Seconds["total"] {
			t.Errorf("%s %s from %v to %v of %v seconds", k.Method, k.Attribute, k.First, k.Last, r.Seconds["total"])
		}
	}
	if sum != r.SMPs.Total {
		t.Errorf("kinds add up to %d SMPs, the total is %d", sum, r.SMPs.Total)
	}
	if sent["Set PortInfo Active"] != 6 || sent["Set LinearForwardingTable "] != 1 {
		t.Errorf("sent %v, want 6 ports activated and one block of routes", sent)
	}
	parts := r.Seconds["attach"] + r.Seconds["discovery"] + r.Seconds["routing"] + r.Seconds["rest"]
	if d := parts - r.Seconds["total"]; d > 1e-4 || d < -1e-4 {
		t.Errorf("phases %v add up to %v", r.Seconds, parts)
	}
	if len(r.Problems) != 0 {
		t.Errorf("problems %q", r.Problems)
	}
}

func TestSMOnceTable(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "partitions.conf")
	write(t, file, "A=0x101 : 0x200001=full, 0x999=full;\n")
	code, out, complaint := once(t, "--partitions", file)
	if code != command.ExitOK {
		t.Fatalf("exit code %d, said %q", code, complaint)
	}
	for _, want := range []string{
		"1 switches, 3 CAs, 0 routers", "6 cabled, 6 of them active", "PortInfo Active",
		"problem: port 0x0000000000000999 of partition 0x8101 is not seen",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the report lacks %q:\n%s", want, out)
		}
	}
}

func TestSMRefuses(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "partitions.conf")
	write(t, bad, "A=0x101 : 0x200001=full;\nB=0x102 : ALL=full;\n")
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"no port", []string{"--once"}, command.ExitUsage, "--port is missing"},
		{"unknown port", []string{"--port", "tcp:1"}, command.ExitUsage, `--port "tcp:1": want umad:DEVICE[:PORT], ibsim:SOCKET/NODE or sim:NETLIST`},
		{"no netlist", []string{"--port", "sim:/nonexistent"}, command.ExitError, "port sim:/nonexistent: read netlist: open /nonexistent"},
		{"no simulator", []string{"--port", nobody()}, command.ExitError, "hint: start the simulator"},
		{"wrong device", []string{"--port", "umad:a/b"}, command.ExitUsage, "is not the name of a device"},
		{"several", []string{"--port", "sim:x", "--priority", "16", "--enforcement", "no"}, command.ExitUsage, `--enforcement "no": want one of ["verified" "accepted"]` + "\nportcullisd: --priority 16"},
		{"error in partitions", []string{"--port", nobody(), "--partitions", bad}, command.ExitError, bad + `:2: "ALL=full": switches are not made members`},
		{"no partitions", []string{"--port", nobody(), "--partitions", bad + "x"}, command.ExitError, "read partitions: open"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, complaint bytes.Buffer
			code := run(t.Context(), append([]string{"sm"}, tt.args...), time.Now, nil, &out, &complaint)
			if code != tt.code || !strings.Contains(complaint.String(), tt.want) {
				t.Errorf("exit code %d, said %q; want %d and %q", code, &complaint, tt.code, tt.want)
			}
			if out.Len() > 0 {
				t.Errorf("printed %q", &out)
			}
		})
	}
}

// follower reads the lines of "portcullisd sm --json".
type follower struct {
	t     *testing.T
	lines chan map[string]any
}

func follow(t *testing.T, cmd *exec.Cmd) *follower {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	f := &follower{t: t, lines: make(chan map[string]any, 1000)}
	go func() {
		defer close(f.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			var line map[string]any
			if json.Unmarshal(s.Bytes(), &line) != nil {
				line = map[string]any{"event": "not JSON: " + s.Text()}
			}
			f.lines <- line
		}
	}()
	return f
}

// settled waits for the fabric to be settled with a revision.
func (f *follower) settled(revision float64) map[string]any {
	f.t.Helper()
	late := time.After(patience)
	for {
		select {
		case line, ok := <-f.lines:
			if !ok {
				f.t.Fatalf("the events ended before revision %v was settled", revision)
			}
			if line["event"] == "settled" && line["revision"] == revision {
				return line
			}
		case <-late:
			f.t.Fatalf("revision %v was not settled within %v", revision, patience)
		}
	}
}

func hangUp(t *testing.T, d *process) {
	t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

// A partition file decides which port is where, an error in it changes nothing, and every settled fabric is reported with
// what it took.
func TestSMPartitions(t *testing.T) {
	t.Parallel()
	lab := ibsimtest.Start(t, []byte(oneSwitch))
	file := filepath.Join(t.TempDir(), "partitions.conf")
	write(t, file, "A=0x101 : 0x200001=full;\n")
	cmd := exec.Command("portcullisd", "sm", "--port", "ibsim:"+lab.Socket()+"/sm", "--partitions", file,
		"--enforcement", "accepted", "--json")
	f := follow(t, cmd)
	d := launch(t, cmd)

	pkeys := func() string {
		t.Helper()
		return ibsimtest.Diag(t, lab, "sm", "smpquery", "-D", "pkeys", "0,1,1", "1")
	}
	first := f.settled(1)
	if first["smps"].(float64) < 20 || first["seconds"].(float64) <= 0 {
		t.Errorf("bring-up took %v", first)
	}
	if keys := pkeys(); !strings.Contains(keys, "0x8101") {
		t.Fatalf("h1 is not in the partition of the file:\n%s", keys)
	}

	write(t, file, "A=0x102 : 0x200001=full;\nB=0x103 : 0x300001;\n")
	hangUp(t, d)
	eventually(t, "the complaint about the file", func() (bool, string) {
		said := d.lines.String()
		return strings.Contains(said, file+`:2: \"0x300001\": limited members`), said
	})
	if keys := pkeys(); !strings.Contains(keys, "0x8101") || strings.Contains(keys, "0x8102") {
		t.Fatalf("a file with an error changed the partitions:\n%s", keys)
	}

	write(t, file, "A=0x102 : 0x200001=full;\n")
	hangUp(t, d)
	if move := f.settled(2); move["smps"].(float64) > 20 || move["seconds"].(float64) > 30 {
		t.Errorf("moving a host took %v", move)
	}
	if keys := pkeys(); strings.Contains(keys, "0x8101") || !strings.Contains(keys, "0x8102") {
		t.Errorf("h1 is not moved:\n%s", keys)
	}
}

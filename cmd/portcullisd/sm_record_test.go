package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"portcullis/cmd/portcullisd/command"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/enginelist"
	"portcullis/fabricsm/sm/replay"
)

// TestRecordOption: the record of a run can be replayed, and does not replace a
// file.
func TestRecordOption(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sm.record")
	if code, _, complaint := once(t, "--record", file); code != command.ExitOK {
		t.Fatalf("exit code %d: %s", code, complaint)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := replay.Replay(f, recordedEngine)
	if err != nil || r.Differs != nil || r.Ends != "" || r.Steps < 20 {
		t.Errorf("replay: %v, %+v", err, r)
	}
	if info, err := f.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	code, _, complaint := once(t, "--record", file)
	if code != command.ExitError || !strings.Contains(complaint, "name a file that is not there yet") {
		t.Errorf("onto a file that is there: exit code %d, %q", code, complaint)
	}
}

// TestRecordWithTopology: the declared topology is in the record, and decisions by it are made again, without the file.
func TestRecordWithTopology(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	law, file := filepath.Join(dir, "topoconfig.conf"), filepath.Join(dir, "sm.record")
	const leaf, end = "0x0000000000100000,", ",1,Any,Active\n"
	write(t, law, leaf+"1,0x0000000000200000"+end+leaf+"2,-,-,Any,Disabled\n"+leaf+"8,0x0000000000400000"+end)
	if code, out, complaint := once(t, "--record", file, "--topology", law, "--topology-mode", "enforce"); code != command.ExitOK || strings.Contains(complaint, "the record ends here") {
		t.Fatalf("exit code %d: %s\n%s", code, complaint, out)
	}
	if err := os.Remove(law); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := replay.Replay(f, recordedEngine)
	if err != nil || r.Differs != nil || r.Ends != "" || r.Steps < 20 {
		t.Errorf("replay: %v, %+v", err, r)
	}
}

func recordedEngine(name string, options []byte) (route.Engine, error) {
	engines, err := (&enginelist.Settings{}).Engines(name)
	if err != nil {
		return nil, err
	}
	return replay.Engine(engines[0], options)
}

// TestRecordOverReload: the record of a run with quality of service and engines set by files goes on over SIGHUP, and
// replays when the files are gone.
func TestRecordOverReload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	write(t, file("net"), oneSwitch)
	write(t, file("roots"), "0x100000\n")
	write(t, file("qos"), "qos TRUE\nqos_max_vls 4\nqos_sl2vl 0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3\n")
	config := func(engine string, mtu int) {
		write(t, file("yaml"), fmt.Sprintf("fabric:\n  qos: {options: %q}\n  routing: {engine: %q, root_guid_file: %q}\n  ports: {max_mtu: %d}\n",
			file("qos"), engine, file("roots"), mtu))
	}
	config("updn", 4096)
	d := launch(t, exec.Command("portcullisd", "sm", "--port", "sim:"+file("net"), "--config", file("yaml"), "--record", file("record")))
	eventually(t, "tables of updn", func() (bool, string) {
		return strings.Contains(d.lines.String(), "updn"), d.lines.String()
	})
	config("ftree,updn", 2048)
	hangUp(t, d)
	eventually(t, "the other configuration", func() (bool, string) {
		return strings.Contains(d.lines.String(), "the configuration was read again"), d.lines.String()
	})
	d.end(syscall.SIGTERM, command.ExitOK)
	if strings.Contains(d.lines.String(), "the record ends here") {
		t.Error("the record ended before the run")
	}
	for _, name := range []string{"roots", "qos", "yaml", "net"} {
		if err := os.Remove(file(name)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(file("record"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := os.ReadFile(file("record"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), "sm.PolicySet") {
		t.Error("the reload is not in the record")
	}
	if r, err := replay.Replay(f, recordedEngine); err != nil || r.Differs != nil || r.Ends != "" || r.Steps < 20 {
		t.Errorf("replay: %v, %+v, %+v", err, r, r.Differs)
	}
}

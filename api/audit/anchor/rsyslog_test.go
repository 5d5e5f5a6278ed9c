package anchor

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/audit/chain"
	"portcullis/packaging/testenv"
)

// rsyslog runs the system log of Debian with inputs of a test, and returns the file that it writes.
func rsyslog(t *testing.T, dir, inputs string) string {
	t.Helper()
	out := filepath.Join(dir, "log")
	testenv.Rsyslog(t, dir, inputs+fmt.Sprintf("\n*.* action(type=\"omfile\" file=%q)\n", out), out)
	return out
}

// until asks until cond holds.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	late, tick := time.After(inTime), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s did not come about", what)
		}
	}
}

// TestRsyslog has Debian's rsyslog take anchors by TCP and at a socket of this machine. verify reads what it writes.
func TestRsyslog(t *testing.T) {
	l := listenTCP(t)
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	dir := t.TempDir()
	socket := filepath.Join(dir, "dev-log")
	out := rsyslog(t, dir, fmt.Sprintf("module(load=\"imtcp\")\ninput(type=\"imtcp\" address=\"127.0.0.1\" port=\"%s\")\nmodule(load=\"imuxsock\" SysSock.Use=\"off\")\ninput(type=\"imuxsock\" Socket=%q)", port, socket))
	for i, where := range []string{"tcp://127.0.0.1:" + port, "unix:" + socket} {
		s, want := newSyslog(t, where), at(uint64(7+i))
		until(t, where, func() bool { return s.Write(t.Context(), want) == nil })
		until(t, "the anchor in the log", func() bool {
			data, _ := os.ReadFile(out)
			return strings.Contains(string(data), fmt.Sprintf(`"seq":%d,`, want.Seq))
		})
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var anchors []string
	for line := range strings.Lines(string(data)) {
		if strings.Contains(line, chain.Marker) { // grep
			anchors = append(anchors, line)
		}
	}
	got, err := chain.ReadAnchors(strings.NewReader(strings.Join(anchors, "")))
	if err != nil || !slices.Equal(seqs(got), []uint64{7, 8}) || got[0] != *at(7) || got[1] != *at(8) {
		t.Errorf("verify reads %+v, %v of\n%s", got, err, data)
	}
}

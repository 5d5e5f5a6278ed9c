package driver

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/portset"
)

// TestForgetfulNodesAreToldRarely: thousands of nodes that forget the same are no
// thousands of lines.
func TestForgetfulNodesAreToldRarely(t *testing.T) {
	var out bytes.Buffer
	l := &loop{log: slog.New(slog.NewTextHandler(&out, nil))}
	for i := range 5000 {
		l.logged(&sm.FieldsNotKept{GUID: ib.GUID(i + 1), Fields: portset.SubnetTimeOut})
	}
	l.logged(&sm.FieldsNotKept{GUID: 1, Fields: portset.HOQLife})
	for i := range 60 {
		l.logged(&sm.CannotEnforce{GUID: ib.GUID(i + 1), Reason: "it has no P_Key tables for its ports"})
	}
	lines := strings.Count(out.String(), "\n")
	if lines != toldAlike+3+1+toldAlike+1 || !strings.Contains(out.String(), "as 999 nodes before it") {
		t.Errorf("%d lines, want %d, with the 10th, 100th and 1000th:\n%s", lines, 2*toldAlike+5, &out)
	}
}

// TestPortsOfABringUpAreCounted: a fabric that comes up is one line, a port that
// comes later its own.
func TestPortsOfABringUpAreCounted(t *testing.T) {
	var out bytes.Buffer
	l := &loop{log: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key != slog.MessageKey {
			return slog.Attr{}
		}
		return a
	}}))}
	for i := range 5000 {
		l.logged(&sm.PortPlaced{GUID: ib.GUID(i + 1)})
	}
	l.logged(&sm.Settled{SMPs: 7})
	l.logged(&sm.PortPlaced{GUID: 0xABC, LID: 9})
	l.logged(&sm.Settled{SMPs: 8})
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, line[:min(len(line), len(`msg="5000 end ports`))])
	}
	want := []string{`msg="5000 end ports`, `msg="settled with r`, `msg="port 0x0000000`, `msg="settled with r`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

package driver

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
)

// TestForgetfulNodesAreToldRarely: thousands of nodes that forget the same are no
// thousands of lines.
func TestForgetfulNodesAreToldRarely(t *testing.T) {
	var out bytes.Buffer
	l := &loop{log: slog.New(slog.NewTextHandler(&out, nil))}
	for i := range 5000 {
		l.logged(&sm.FieldsNotKept{GUID: ib.GUID(i + 1), Fields: sm.FieldSubnetTimeOut})
	}
	l.logged(&sm.FieldsNotKept{GUID: 1, Fields: sm.FieldHOQLife})
	lines := strings.Count(out.String(), "\n")
	if lines != toldAlike+3+1 || !strings.Contains(out.String(), "as 999 nodes before it") {
		t.Errorf("%d lines, want %d, with the 10th, 100th and 1000th:\n%s", lines, toldAlike+4, &out)
	}
}

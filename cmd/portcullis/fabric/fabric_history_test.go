package fabric

import (
	"bytes"
	"strings"
	"testing"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

// The table says that gaps were left out, and a hostile name writes no sequence to the terminal.
func TestHistoryTable(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	list := &changeList{
		Known: &v1.FabricHistory{From: noon.Add(-time.Hour), Until: noon, Cut: 7, Gaps: []v1.FabricGap{{From: noon.Add(-time.Minute), Until: noon, Why: "lost"}}},
		Items: []v1.PastChange{{Time: noon, Kind: "switch", Object: "0x1", Name: "\x1b[2Jleaf\u009b31m\tx", What: "changed", Fields: []v1.PastField{{Field: "problem", Now: "\x1b]0;x\x07"}}}},
	}
	var out bytes.Buffer
	env := cli.New(nil, &out, nil)
	if err := env.Print(list, func(w *cli.Columns) { showHistory(w, list, &v1.PastChangeQuery{}, maxChangeRows) }); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.ContainsAny(got, "\x1b\x07\u009b") || !strings.Contains(got, "not known") || !strings.Contains(got, "7 earlier times of which nothing is known") {
		t.Errorf("%q", got)
	}
}

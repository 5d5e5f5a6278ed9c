package checklist_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/agent/checklist"
)

func TestList(t *testing.T) {
	var l checklist.List
	l.Add("tpm", checklist.OK, "", "version %d", 2)
	l.Add("clock", checklist.Failed, "set it", "%d s late\nand \x1b[31mdrifting", 70)
	l.Add("service", checklist.Skipped, "", "no name")
	l.Add("umad", checklist.Failed, "", "no device")

	if d := cmp.Diff(l.Failed(), []string{"clock", "umad"}); d != "" {
		t.Errorf("failed (-got +want):\n%s", d)
	}
	want := "ok       tpm: version 2\n" +
		"failed   clock: 70 s late\n" +
		"         and [31mdrifting\n" +
		"         hint: set it\n" +
		"skipped  service: no name\n" +
		"failed   umad: no device\n"
	if d := cmp.Diff(l.Text(func(s string) string { return strings.ReplaceAll(s, "\x1b", "") }), want); d != "" {
		t.Errorf("text (-got +want):\n%s", d)
	}
	b, err := json.Marshal(l[:2])
	if want := `[{"check":"tpm","result":"ok","detail":"version 2"},` +
		`{"check":"clock","result":"failed","detail":"70 s late\nand \u001b[31mdrifting","hint":"set it"}]`; err != nil || string(b) != want {
		t.Errorf("%s, %v; want %s", b, err, want)
	}
	if none := l[:1].Failed(); none != nil {
		t.Errorf("failed %q of checks that did not", none)
	}
}

package fault_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/fault"
)

// TestOrder: the gravest kind is first, and within a kind the text decides.
func TestOrder(t *testing.T) {
	l := fault.New()
	if faults, texts := l.Snapshot(); faults != nil || texts != nil {
		t.Errorf("an empty list shows %v, %q", faults, texts)
	}
	slow := fault.Key{Kind: fault.LinkSlow, Place: ib.Place{Switch: 1, Port: 2}}
	silent := fault.Key{Kind: fault.NodeSilent, GUID: 5}
	other := fault.Key{Kind: fault.NodeSilent, GUID: 4}
	for k, text := range map[fault.Key]string{slow: "a", silent: "b", other: "c"} {
		if !l.Set(k, text) || l.Set(k, text) {
			t.Errorf("%v: not new at first, or new when it is the same", k)
		}
	}
	want := []fault.Fault{{Key: silent, Text: "b"}, {Key: other, Text: "c"}, {Key: slow, Text: "a"}}
	faults, texts := l.Snapshot()
	if d := cmp.Diff(want, faults); d != "" {
		t.Errorf("faults (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"b", "c", "a"}, texts); d != "" {
		t.Errorf("texts (-want +got):\n%s", d)
	}
	if !l.Set(silent, "d") || l.Text(silent) != "d" {
		t.Error("a new text is not taken")
	}
	if !l.Clear(other) || l.Clear(other) || l.Has(other) || !l.Has(slow) {
		t.Error("what is cleared stands, or what is not does not")
	}
	if _, texts = l.Snapshot(); !cmp.Equal(texts, []string{"d", "a"}) {
		t.Errorf("then: %q", texts)
	}
}

// TestIsBounded: a fabric with more faults than a list shows says how many sentences are left out.
func TestIsBounded(t *testing.T) {
	l := fault.New()
	for g := range ib.GUID(5000) {
		l.Set(fault.Key{Kind: fault.LinkDead, GUID: g}, fmt.Sprintf("%05d", g))
	}
	faults, texts := l.Snapshot()
	if len(faults) != 4096 || len(texts) != 101 || texts[100] != "and 4900 more problems, none graver than the last" {
		t.Errorf("%d faults, %d texts, the last is %q", len(faults), len(texts), texts[len(texts)-1])
	}
}

// TestNames: each kind has a name of its own.
func TestNames(t *testing.T) {
	seen := map[string]fault.Kind{}
	for k := range fault.LinkSlow + 1 {
		if was, twice := seen[k.String()]; twice || k.String() == "" {
			t.Errorf("kinds %d and %d are both called %q", was, k, k)
		}
		seen[k.String()] = k
	}
}

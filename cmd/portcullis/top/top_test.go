package top

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/screen/screentest"
	"portcullis/fabricsm/ib"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func ownHosts() []v1.HostSummary {
	list := []v1.HostSummary{
		{ID: "h-waits", Phase: v1.PhaseAwaiting, Since: noon.Add(-3 * time.Minute), Why: "no evidence yet: run the agent on the host"},
		{ID: "h-leaves", Phase: v1.PhaseReleasing, Since: noon.Add(-time.Hour)},
		{ID: "h-new", Phase: v1.PhaseAdmitted, Since: noon.Add(-time.Minute)},
		{ID: "h-old", Phase: v1.PhaseAdmitted, Since: noon.Add(-recently)},
		{ID: "h-never", Phase: v1.PhaseQuarantined},
	}
	return list
}

// busySample is a service with a leak, an attacker and hosts that wait.
func busySample() *sample {
	return &sample{
		Time: noon, Hosts: count(ownHosts(), noon),
		Manager:   &v1.SM{State: "Master", Pending: 12, Problems: []string{"leaf2/2: nothing answers", "evil\x1b[2Jname"}, Leadership: v1.Leadership{Leader: "one"}},
		Isolation: &v1.IsolationKept{Found: v1.Isolation{Verdict: v1.Leaks, Pairs: v1.IsolationPairs{Isolated: 4, Leaks: 1, Unknown: 1}}, Age: 61.7, Current: true},
		Brakes:    &v1.Brakes{Items: []v1.Brake{{Class: "evidence"}, {Class: "place", Engaged: true, Held: 3}}},
		Violations: []v1.FabricViolation{
			{Kind: "p-key", Host: "h-new", Count: 7, Last: noon.Add(-5 * time.Second), Text: "h-new sent with P_Key 0x8002"},
			{Kind: "m-key", Count: 1, Last: noon.Add(-time.Hour), Text: "Set PortInfo without the M_Key"},
		},
		Events: []v1.Event{
			{Type: "isolation.lost", Cause: "leak", Severity: "critical", Seen: "a packet passes", Last: noon.Add(-time.Second)},
			{Type: "host.admitted", Cause: "evidence", Severity: "info", Host: "h-new", Seen: "0x8001", Last: noon.Add(-time.Minute)},
		},
	}
}

// TestFrames compares whole screens with those in testdata; "go test -update" rewrites them. The first character of a line is its style.
func TestFrames(t *testing.T) {
	t.Parallel()
	lost := busySample()
	lost.Lost = "connection refused"
	quiet := &sample{
		Time: noon, Hosts: count(nil, noon), Manager: &v1.SM{State: "Master", Settled: true}, Brakes: &v1.Brakes{},
		Isolation: &v1.IsolationKept{Found: v1.Isolation{Verdict: v1.Isolated, Pairs: v1.IsolationPairs{Isolated: 1}}, Age: 3, Current: true},
	}
	old := &sample{Time: noon, Isolation: &v1.IsolationKept{Found: v1.Isolation{Verdict: v1.Isolated}, Age: 90000}}
	unknown := &sample{Time: noon, Isolation: &v1.IsolationKept{Found: v1.Isolation{Verdict: v1.IsolationUnknown, Reason: "ports of tenants were not found"}, Current: true}}
	for _, tt := range []struct {
		name          string
		s             *sample
		width, height int
	}{
		{"whole", busySample(), 100, 0},
		{"lost", lost, 80, 24},
		{"small", busySample(), 40, 8},
		{"quiet", quiet, 80, 24},
		{"old", old, 80, 24},
		{"unknown", unknown, 80, 24},
		{"nothing", &sample{Time: noon}, 80, 24},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			screentest.Compare(t, filepath.Join("testdata", tt.name+".txt"), frame(tt.s, tt.width, tt.height), tt.width, tt.height)
		})
	}
}

// TestCount: hosts that wait are listed, the longest first, and more than there is room for are counted.
func TestCount(t *testing.T) {
	t.Parallel()
	h := count(ownHosts(), noon)
	if h.Total != 5 || h.Admitted != 1 || h.Phases[v1.PhaseAdmitted] != 2 || len(h.Waiting) != 2 || h.Waiting[0].ID != "h-leaves" || h.More != 0 {
		t.Errorf("%+v", h)
	}
	var many []v1.HostSummary
	for i := range mostRows + 3 {
		many = append(many, v1.HostSummary{ID: fmt.Sprintf("h%03d", i), Phase: v1.PhaseGranting, Since: noon, PKey: ib.PKey(1)})
	}
	if h := count(many, noon); len(h.Waiting) != mostRows || h.More != 3 || h.Waiting[0].ID != "h000" {
		t.Errorf("%d wait, and %d more", len(h.Waiting), h.More)
	}
}

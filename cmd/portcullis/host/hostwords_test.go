package host

import (
	"strings"
	"testing"
	"time"

	v1 "portcullis/api/v1"
)

// TestReleasePlan: the plan names a P_Key only where ports lose one.
func TestReleasePlan(t *testing.T) {
	t.Parallel()
	host := func(cluster string, s v1.HostStatus) *v1.Host {
		return &v1.Host{ID: "h1", Cluster: cluster, Tenant: "acme", HCAs: []v1.HCA{{Ports: make([]v1.HCAPort, 2)}}, Status: s}
	}
	for _, c := range []struct {
		host *v1.Host
		want string
	}{
		{host("", v1.HostStatus{}), "belongs to no cluster"},
		{host("train", v1.HostStatus{Phase: v1.PhaseAwaiting}), "it is not admitted, so that no port loses a P_Key"},
		{host("train", v1.HostStatus{Phase: v1.PhaseAdmitted, PKey: 0x8001}), "its 2 ports lose P_Key 0x8001"},
	} {
		if got := releasePlan(c.host); !strings.Contains(got, c.want) {
			t.Errorf("%q, want %q in it", got, c.want)
		}
	}
}

// TestPhaseSince: a host that was never assigned has a phase and no time of it.
func TestPhaseSince(t *testing.T) {
	t.Parallel()
	if got := phaseSince(&v1.HostStatus{Phase: v1.PhaseQuarantined}); got != "quarantined" {
		t.Errorf("%q", got)
	}
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	if got := phaseSince(&v1.HostStatus{Phase: v1.PhaseAdmitted, Since: at}); got != "admitted since 2026-11-21 12:00:00Z" {
		t.Errorf("%q", got)
	}
}

func TestStateNamesItsGuard(t *testing.T) {
	t.Parallel()
	met, unmet := v1.Guard{Name: v1.GuardAssigned, Met: true}, v1.Guard{Name: v1.GuardSeen, Detail: "port 1 is not seen"}
	for _, tt := range []struct {
		state v1.HostState
		of    []v1.Guard
		want  string
	}{
		{"proven", []v1.Guard{met, unmet}, "proven; seen: port 1 is not seen"},
		{"admitted", []v1.Guard{met}, "admitted"},
	} {
		if got := state(&v1.HostStatus{State: tt.state, Guards: tt.of}); got != tt.want {
			t.Errorf("state of %q is shown as %q, want %q", tt.state, got, tt.want)
		}
	}
}

package host

import (
	"strings"
	"testing"
	"time"

	"portcullis/api/apitest"
	v1 "portcullis/api/v1"
)

// TestWhyOfRealHosts: the answer is no until the host is admitted, and names the guard that holds it.
func TestWhyOfRealHosts(t *testing.T) {
	s := apitest.NewSite(t)
	s.Register("n1")
	at := func(network, answer, waits, next string) {
		t.Helper()
		w := explain(s.Host("n1"))
		if w.Network != network || !strings.Contains(w.Answer, answer) || !strings.Contains(w.WaitsFor, waits) || !strings.Contains(w.Next, next) {
			t.Errorf("%+v\nwant %s, %q, %q, %q", w, network, answer, waits, next)
		}
	}
	at("no", "it is in no cluster", "an operator", "portcullis host assign n1 --cluster")
	s.Join("n1")
	at("no", "attested: ", "the host, which attests from its provisioning image, until ", "portcullis-agent provision")
	s.Hand("n1")
	at("no", "seen: ", "a cable", "portcullis inventory check")
	s.Place("n1")
	at("no", "programmed: ", "the Subnet Manager", "portcullis fabric diff --wanted --host n1")
	s.Program()
	at("yes", "admitted to cluster train with P_Key", "", "")
	if w := explain(s.Host("n1")); w.WaitsFor != "" || w.Next != "" || len(w.Guards) > 0 {
		t.Errorf("of an admitted host: %+v", w)
	}
	if _, err := s.Service().Release(t.Context(), "olga", "n1"); err != nil {
		t.Fatal(err)
	}
	at("no", "being released", "the Subnet Manager", "portcullis fabric diff --wanted --host n1")
	s.Program()
	at("no", "it is in no cluster", "an operator", "portcullis host assign n1")
}

// TestEveryGuardHasANextStep: each guard of the service has its own words.
func TestEveryGuardHasANextStep(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	seen := map[string]string{}
	for _, name := range []string{v1.GuardAssigned, v1.GuardAttested, v1.GuardSealed, v1.GuardCabled, v1.GuardSeen, v1.GuardCapacity, v1.GuardReview, v1.GuardClock, v1.GuardProgrammed} {
		h := &v1.Host{ID: "n1", Cluster: "c1", Status: v1.HostStatus{Phase: v1.PhaseVerified, Guards: []v1.Guard{{Name: "first", Met: true}, {Name: name, Detail: "because"}, {Name: "later"}}}}
		w := explain(h)
		if w.Network != "no" || w.Answer != "host n1 has no network: "+name+": because" || w.Next == "portcullis host show n1" || len(w.Guards) != 2 {
			t.Errorf("%s: %+v", name, w)
		}
		if other := seen[w.WaitsFor]; other != "" {
			t.Errorf("%s waits for what %s waits for: %s", name, other, w.WaitsFor)
		}
		seen[w.WaitsFor] = name
	}
	h := &v1.Host{ID: "n1", Cluster: "c1", Status: v1.HostStatus{Phase: v1.PhaseAdmitted, PKey: 1, Guards: []v1.Guard{{Name: v1.GuardSeen, Detail: "port 2 is down"}}}}
	if w := explain(h); w.Network != "in part" || !strings.Contains(w.Answer, "seen: port 2 is down") {
		t.Errorf("admitted, with a port that is not seen: %+v", w)
	}
	h = &v1.Host{ID: "n1", Status: v1.HostStatus{Phase: v1.PhaseQuarantined, Conflicts: []v1.Conflict{{GUID: 0x10, With: "n2"}}}}
	if w := explain(h); w.Network != "no" || !strings.Contains(w.Answer, "claimed by host n2 too") || !strings.Contains(w.Next, "guid-resolved n1") {
		t.Errorf("held: %+v", w)
	}
	h = &v1.Host{ID: "n1", Cluster: "c1", Status: v1.HostStatus{
		Phase: v1.PhaseAwaiting, Window: at, LastDenial: &v1.Denial{Time: at, Code: "pcr-digest", Detail: "other values"},
		Guards: []v1.Guard{{Name: v1.GuardAttested, Detail: "no evidence"}},
	}}
	if w := explain(h); !strings.Contains(w.Next, "refused at 2026-11-21 12:00:00Z (pcr-digest: other values)") || !strings.Contains(w.WaitsFor, "until 2026-11-21") {
		t.Errorf("refused: %+v", w)
	}
}

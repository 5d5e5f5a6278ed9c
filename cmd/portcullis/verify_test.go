package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// printed runs a command, whose exit status and output have to be as wanted. What devices say of themselves, and causes, do not reach
// the terminal as they are.
func printed(t *testing.T, args []string, exit int, want []string) {
	t.Helper()
	var out, errs bytes.Buffer
	if is := run(t.Context(), args, nil, &out, &errs); is != exit {
		t.Errorf("exit status %d, want %d: %s%s", is, exit, &out, &errs)
	}
	for _, text := range want {
		if !strings.Contains(out.String(), text) {
			t.Errorf("the output lacks %q:\n%s", text, &out)
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("an escape sequence reaches the terminal: %q", &out)
	}
}

// TestVerify: the exit status says what the service found, and people see each hop of a packet with the cure.
func TestVerify(t *testing.T) {
	t.Parallel()
	leak := v1.IsolationExample{
		From: "acme", To: "globex", Certain: true, PKey: 0x8002, DLID: 7, Cure: "remove entry 3 (0x8002) of the P_Key table of leaf-1 port 4",
		Hops: []v1.IsolationHop{
			{Device: "host-1 (adapter)", Out: 1, Passed: []string{"entry 2"}},
			{Device: "leaf-1\x1b[2J", In: 1, Out: 4, Passed: []string{"outbound, entry 3"}},
		},
	}
	for _, test := range []struct {
		name string
		got  v1.Isolation
		code int // of HTTP
		exit int
		want []string
	}{
		{"isolated", v1.Isolation{Verdict: v1.Isolated, Pairs: v1.IsolationPairs{Isolated: 3}, Held: v1.IsolationDepth{Each: 3}}, 200, 0, []string{"tenants: isolated", "3 pairs isolated", "each alone: 3"}},
		{"leak", v1.Isolation{Verdict: v1.Leaks, Tenant: "acme", Examples: []v1.IsolationExample{leak}}, 200, 1, []string{
			"tenant acme: NOT ISOLATED", "acme to globex: a packet with P_Key 0x8002 to LID 7 passes", "1. host-1 (adapter), out by port 1", "2. leaf-1", "cure: remove entry 3",
		}},
		{"unknown", v1.Isolation{
			Verdict: v1.IsolationUnknown, Reason: "ports are missing",
			Missing:    []v1.MissingPort{{Host: "host-2", Party: "acme", GUID: 2, Place: ib.Place{Switch: 1, Port: 2}, Cause: "the switch port is down"}},
			Undeclared: []v1.UndeclaredPort{{GUID: 3, Cause: "no such port is declared"}},
			Unread:     []v1.UnreadValue{{What: "LFT", Where: "leaf-1", Cause: "the device did not answer"}},
			Ghosts:     []v1.GhostMember{{GUID: 4, Place: ib.Place{Switch: 1, Port: 9}, PKeys: []ib.PKey{0x8101, 0x202}, Held: v1.GhostInBoth}},
			Bounds:     v1.IsolationBounds{Missing: 8, Undeclared: 1, Ghosts: 3, Unread: 1, Assumptions: []string{"switches are honest"}},
		}, 200, 7, []string{"tenants: not proven: ports are missing", "the switch port is down", "and 7 more", "no such port is declared", "0x8101 0x0202", "both", "and 2 more", "the device did not answer", "switches are honest"}},
		{"disclosures", v1.Isolation{
			Verdict: v1.IsolationUnknown, Reason: "subnet administration disclosed",
			Administration: v1.IsolationAdministration{
				Verdict: v1.SADiscloses, Ports: 5, Parties: 3, Unasked: 2, Silent: 1, Questions: 200, Answers: 80, Records: 90, Undecided: 4, Disclosed: 6,
				Disclosures: []v1.IsolationDisclosure{
					{From: v1.DisclosurePort{Party: "acme", Host: "host-1", GUID: 1}, Record: "PathRecord", Field: "DLID", Value: "9", About: v1.DisclosurePort{Party: "globex\x1b[2J", Host: "host-2", GUID: 2, Place: ib.Place{Switch: 1, Port: 2}}, Cure: "set this"},
					{Record: "MCMemberRecord", Field: "P_Key", Value: "0x8002", About: v1.DisclosurePort{Party: "globex"}, PKey: 0x8002, Cure: "set this"},
					{Record: "MCMemberRecord", Field: "P_Key", Value: "0x8003", PKey: 0x8003, Cure: "set this"},
					{From: v1.DisclosurePort{Party: "acme", GUID: 1}, Record: "PortInfoRecord", Field: "M_Key", Secret: true, Cure: "replace it"},
				},
			},
		}, 200, 7, []string{
			"subnet administration: DISCLOSES", "5 ports of 3 parties asked 200 questions; 80 answers with 90 records; 4 names not judged", "2 further parties did not ask", "1 port got no answer",
			"of host-1 (acme), in a PathRecord: DLID 9, which is port", "of host-2 at", "shared P_Key: none", "cure: set this",
			"to a LID that no port has, in a MCMemberRecord: P_Key 0x8002, which is a partition of globex", "0x8003, a partition that it does not have", "the key M_Key", "cure: replace it", "and 2 more",
		}},
		{"administration not examined", v1.Isolation{Verdict: v1.Isolated, Administration: v1.IsolationAdministration{Verdict: v1.SANotExamined, Reason: "it is off"}}, 200, 0, []string{
			"subnet administration: not examined: it is off",
		}},
		{"earlier service", v1.Isolation{Verdict: v1.Isolated}, 200, 0, []string{"subnet administration: not examined: the service says nothing of it"}},
		{"new verdict", v1.Isolation{Verdict: "splendid"}, 200, 2, nil},
		{"refused", v1.Isolation{}, 409, 2, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"verify"}, answering(t, test.code, test.got, func(r *http.Request) bool {
				return r.Method == http.MethodPost && r.URL.Path == "/v1/verify" && r.URL.Query().Get("tenant") == test.got.Tenant
			})...)
			if test.got.Tenant != "" {
				args = append(args, "--tenant", test.got.Tenant)
			}
			printed(t, args, test.exit, test.want)
			var out, errs bytes.Buffer
			if exit := run(t.Context(), append(args, "-o", "json"), nil, &out, &errs); exit != test.exit {
				t.Errorf("as JSON: exit status %d, want %d", exit, test.exit)
			}
			var again v1.Isolation
			if err := json.Unmarshal(out.Bytes(), &again); test.code == 200 && (err != nil || again.Verdict != test.got.Verdict) {
				t.Errorf("as JSON: %v, %s", err, &out)
			}
		})
	}
}

// TestVerifyLast: what was found last is shown without a reading, and proves nothing when it is old.
func TestVerifyLast(t *testing.T) {
	t.Parallel()
	isolated, leaks := v1.Isolation{Verdict: v1.Isolated, Pairs: v1.IsolationPairs{Isolated: 3}}, v1.Isolation{Verdict: v1.Leaks}
	for _, test := range []struct {
		name string
		got  v1.IsolationKept
		code int // of HTTP
		exit int
		want []string
	}{
		{"current", v1.IsolationKept{Found: isolated, By: v1.ByItself, Age: 90, MaxAge: 10800, Current: true, Every: 3600}, 200, 0, []string{
			"examined 1m30s ago, by the service itself; it counts for 3h0m0s", "every 1h0m0s", "tenants: isolated", "3 pairs isolated",
		}},
		{"old", v1.IsolationKept{Found: isolated, By: v1.ByRequest, Age: 90000, MaxAge: 86400}, 200, 7, []string{"NOT PROVEN ANY MORE: examined 25h0m0s ago, at request", "at request alone"}},
		{"newer attempt", v1.IsolationKept{Found: isolated, Current: true, Failure: "no\x1b[2J port"}, 200, 0, []string{"a newer attempt of the service failed: no"}},
		{"leak", v1.IsolationKept{Found: leaks, Current: true}, 200, 1, []string{"tenants: NOT ISOLATED"}},
		{"old leak", v1.IsolationKept{Found: leaks}, 200, 1, nil},
		{"unknown", v1.IsolationKept{Found: v1.Isolation{Verdict: v1.IsolationUnknown}, Current: true}, 200, 7, nil},
		{"none", v1.IsolationKept{}, 404, 2, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"verify", "--last"}, answering(t, test.code, test.got, func(r *http.Request) bool {
				return r.Method == http.MethodGet && r.URL.Path == "/v1/verify"
			})...)
			printed(t, args, test.exit, test.want)
		})
	}
	var out, errs bytes.Buffer
	if exit := run(t.Context(), []string{"verify", "--last", "--tenant", "acme"}, nil, &out, &errs); exit != 2 || !strings.Contains(errs.String(), "--last shows what was found of all tenants") {
		t.Errorf("of one tenant: exit status %d: %s", exit, &errs)
	}
}

// TestVerifyPorts: each port has its verdict and why, and the filters reach the service.
func TestVerifyPorts(t *testing.T) {
	t.Parallel()
	got := v1.IsolationPorts{Age: 90, MaxAge: 10800, Current: true, Items: []v1.IsolationPortVerdict{
		{Host: "h1", Tenant: "acme", GUID: 1, Verdict: v1.Isolated, Held: v1.HeldBySwitches},
		{Host: "h2", Tenant: "acme", GUID: 2, Verdict: v1.Leaks, End: v1.EndSends, Other: "glo\x1bbex"},
		{Host: "h3", GUID: 3, Verdict: v1.Unproven, Cause: v1.PortNotRead, Detail: "P_Key table of h3: the device did not answer", End: v1.EndBoth},
		{Host: "h4", Verdict: v1.Unproven, Cause: v1.PortOld},
		{Host: "h5", Verdict: "splendid"},
	}}
	args := append([]string{"verify", "ports", "--verdict", "unproven", "--host", "h1", "--tenant", "acme"}, answering(t, 200, got, func(r *http.Request) bool {
		q := r.URL.Query()
		return r.Method == http.MethodGet && r.URL.Path == "/v1/verify/ports" && q.Get("verdict") == "unproven" && q.Get("host") == "h1" && q.Get("tenant") == "acme" && q.Get("limit") == "5000"
	})...)
	printed(t, args, 0, []string{
		"examined 1m30s ago; it counts for 3h0m0s", "isolated      switches", "NOT ISOLATED", "a packet passes to glo", "not proven", "the device did not answer; a packet may pass from it and to it",
		"the proof is older than it counts for", "splendid",
	})
	none := answering(t, 200, v1.IsolationPorts{Items: []v1.IsolationPortVerdict{}}, func(*http.Request) bool { return true })
	printed(t, append([]string{"verify", "ports"}, none...), 0, []string{"NOT PROVEN ANY MORE", "none of the ports that were examined matches"})
	printed(t, append([]string{"verify", "ports", "--verdict", "unknown"}, none...), 2, nil)
	printed(t, append([]string{"verify", "port"}, none...), 2, nil)
}

// TestFabricDiffWanted: the exit status says whether there is a difference, as that of a diff of files, and an old reading is none.
func TestFabricDiffWanted(t *testing.T) {
	t.Parallel()
	again := time.Date(2026, 11, 30, 4, 0, 0, 0, time.UTC)
	rows := []v1.Drift{
		{Kind: v1.DriftStray, In: v1.DriftInSwitch, Host: "h1", GUID: 1, Place: ib.Place{Switch: 5, Port: 3}, PKey: 0x8202, Found: "0x8202", Since: again},
		{Kind: v1.DriftAbsent, In: v1.DriftInAdapter, Host: "h2", Found: "the switch\x1b[2J port is down", Since: again},
	}
	for _, test := range []struct {
		name string
		got  v1.DriftList
		code int
		exit int
		want []string
	}{
		{"none", v1.DriftList{Current: true, Age: 90, MaxAge: 10800, Items: []v1.Drift{}}, 200, 0, []string{"examined 1m30s ago", "no difference"}},
		{"some", v1.DriftList{Current: true, Again: &again, Items: rows}, 200, 1, []string{
			"touched since was read at 2026-11-30T04:00:00Z", "h1    0x0000000000000001  0x0000000000000005/3  switch   stray", "0x8202", "the switch", "absent",
		}},
		{"old", v1.DriftList{Items: rows}, 200, 2, []string{"NOT PROVEN ANY MORE", "stray"}},
		{"not examined", v1.DriftList{}, 404, 2, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"fabric", "diff", "--wanted", "--host", "h1"}, answering(t, test.code, test.got, func(r *http.Request) bool {
				return r.Method == http.MethodGet && r.URL.Path == "/v1/fabric/drift" && r.URL.Query().Get("host") == "h1"
			})...)
			printed(t, args, test.exit, test.want)
		})
	}
	for _, args := range [][]string{{"fabric", "diff", "--wanted", "plan.topo"}, {"fabric", "diff", "--host", "h1", "plan.topo"}, {"fabric", "diff"}} {
		var out, errs bytes.Buffer
		if exit := run(t.Context(), args, nil, &out, &errs); exit != 2 || errs.Len() == 0 {
			t.Errorf("%v: exit status %d: %s", args, exit, &errs)
		}
	}
}

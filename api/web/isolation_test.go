package web_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/api/web/webtest"
	"portcullis/fabricsm/ib"
)

// examined answers what was found of all tenants as a test sets it.
type examined struct {
	proven
	kept  *v1.IsolationKept
	drift []v1.Drift
}

func (e *examined) Kept(context.Context) (*v1.IsolationKept, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.kept == nil {
		return nil, refusal.New(refusal.NotFound, v1.CodeNotExamined, "portcullis verify examines them now", "this instance has not examined all tenants")
	}
	out := *e.kept
	return &out, nil
}

func (e *examined) Drift(context.Context, v1.DriftQuery) (*v1.DriftList, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return &v1.DriftList{Items: e.drift}, nil
}

// keptOf is an examination of two tenants with a verdict.
func keptOf(verdict string) *v1.IsolationKept {
	found := v1.Isolation{
		Verdict: verdict, Parties: []v1.IsolationParty{{Name: "acme", Tenant: true, Verdict: verdict, Declared: 2, Found: 2}, {Name: "(no tenant)", Verdict: v1.Isolated}},
		Pairs: v1.IsolationPairs{Isolated: 1}, Held: v1.IsolationDepth{Each: 1}, Examples: []v1.IsolationExample{},
		Missing: []v1.MissingPort{}, Undeclared: []v1.UndeclaredPort{}, Ghosts: []v1.GhostMember{}, Unread: []v1.UnreadValue{},
		Administration: v1.IsolationAdministration{Verdict: v1.SAConfined, Ports: 5, Parties: 3, Questions: 180, Answers: 40, Records: 60, Disclosures: []v1.IsolationDisclosure{}},
	}
	found.Bounds = v1.IsolationBounds{Begun: time.Now().Add(-time.Minute), Devices: 9, Switches: 3, Ends: 6, Assumptions: []string{"switches check P_Keys"}}
	return &v1.IsolationKept{Found: found, Age: 60, MaxAge: 10800, Current: true}
}

// TestIsolation: the page has the verdict and what it rests on, each packet that passes with its way and cure, what subnet administration
// disclosed, and how tables differ from memberships; an old examination does not look like a current one.
func TestIsolation(t *testing.T) {
	t.Parallel()
	is := &examined{drift: []v1.Drift{{Kind: v1.DriftStray, In: v1.DriftInAdapter, Host: hostile, PKey: 0x8777, Found: "0x8777", Since: time.Now()}}}
	_, server := served(t, func(o *api.Options) { o.Isolation = is }, "h1")
	p := webtest.Open(t, server.URL+"/ui/#/isolation", "/v1/verify")
	p.SignIn(reader(t, server, "auditor", ""))
	p.AwaitText("Nothing was examined yet.")
	p.AwaitText("0x8777")
	p.Look("isolation none")

	is.set(func() { is.kept = keptOf(v1.Isolated) })
	p.Show("#/overview", "Overview")
	p.Show("#/isolation", "Isolation")
	p.AwaitText("180 questions from 5 ports of 3 parties")
	sections := func() string {
		return webtest.Value[string](p, `[...document.querySelectorAll('section')].filter((s) => s.offsetParent).map((s) => s.querySelector('h2').textContent).join(', ')`)
	}
	if got := sections(); got != "Verdict, Subnet administration, Drift, Parties" {
		t.Errorf("of an isolated fabric the page has %s", got)
	}
	p.Document("isolation")

	worse := keptOf(v1.Leaks)
	worse.Current, worse.Age, worse.Failure = false, 20000, "the fabric was not read"
	f := &worse.Found
	f.Examples = []v1.IsolationExample{{From: "acme", To: hostile, Certain: true, PKey: 0x8001, DLID: 7, Cure: "remove entry 1", Hops: []v1.IsolationHop{
		{Device: "h1", Out: 1, Passed: []string{"its table has it"}}, {Device: "leaf1", In: 1, Out: 2, Passed: []string{"no check inbound", "its LFT sends LID 7 to port 2"}}, {Device: "h2", In: 1, Passed: []string{}},
	}}}
	f.Administration = v1.IsolationAdministration{Verdict: v1.SADiscloses, Ports: 2, Disclosed: 1, Disclosures: []v1.IsolationDisclosure{{
		From: v1.DisclosurePort{Party: "acme", Host: "h1", GUID: 0x21}, Record: "NodeRecord", Field: "LID", Value: "9", About: v1.DisclosurePort{Host: hostile}, Cure: "set the trust model",
	}}}
	f.Missing = []v1.MissingPort{{Host: "h3", Party: "acme", Cause: "the switch port is down"}}
	f.Undeclared = []v1.UndeclaredPort{{GUID: 0x99, Place: ib.Place{Switch: 0x1000, Port: 9}, Cause: "no such port is declared"}}
	f.Ghosts = []v1.GhostMember{{Place: ib.Place{Switch: 0x1000, Port: 3}, PKeys: []ib.PKey{0x8001}, Held: v1.GhostInBoth}}
	f.ByRoutes = []v1.IsolationByRoutes{{A: "acme", B: "beta"}}
	f.Unread = []v1.UnreadValue{{What: "LFT", Where: "leaf1", Cause: "the device did not answer"}}
	is.set(func() { is.kept = worse })
	p.Show("#/overview", "Overview")
	p.Show("#/isolation", "Isolation")
	for _, text := range []string{
		"it proves nothing any more", "the fabric was not read", "a packet with P_Key 0x8001, DLID 7, from acme to " + hostile, "leaf1, in by port 1, out by port 2", "its LFT sends LID 7 to port 2",
		"remove entry 1", "NodeRecord, LID 9", "set the trust model", "the switch port is down", "no such port is declared", "adapter and switch", "beta", "the device did not answer",
	} {
		p.AwaitText(text)
	}
	if got := sections(); got != "Verdict, Packets that pass, Subnet administration, What is not proven, Drift, Parties" {
		t.Errorf("of a fabric that leaks the page has %s", got)
	}
	if got := webtest.Value[string](p, `document.querySelector('.facts').innerText`); !strings.Contains(got, "not isolated") || !strings.Contains(got, "old") {
		t.Errorf("the verdict is shown as %q", got)
	}
	p.Look("isolation leaks")
}

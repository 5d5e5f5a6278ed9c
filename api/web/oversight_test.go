package web_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/audit"
	"portcullis/api/credential"
	"portcullis/api/profile"
	v1 "portcullis/api/v1"
	"portcullis/api/web/webtest"
)

// reader makes the only credential of a server, which has a role, and returns its token. more is the rest of its entry.
func reader(t *testing.T, s *apitest.Server, role, more string) string {
	t.Helper()
	token, digest := credential.New()
	known, err := credential.Parse("tokens.yaml", fmt.Appendf(nil, "tokens:\n- {name: rita, role: %s, sha256: %s%s}\n", role, digest, more))
	if err != nil {
		t.Fatal(err)
	}
	s.API.SetTokens(known)
	return token
}

// profiler judges nothing: rule after rule holds, fails and is unknown in turn.
type profiler struct{}

func (profiler) Profile(_ context.Context, p profile.Profile) (*v1.SecurityProfile, error) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	out := &v1.SecurityProfile{Name: p.String(), Collected: now}
	for i, r := range profile.Rules() {
		if !r.In(p) {
			continue
		}
		row := v1.ProfileFinding{Rule: r.Name, First: r.First.String(), Why: r.Why, Cure: r.Cure, At: &now, Source: "the configuration"}
		switch i % 3 {
		case 0:
			row.State = v1.RuleHolds
			out.Count.Holds++
		case 1:
			row.State, row.Detail = v1.RuleFails, "it is not set: "+hostile
			out.Count.Fails++
		default:
			row.State, row.Detail, row.Source, row.At = v1.RuleUnknown, "nothing was looked at", "", nil
			out.Count.Unknown++
		}
		out.Rules = append(out.Rules, row)
	}
	out.Score = 100 * out.Count.Holds / len(out.Rules)
	return out, nil
}

// TestProfile: the page has the score of each profile as the service counts it, and each rule with its evidence and cure.
func TestProfile(t *testing.T) {
	t.Parallel()
	_, server := served(t, func(o *api.Options) { o.Profiler = profiler{} }, "h1")
	p := webtest.Open(t, server.URL+"/ui/#/profile")
	p.SignIn(server.Viewer)
	p.AwaitText(hostile)
	for _, which := range []profile.Profile{profile.General, profile.BareMetal, profile.SecuredBareMetal} {
		want, err := profiler{}.Profile(t.Context(), which)
		if err != nil {
			t.Fatal(err)
		}
		p.AwaitText(fmt.Sprintf("%d %% %s", want.Score, which))
		p.AwaitText(fmt.Sprintf("%d hold, %d fail, %d unknown", want.Count.Holds, want.Count.Fails, want.Count.Unknown))
	}
	rules := profile.Rules()
	if rows := webtest.Value[int](p, `document.querySelectorAll('tbody tr').length`); rows != len(rules) {
		t.Errorf("the page has %d rules, want %d", rows, len(rules))
	}
	for _, r := range rules[:3] {
		text := webtest.Value[string](p, fmt.Sprintf(`document.querySelector('tr[data-key=%q]').innerText`, r.Name))
		if !strings.Contains(text, r.Why) {
			t.Errorf("the row of %s is %q, and does not say why the rule is there", r.Name, text)
		}
	}
	p.AwaitText(rules[1].Cure)
	p.AwaitText("nothing was looked at")
	p.Look("profile")

	p.Show("#/profile?name=general&state=fails", "Profile")
	p.AwaitText("Rules of general, those whose state is fails")
	p.Await(`document.querySelectorAll('tbody tr').length > 0 && [...document.querySelectorAll('tbody tr')].every((r) =>
		r.querySelector('.badge.bad') && r.querySelector('[data-label=Profile]').textContent === 'general')`)
	p.Quiet()
}

// TestNoRight: a reader whose role may not see something reads which roles may, and sees no empty list.
func TestNoRight(t *testing.T) {
	t.Parallel()
	_, server := served(t, nil, "h1")
	token := reader(t, server, "scheduler", "")
	p := webtest.Open(t, server.URL+"/ui/", "/v1/sm", "/v1/fabric/overview", "/v1/profile", "/v1/audit", "/v1/audit/breaks", "/v1/audit/head")
	p.SignIn(token)
	p.AwaitText("1 in inventory.")
	for hash, heading := range map[string]string{"#/profile": "Profile", "#/audit": "Audit"} {
		p.Show(hash, heading)
		p.AwaitText("auditor")
		if shown := webtest.Value[bool](p, `[...document.querySelectorAll('table')].some((t) => t.checkVisibility())`); shown {
			t.Errorf("%s shows a table", heading)
		}
		p.Look("no right to " + strings.ToLower(heading))
	}
	p.Quiet()
}

// manager is the state of a Subnet Manager that leads.
type manager struct{ api.FabricState }

func (manager) SM(context.Context) (*v1.SM, error) {
	return &v1.SM{State: "Master", Settled: true}, nil
}

// leaders are three instances, of which b leads, c has no role sm, and d wrote nothing for a day.
type leaders struct{}

func (leaders) StepDown(context.Context, string, string) error {
	return errors.New("no page asks for that")
}

func (leaders) Leader(context.Context) (*api.Peer, error) { return nil, nil }

func (leaders) Leadership(context.Context) (v1.Leadership, error) {
	now := time.Now()
	return v1.Leadership{Leader: "b", Epoch: 17, Since: now.Add(-time.Hour), Instances: []v1.Instance{
		{Name: "b", API: "https://b.example:8443", Manages: true, Port: 0xb1, Place: "0x1000/3", Seen: now.Add(-time.Minute)},
		{Name: "c", API: "https://c.example:8443", Seen: now.Add(-2 * time.Minute)},
		{Name: "d", Manages: true, Seen: now.Add(-24 * time.Hour)},
		{Name: "e", Manages: true, Seen: now},
	}}, nil
}

// steady is a clock that is believed, of instance b.
type steady struct{}

func (steady) Halted() error { return nil }

func (steady) SetClock(context.Context, string, v1.ClockSet) (*v1.Clock, error) {
	return nil, errors.New("no page asks for that")
}

func (steady) Clock(context.Context) (*v1.Clock, error) {
	now := time.Now()
	return &v1.Clock{State: "steady", Since: now, Time: now, Machine: now, Off: "0s", Highest: now, By: "e", Instance: "b", Tolerance: "5s"}, nil
}

// TestInstances: the page says which instance leads and how each stands, and where there is one alone it says that.
func TestInstances(t *testing.T) {
	t.Parallel()
	edit := func(o *api.Options) {
		o.Backend.State, o.Leadership, o.Clock = manager{o.Backend.State}, leaders{}, steady{}
	}
	_, server := served(t, edit, "h1")
	p := webtest.Open(t, server.URL+"/ui/#/instances")
	p.SignIn(server.Viewer)
	p.Await(`document.querySelector('tr[data-key=b]').innerText.includes('yes')`) // it answers
	want := `{"b":"leads","c":"no role sm","d":"silent","e":"stands by"}`
	if got := webtest.Value[string](p, `JSON.stringify(Object.fromEntries([...document.querySelectorAll('tbody tr')].map((r) =>
		[r.getAttribute('data-key'), r.querySelector('.badge').textContent])))`); got != want {
		t.Errorf("states of instances: %s, want %s", got, want)
	}
	if facts := webtest.Value[string](p, `document.querySelector('.facts').innerText`); !strings.Contains(facts, "17") || !strings.Contains(facts, "Leader\nb") {
		t.Errorf("the leader is shown as %q, want b with epoch 17", facts)
	}
	p.AwaitText(hostile) // of readiness
	p.Look("instances")
	p.Quiet()

	_, alone := served(t, func(o *api.Options) { o.Backend.State, o.Clock = manager{o.Backend.State}, steady{} }, "h1")
	p = webtest.Open(t, alone.URL+"/ui/#/instances")
	p.SignIn(alone.Viewer)
	p.AwaitText("This instance is the only one.")
	p.Await(`![...document.querySelectorAll('table')].some((t) => t.checkVisibility())`)
	p.Quiet()
}

// verified is a log with a break that is open.
type verified struct{ api.AuditVerifier }

func (verified) Breaks(context.Context) (*v1.AuditBreaks, error) {
	return &v1.AuditBreaks{
		Verified: time.Now(), Open: []v1.AuditBreak{{Cause: "altered", Seq: 2, Found: hostile, To: v1.AuditHead{Seq: 3, Hash: "ab"}}}, Accepted: []v1.AuditBreak{},
	}, nil
}

// TestAudit: an auditor finds entries by filters, and sees all of one, with the digests of the record before and after.
func TestAudit(t *testing.T) {
	t.Parallel()
	site, server := served(t, func(o *api.Options) { o.Breaks = verified{} }, "h1", "h2")
	site.Join("h1", "h2")
	book := audit.Book{Store: site.Store}
	all, err := book.List(t.Context(), v1.AuditQuery{})
	if err != nil {
		t.Fatal(err)
	}
	assigned, err := book.List(t.Context(), v1.AuditQuery{Action: "host.assign", Object: "host/h2"})
	if err != nil || len(assigned.Items) != 1 {
		t.Fatalf("h2 was assigned by %d entries, %v; want 1", len(assigned.Items), err)
	}
	e := assigned.Items[0]
	about, err := book.List(t.Context(), v1.AuditQuery{Action: "host.", Object: "host/h2"})
	if err != nil || len(about.Items) == len(all.Items) {
		t.Fatalf("%d of %d entries are about h2, %v; want a part of them", len(about.Items), len(all.Items), err)
	}
	p := webtest.Open(t, server.URL+"/ui/#/audit")
	p.SignIn(reader(t, server, "auditor", ""))
	p.AwaitText(fmt.Sprintf("Page 1, %d entries", len(all.Items)))
	p.AwaitText("broken")
	p.AwaitText(hostile) // of the break
	p.Look("audit")
	p.Type(`input[data-key=action]`, "host.")
	p.Type(`input[data-key=object]`, "host/h2\r")
	p.AwaitText(fmt.Sprintf("Page 1, %d entries", len(about.Items)))
	p.Click(fmt.Sprintf(`tr[data-key="%d"] td a`, e.Seq))
	p.AwaitText(fmt.Sprintf("Audit entry %d", e.Seq))
	p.AwaitText("All entries about this object")
	for _, text := range []string{e.Actor, e.Object, e.Before, e.After, e.Prev, e.Hash} {
		p.AwaitText(text)
	}
	if e.Before == "" || e.After == "" {
		t.Error("the assignment has no record before and after to be shown")
	}
	p.Look("audit entry")
	p.Show("#/audit?since=2999-01-01T00:00", "Audit")
	p.AwaitText("Page 1, 0 entries")
	p.Show("#/audit/999999", "Audit entry 999999")
	p.AwaitText("the log has no entry 999999")
	p.Quiet()
}

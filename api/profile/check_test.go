package profile_test

import (
	"testing"
	"time"

	"portcullis/api/profile"
)

var now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func seen[T any](v T) profile.Seen[T] {
	return profile.Seen[T]{Value: v, Source: "a test", At: now}
}

// good returns facts with which every rule holds.
func good() *profile.Facts {
	all := profile.Count{Of: 4, Good: 4}
	key := profile.ClassKey{Enabled: true, Protected: true}
	return &profile.Facts{
		At: now, LimitedDefault: seen(all), EnforcedIn: seen(all), EnforcedOut: seen(all), TopologyEnforce: seen(true),
		MKeys: seen(profile.DeviceKeys{PerPort: true, Protection: 2, Rotation: time.Hour, Ports: all}),
		SMKey: seen(true), AllowedSMs: seen(true),
		SAKey: seen(profile.SAKey{Set: true, Rotation: time.Hour}), SATrust: seen(profile.SATrust{Enhanced: true, SourceGIDs: true}),
		SALimits: seen(profile.SALimits{Groups: 1, Services: 1, Subscriptions: 1}), CCKey: seen(key), VSKey: seen(key), N2NKey: seen(key),
		MADLimits: seen(profile.MADLimits{All: true, Node: true}), SignedFirmware: seen(all), SMPFirewall: seen(all),
		Attested: seen(profile.Attested{Sets: 1, Hosts: all}), Adopted: seen(profile.Adopted{}),
		Isolation: seen(profile.Isolation{Verdict: profile.Isolated, Begun: now.Add(-3 * time.Hour), MaxAge: 3 * time.Hour}),
		Anchors:   seen(profile.Anchors{Configured: 1, Confirmed: now.Add(-time.Hour)}), Rehearsed: seen(now.Add(-90 * 24 * time.Hour)),
	}
}

func TestGood(t *testing.T) {
	t.Parallel()
	size := 0
	for p := profile.General; p <= profile.SecuredBareMetal; p++ {
		r := profile.Check(p, good())
		if !r.Holds() || r.Score() != 100 {
			t.Errorf("%v: score %d: %+v", p, r.Score(), r.Findings)
		}
		if len(r.Findings) <= size {
			t.Errorf("%v has %d rules, the profile before %d", p, len(r.Findings), size)
		}
		size = len(r.Findings)
		for _, f := range r.Findings {
			if f.Detail != "" || f.Source != "a test" || f.At != now {
				t.Errorf("%s: %+v", f.Rule.Name, f)
			}
		}
	}
	if size != len(profile.Rules()) {
		t.Errorf("the last profile has %d of %d rules", size, len(profile.Rules()))
	}
}

// TestNothingSeen: without evidence no rule holds, and each says why.
func TestNothingSeen(t *testing.T) {
	t.Parallel()
	r := profile.Check(profile.SecuredBareMetal, &profile.Facts{At: now})
	if r.Holds() || r.Score() != 0 || r.Count(profile.Unknown) != len(profile.Rules()) {
		t.Errorf("score %d, %d unknown", r.Score(), r.Count(profile.Unknown))
	}
	for _, f := range r.Findings {
		if f.Detail != "nothing was looked at" {
			t.Errorf("%s: %q", f.Rule.Name, f.Detail)
		}
	}
	if r := profile.Check(0, good()); r.Holds() || r.Score() != 0 {
		t.Error("a profile without rules holds")
	}
	if r := profile.Check(profile.SecuredBareMetal+1, good()); r.Holds() {
		t.Error("a profile that is not one holds")
	}
}

// TestEachState changes one fact, and wants that its rule alone changes.
func TestEachState(t *testing.T) {
	t.Parallel()
	some, none, absurd := profile.Count{Of: 4, Good: 3}, profile.Count{}, profile.Count{Of: 4, Good: 5}
	for _, c := range []struct {
		rule   string
		state  profile.State
		change func(*profile.Facts)
	}{
		{"default-partition-limited", profile.Fails, func(f *profile.Facts) { f.LimitedDefault.Value = some }},
		{"default-partition-limited", profile.Unknown, func(f *profile.Facts) { f.LimitedDefault.Value = none }},
		{"default-partition-limited", profile.Unknown, func(f *profile.Facts) { f.LimitedDefault.Value = absurd }},
		{"enforced-in", profile.Fails, func(f *profile.Facts) { f.EnforcedIn.Value = some }},
		{"enforced-in", profile.Unknown, func(f *profile.Facts) { f.EnforcedIn.Missing = "the view is old" }},
		{"enforced-out", profile.Fails, func(f *profile.Facts) { f.EnforcedOut.Value = some }},
		{"enforced-out", profile.Unknown, func(f *profile.Facts) { f.EnforcedOut.At = time.Time{} }},
		{"topology-enforced", profile.Fails, func(f *profile.Facts) { f.TopologyEnforce.Value = false }},
		{"topology-enforced", profile.Unknown, func(f *profile.Facts) { f.TopologyEnforce.Source = "" }},
		{"m-key", profile.Fails, func(f *profile.Facts) { f.MKeys.Value.PerPort = false }},
		{"m-key", profile.Fails, func(f *profile.Facts) { f.MKeys.Value.Protection = 1 }},
		{"m-key", profile.Fails, func(f *profile.Facts) { f.MKeys.Value.Rotation = 0 }},
		{"m-key", profile.Fails, func(f *profile.Facts) { f.MKeys.Value.Ports = some }},
		{"m-key", profile.Unknown, func(f *profile.Facts) { f.MKeys.Value.Ports = none }},
		{"sm-key", profile.Fails, func(f *profile.Facts) { f.SMKey.Value = false }},
		{"sm-key", profile.Unknown, func(f *profile.Facts) { f.SMKey.Missing = "not read" }},
		{"allowed-sms", profile.Fails, func(f *profile.Facts) { f.AllowedSMs.Value = false }},
		{"allowed-sms", profile.Unknown, func(f *profile.Facts) { f.AllowedSMs.Missing = "not read" }},
		{"sa-key", profile.Fails, func(f *profile.Facts) { f.SAKey.Value.Set = false }},
		{"sa-key", profile.Fails, func(f *profile.Facts) { f.SAKey.Value.Rotation = 0 }},
		{"sa-key", profile.Unknown, func(f *profile.Facts) { f.SAKey.Missing = "not read" }},
		{"sa-trust", profile.Fails, func(f *profile.Facts) { f.SATrust.Value.Enhanced = false }},
		{"sa-trust", profile.Fails, func(f *profile.Facts) { f.SATrust.Value.SourceGIDs = false }},
		{"sa-trust", profile.Unknown, func(f *profile.Facts) { f.SATrust.Missing = "not read" }},
		{"sa-limits", profile.Fails, func(f *profile.Facts) { f.SALimits.Value.Groups = 0 }},
		{"sa-limits", profile.Fails, func(f *profile.Facts) { f.SALimits.Value.Services = 0 }},
		{"sa-limits", profile.Fails, func(f *profile.Facts) { f.SALimits.Value.Subscriptions = 0 }},
		{"sa-limits", profile.Unknown, func(f *profile.Facts) { f.SALimits.Missing = "not read" }},
		{"cc-key", profile.Fails, func(f *profile.Facts) { f.CCKey.Value.Enabled = false }},
		{"cc-key", profile.Unknown, func(f *profile.Facts) { f.CCKey.Missing = "not read" }},
		{"vs-key", profile.Fails, func(f *profile.Facts) { f.VSKey.Value.Protected = false }},
		{"vs-key", profile.Unknown, func(f *profile.Facts) { f.VSKey.Missing = "not read" }},
		{"n2n-key", profile.Fails, func(f *profile.Facts) { f.N2NKey.Value.Enabled = false }},
		{"n2n-key", profile.Unknown, func(f *profile.Facts) { f.N2NKey.Missing = "not read" }},
		{"mad-limiter", profile.Fails, func(f *profile.Facts) { f.MADLimits.Value.Node = false }},
		{"mad-limiter", profile.Fails, func(f *profile.Facts) { f.MADLimits.Value.All = false }},
		{"mad-limiter", profile.Unknown, func(f *profile.Facts) { f.MADLimits.Missing = "not read" }},
		{"signed-firmware", profile.Fails, func(f *profile.Facts) { f.SignedFirmware.Value = some }},
		{"signed-firmware", profile.Unknown, func(f *profile.Facts) { f.SignedFirmware.Value = none }},
		{"smp-firewall", profile.Fails, func(f *profile.Facts) { f.SMPFirewall.Value = some }},
		{"smp-firewall", profile.Unknown, func(f *profile.Facts) { f.SMPFirewall.Value = none }},
		{"attested", profile.Fails, func(f *profile.Facts) { f.Attested.Value.Sets = 0 }},
		{"members-proven", profile.Fails, func(f *profile.Facts) { f.Adopted.Value.Members = 1 }},
		{"members-proven", profile.Unknown, func(f *profile.Facts) { f.Adopted.Value.Members = -1 }},
		{"attested", profile.Fails, func(f *profile.Facts) { f.Attested.Value.Hosts = some }},
		{"attested", profile.Unknown, func(f *profile.Facts) { f.Attested.Value.Hosts = none }},
		{"isolation-proven", profile.Fails, func(f *profile.Facts) {
			f.Isolation.Value = profile.Isolation{Verdict: profile.Leaks, Why: "a packet passes", Begun: now, MaxAge: time.Hour}
		}},
		{"isolation-proven", profile.Fails, func(f *profile.Facts) { f.Isolation.Value.Begun = now.Add(-3*time.Hour - 1) }},
		{"isolation-proven", profile.Unknown, func(f *profile.Facts) { f.Isolation.Value.Begun = now.Add(1) }},
		{"isolation-proven", profile.Unknown, func(f *profile.Facts) {
			f.Isolation.Value.Verdict, f.Isolation.Value.Why = profile.Unproven, "a switch did not answer"
		}},
		{"isolation-proven", profile.Unknown, func(f *profile.Facts) { f.Isolation.Missing = "this instance does not lead" }},
		{"audit-anchored", profile.Fails, func(f *profile.Facts) { f.Anchors.Value.Configured = 0 }},
		{"audit-anchored", profile.Fails, func(f *profile.Facts) { f.Anchors.Value.Confirmed = time.Time{} }},
		{"audit-anchored", profile.Fails, func(f *profile.Facts) { f.Anchors.Value.Confirmed = now.Add(-time.Hour - 1) }},
		{"audit-anchored", profile.Unknown, func(f *profile.Facts) { f.Anchors.Value.Confirmed = now.Add(1) }},
		{"escrow-rehearsed", profile.Fails, func(f *profile.Facts) { f.Rehearsed.Value = time.Time{} }},
		{"escrow-rehearsed", profile.Fails, func(f *profile.Facts) { f.Rehearsed.Value = now.Add(-90*24*time.Hour - 1) }},
		{"escrow-rehearsed", profile.Unknown, func(f *profile.Facts) { f.Rehearsed.Missing = "no record is kept" }},
	} {
		facts := good()
		c.change(facts)
		r := profile.Check(profile.SecuredBareMetal, facts)
		if r.Holds() || r.Score() >= 100 {
			t.Errorf("%s %v: the profile holds", c.rule, c.state)
		}
		for _, f := range r.Findings {
			want := profile.Holds
			if f.Rule.Name == c.rule {
				want = c.state
			}
			if f.State != want || (f.Detail == "") != (want == profile.Holds) {
				t.Errorf("%s %v: %s %v, %q", c.rule, c.state, f.Rule.Name, f.State, f.Detail)
			}
		}
	}
	facts := good()
	facts.At = time.Time{}
	if n := profile.Check(profile.SecuredBareMetal, facts).Count(profile.Unknown); n != 3 {
		t.Errorf("without the time of the facts, %d rules are unknown; want 3, those about ages", n)
	}
}

// TestTable: each rule has a name of its own, a reason and a cure, and every profile is found by its name.
func TestTable(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, r := range profile.Rules() {
		if r.Name == "" || names[r.Name] || r.Why == "" || r.Cure == "" || r.First < profile.General {
			t.Errorf("%+v", r)
		}
		names[r.Name] = true
	}
	for p := profile.General; p <= profile.SecuredBareMetal; p++ {
		if got, err := profile.Parse(p.String()); got != p || err != nil {
			t.Errorf("%v: %v, %v", p, got, err)
		}
	}
	if _, err := profile.Parse("best"); err == nil {
		t.Error("best is a profile")
	}
}

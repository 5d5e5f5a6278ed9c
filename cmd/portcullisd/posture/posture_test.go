package posture

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"portcullis/api/adoptions"
	"portcullis/api/audit/anchor"
	"portcullis/api/fabric/records"
	"portcullis/api/isolation/standing"
	"portcullis/api/profile"
	"portcullis/api/refusal"
	"portcullis/api/rehearsal"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/sm/mkeys/keyplace"
	"portcullis/fabricsm/testbed"
)

var at = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// state returns the state of a rule, and why.
func state(t *testing.T, f *profile.Facts, rule string) (profile.State, string) {
	t.Helper()
	r := profile.Check(profile.SecuredBareMetal, f)
	for i := range r.Findings {
		if r.Findings[i].Rule.Name == rule {
			return r.Findings[i].State, r.Findings[i].Detail
		}
	}
	t.Fatalf("there is no rule %s", rule)
	return 0, ""
}

func TestAnchored(t *testing.T) {
	t.Parallel()
	const head = 9
	for _, c := range []struct {
		name   string
		states []anchor.State
		want   profile.State
	}{
		{"none", nil, profile.Fails},
		{"the log of the service alone", []anchor.State{{Name: "journal", Seq: head}}, profile.Fails},
		{"it has the head", []anchor.State{{Name: "file", Seq: head}}, profile.Holds},
		{"the next look finds the head", []anchor.State{{Name: "file", Seq: head - 1}}, profile.Holds},
		{"it was never written", []anchor.State{{Name: "file", Err: errors.New("no space")}}, profile.Unknown},
		{"one of two is late", []anchor.State{{Name: "file", Seq: head}, {Name: "web", Seq: 1, Since: at.Add(-2 * time.Hour)}}, profile.Fails},
		{"one is late for a moment", []anchor.State{{Name: "web", Seq: 1, Since: at.Add(-time.Minute)}}, profile.Holds},
	} {
		f := &profile.Facts{At: at}
		f.Anchors = anchored(at, head, c.states, time.Minute)
		if got, why := state(t, f, "audit-anchored"); got != c.want {
			t.Errorf("%s: %v (%s), want %v", c.name, got, why, c.want)
		}
	}
}

// A membership that was adopted and is not replaced, nor proven gone, has the rule fail.
func TestAdopted(t *testing.T) {
	t.Parallel()
	s := store.New(memory.New(time.Now), "")
	c := New(Options{Store: s, Now: func() time.Time { return at }, Anchors: func() []anchor.State { return nil }})
	kept, gone := records.Key{PKey: 1, GUID: 2, Place: ib.Place{Switch: 3, Port: 4}}.String(), records.Key{PKey: 1, GUID: 5, Place: ib.Place{Switch: 3, Port: 5}}.String()
	for _, step := range []struct {
		grant  records.Grant
		want   profile.State
		detail string
	}{
		{records.Grant{Adopted: "adoption-0001"}, profile.Fails, "1 memberships are adopted until 2027-01-01T00:00:00Z"},
		{records.Grant{Adopted: "adoption-0001", Withdrawn: true}, profile.Fails, "1 memberships"},
		{records.Grant{Host: "h1", Cluster: "blue"}, profile.Holds, ""},
	} {
		if _, err := s.Update(t.Context(), func(tx *store.Tx) error {
			return errors.Join(
				adoptions.Records().Put(tx, "adoption-0001", adoptions.Record{State: v1.AdoptionKept, Deadline: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}),
				records.Adoptions().Put(tx, kept, records.Adopted{Adoption: "adoption-0001"}), records.Adoptions().Put(tx, gone, records.Adopted{Adoption: "adoption-0001"}),
				records.Grants().Put(tx, kept, step.grant),
			)
		}); err != nil {
			t.Fatal(err)
		}
		f, err := c.Facts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got, why := state(t, f, "members-proven"); got != step.want || !strings.Contains(why, step.detail) {
			t.Errorf("%+v: %v (%s), want %v", step.grant, got, why, step.want)
		}
	}
}

// One bad port decides, and one that was not read leaves the rest open.
func TestCount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		count count
		want  profile.State
	}{
		{count{}, profile.Unknown},
		{count{good: 2}, profile.Holds},
		{count{good: 2, unread: 1}, profile.Unknown},
		{count{good: 2, bad: 1}, profile.Fails},
		{count{good: 2, bad: 1, unread: 1}, profile.Fails},
	} {
		f := &profile.Facts{At: at}
		f.EnforcedIn = c.count.seen(at, "a test", "settings")
		if got, why := state(t, f, "enforced-in"); got != c.want {
			t.Errorf("%+v: %v (%s), want %v", c.count, got, why, c.want)
		}
	}
}

// An adapter that shows nothing is neither assured nor locked, and a host without evidence leaves open what it has.
func TestAdapters(t *testing.T) {
	t.Parallel()
	var a adapters
	a.oldest = at
	a.add(nil)
	f := &profile.Facts{At: at}
	f.SignedFirmware = a.seen(&a.signed)
	if got, why := state(t, f, "signed-firmware"); got != profile.Unknown || !strings.Contains(why, "of 1 admitted") {
		t.Errorf("without evidence: %v, %s", got, why)
	}
	a.add(&attest.Verdict{OK: true, Facts: attest.Facts{Verified: at.Add(-time.Hour), Statement: &attest.Statement{HCAs: []attest.HCA{{Name: "mlx5_0"}}}}})
	f.SignedFirmware, f.SMPFirewall = a.seen(&a.signed), a.seen(&a.locked)
	for _, rule := range []string{"signed-firmware", "smp-firewall"} {
		if got, why := state(t, f, rule); got != profile.Fails {
			t.Errorf("%s of an adapter that shows nothing: %v, %s", rule, got, why)
		}
	}
	if f.SMPFirewall.At != at.Add(-time.Hour) {
		t.Errorf("evidence is of %v", f.SMPFirewall.At)
	}
}

// Settings are those in use: an empty list of allowed Subnet Managers restricts nothing, and a key that is a default is none.
func TestSettings(t *testing.T) {
	t.Parallel()
	core, answers, found := sm.DefaultConfig(), sa.DefaultConfig(), errors.New("the fabric was not seen")
	m := &Manager{
		Core: func() sm.Config { return core }, View: func() (*sm.View, error) { return nil, found },
		Administration: func() (sa.Config, bool) { return answers, true }, SAKey: func() (bool, error) { return false, found },
		Standing: func() (standing.Standing, bool) { return standing.Standing{}, false },
	}
	collect := func() *profile.Facts {
		t.Helper()
		c := New(Options{Store: store.New(memory.New(time.Now), ""), Now: func() time.Time { return at }, Anchors: func() []anchor.State { return nil }, Manager: m})
		f, err := c.Facts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	want := func(f *profile.Facts, states map[string]profile.State) {
		t.Helper()
		for rule, want := range states {
			if got, why := state(t, f, rule); got != want {
				t.Errorf("%s: %v (%s), want %v", rule, got, why, want)
			}
		}
	}
	core.SMKey = ib.NewSMKey(1)
	want(collect(), map[string]profile.State{
		"sm-key": profile.Fails, "allowed-sms": profile.Fails, "cc-key": profile.Fails, "enforced-in": profile.Unknown, "m-key": profile.Unknown,
		"topology-enforced": profile.Unknown, "sa-key": profile.Unknown, "mad-limiter": profile.Holds, "sa-limits": profile.Holds,
		"attested": profile.Fails, "signed-firmware": profile.Unknown, "escrow-rehearsed": profile.Fails, "audit-anchored": profile.Fails,
	})
	core.SMKey, core.Election.Allowed = ib.NewSMKey(0x8f3a5b1c92d7e604), []sm.AllowedSM{{GUID: 7}}
	core.ClassKeys.CC = sm.ClassKeyConfig{Enable: sm.KeyEnabled}
	core.ClassKeys.VS = sm.ClassKeyConfig{Enable: sm.KeyEnabled, Readable: true}
	answers.Key, answers.Limiter.Other.Node.Rate = ib.NewSAKey(0x8f3a5b1c92d7e604), 0
	want(collect(), map[string]profile.State{
		"sm-key": profile.Holds, "allowed-sms": profile.Holds, "cc-key": profile.Holds, "vs-key": profile.Fails, "n2n-key": profile.Fails,
		"sa-key": profile.Fails, "mad-limiter": profile.Fails,
	})
	m = nil
	for _, rule := range []string{"sm-key", "allowed-sms", "cc-key", "enforced-out", "m-key", "sa-key", "sa-trust", "mad-limiter", "default-partition-limited", "isolation-proven"} {
		want(collect(), map[string]profile.State{rule: profile.Unknown})
	}
}

// TestIsolation: a packet that passes fails the rule whatever its age, and what proves nothing leaves it unknown.
func TestIsolation(t *testing.T) {
	t.Parallel()
	const bound = 3 * time.Hour
	for _, c := range []struct {
		name   string
		now    standing.Standing
		known  bool
		want   profile.State
		detail string
	}{
		{"it does not lead", standing.Standing{Verdict: v1.Isolated, Examined: at, MaxAge: bound}, false, profile.Unknown, "does not lead"},
		{"never examined", standing.Standing{Verdict: v1.IsolationUnknown, MaxAge: bound}, true, profile.Unknown, "no examination of all tenants"},
		{"isolated", standing.Standing{Verdict: v1.Isolated, Examined: at.Add(-bound), Reason: "all pairs", MaxAge: bound}, true, profile.Holds, ""},
		{"isolated, but long ago", standing.Standing{Verdict: v1.Isolated, Examined: at.Add(-bound - 1), MaxAge: bound}, true, profile.Fails, "want at most 3h"},
		{"a clock is wrong", standing.Standing{Verdict: v1.Isolated, Examined: at.Add(time.Second), MaxAge: bound}, true, profile.Unknown, "after the facts"},
		{"a packet passes", standing.Standing{Verdict: v1.Leaks, Examined: at, Reason: "from blue to red", MaxAge: bound}, true, profile.Fails, "from blue to red"},
		{"a packet passed long ago", standing.Standing{Verdict: v1.Leaks, Examined: at.Add(-9 * bound), Reason: "from blue", MaxAge: bound}, true, profile.Fails, "from blue"},
		{"not read", standing.Standing{Verdict: v1.IsolationUnknown, Examined: at, Reason: "3 values", MaxAge: bound}, true, profile.Unknown, "3 values"},
		{"a verdict of another version", standing.Standing{Verdict: "good", Examined: at, Reason: "good", MaxAge: bound}, true, profile.Unknown, "good"},
	} {
		f := &profile.Facts{At: at}
		(&Manager{Standing: func() (standing.Standing, bool) { return c.now, c.known }}).isolation(f)
		if got, why := state(t, f, "isolation-proven"); got != c.want || !strings.Contains(why, c.detail) {
			t.Errorf("%s: %v (%s), want %v", c.name, got, why, c.want)
		}
	}
}

// TestRehearsed judges the age of the last rehearsal of an escrow kit that was recorded.
func TestRehearsed(t *testing.T) {
	t.Parallel()
	st := store.New(memory.New(time.Now), "")
	c := New(Options{Store: st, Now: func() time.Time { return at }, Anchors: func() []anchor.State { return nil }})
	for _, test := range []struct {
		listed time.Time // of the record; zero: there is none
		want   profile.State
	}{
		{time.Time{}, profile.Fails}, {at.Add(-91 * 24 * time.Hour), profile.Fails}, {at.Add(-time.Hour), profile.Holds},
	} {
		if !test.listed.IsZero() {
			_, err := st.Update(t.Context(), func(tx *store.Tx) error {
				return rehearsal.Records().Put(tx, "kit", rehearsal.Record{Listed: test.listed})
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		f, err := c.Facts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got, why := state(t, f, "escrow-rehearsed"); got != test.want {
			t.Errorf("listed %v: %v (%s), want %v", test.listed, got, why, test.want)
		}
	}
}

// TestFabric judges what a Subnet Manager read of a simulated fabric whose switches enforce partitions, with M_Keys and without.
func TestFabric(t *testing.T) {
	t.Parallel()
	for _, keyed := range []bool{true, false} {
		l, err := netlist.FatTree2(netlist.Shape{Hosts: 6, Radix: 8})
		if err != nil {
			t.Fatal(err)
		}
		master, err := keys.DrawMaster(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		o := testbed.Options{Netlist: l, Manager: "sm"}
		if keyed {
			o.SM.MKey = mkeys.Config{Source: keys.Derived{Master: master}, Places: keyplace.Seen, Protection: 2, Rotation: keys.DefaultRotation()}
		}
		stage, err := testbed.New(o)
		if err != nil {
			t.Fatal(err)
		}
		stage.Start()
		stage.Want(sm.Intent{Revision: 1})
		if err := stage.Settle(time.Minute); err != nil {
			t.Fatal(err)
		}
		f := &profile.Facts{At: at}
		stage.Run(30 * time.Minute) // blocks without entries are read by audits
		fabric(f, stage.View(), &o.SM)
		wants := map[string]profile.State{
			"default-partition-limited": profile.Holds, "enforced-in": profile.Holds, "enforced-out": profile.Holds, "topology-enforced": profile.Fails, "m-key": profile.Fails,
		}
		if keyed {
			wants["m-key"] = profile.Holds
		}
		for rule, want := range wants {
			if got, why := state(t, f, rule); got != want {
				t.Errorf("keys %v: %s: %v (%s), want %v", keyed, rule, got, why, want)
			}
		}
		if n := f.EnforcedIn.Value.Of; n != 5 {
			t.Errorf("%d ports of hosts were judged, want 5: one has the Subnet Manager", n)
		}
		other := *stage.View()
		other.State = ib.SMStandby
		f = &profile.Facts{At: at}
		fabric(f, &other, &o.SM)
		if got, why := state(t, f, "enforced-in"); got != profile.Unknown || !strings.Contains(why, "not master") {
			t.Errorf("of a standby: %v, %s", got, why)
		}
	}
}

// Records that are not read are a refusal, and no fault of the service.
func TestUnread(t *testing.T) {
	t.Parallel()
	c := New(Options{Store: store.New(memory.New(time.Now), ""), Now: func() time.Time { return at }, Anchors: func() []anchor.State { return nil }})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Profile(ctx, profile.General); err != nil {
		if e, ok := errors.AsType[*refusal.Error](err); !ok || e.Status != refusal.Unavailable {
			t.Errorf("records that are not read: %v", err)
		}
	}
}

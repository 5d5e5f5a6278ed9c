package trace

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/tracecontext"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

const pkey = ib.PKey(0x12)

func port(n int) records.Key {
	return records.Key{PKey: pkey, GUID: ib.GUID(0x100 + n), Place: ib.Place{Switch: 0x50, Port: ib.PortNum(n)}}
}

// assigned returns the record of a host from second 0.
func assigned() hostrecord.Record {
	return hostrecord.Record{
		Phase: v1.PhaseAwaiting, Since: at(0), Cluster: "train", Tenant: "acme", PKey: pkey, Epoch: 3, Assigned: at(0), Window: at(3600),
		Trace: tracecontext.Parent{Trace: [16]byte{1}, Span: [8]byte{2}, Sampled: true},
	}
}

func evidence() *hostrecord.Evidence {
	return &hostrecord.Evidence{Time: at(13), Course: hostrecord.Course{
		Asked: at(10), Received: at(12), Began: at(12).Add(100 * time.Millisecond), Host: tracecontext.Parent{Trace: [16]byte{8}, Span: [8]byte{9}},
		Parts: []hostrecord.Took{{Part: attest.PartQuote, Time: 300 * time.Millisecond}, {Part: attest.PartBoot, Time: 100 * time.Millisecond}},
	}}
}

func admitted() hostrecord.Record {
	r := assigned()
	r.Evidence, r.Sealed, r.Granted, r.Admitted, r.Phase, r.Since = evidence(), at(15), true, true, v1.PhaseAdmitted, at(40)
	r.Grants = []string{port(1).String(), port(2).String(), records.Key{PKey: 0x99, GUID: 5, Place: ib.Place{Switch: 1, Port: 1}}.String()}
	return r
}

func standing(found, ordered int) records.Standing {
	return records.Standing{
		Grant: records.Grant{Host: "h1", Since: at(16), Epoch: 3}, Modified: 7,
		Found: records.Membership{State: records.Applied, Revision: 7, Time: at(found), Ordered: at(ordered)},
	}
}

// text writes a span and those below it, times in seconds from start.
func text(s *Span, indent string) string {
	out := fmt.Sprintf("%s%s %g-%g", indent, s.Name, s.Start.Sub(start).Seconds(), s.End.Sub(start).Seconds())
	for _, a := range s.Attributes {
		value := a.Text
		if value == "" {
			value = fmt.Sprint(a.Number)
		}
		out += fmt.Sprintf(" %s=%s", strings.TrimPrefix(a.Key, "portcullis."), value)
	}
	for _, e := range s.Events {
		out += fmt.Sprintf(" [%s %g %s %s]", e.Name, e.Time.Sub(start).Seconds(), e.Attributes[0].Text, e.Attributes[1].Text)
	}
	if s.Failed != "" {
		out += " FAILED " + s.Failed
	}
	out += "\n"
	for i := range s.Children {
		out += text(&s.Children[i], indent+"  ")
	}
	return out
}

// follow has a Keeper take records of h1 one after another, and returns what ended.
func follow(k *Keeper, list ...hostrecord.Record) (ended []Ended) {
	for i := range list {
		ended = append(ended, k.Take("h1", &list[i], at(1000))...)
	}
	return ended
}

func one(t *testing.T, ended []Ended) *Ended {
	t.Helper()
	if len(ended) != 1 {
		t.Fatalf("%d ended: %+v; want 1", len(ended), ended)
	}
	return &ended[0]
}

func TestAdmission(t *testing.T) {
	t.Parallel()
	attested := admitted()
	attested.Admitted, attested.Phase = false, v1.PhaseGranting
	e := one(t, follow(NewKeeper(), hostrecord.Record{Epoch: 2}, assigned(), attested, admitted(), admitted()))
	keys, err := e.Keys()
	if err != nil || !slices.Equal(keys, []records.Key{port(1), port(2)}) {
		t.Errorf("keys %v, %v; want those of the partition", keys, err)
	}
	tr := e.Trace(map[records.Key]records.Standing{port(1): standing(30, 17), port(2): standing(38, 18)})
	want := `admission 0-40 host=h1 cluster=train tenant=acme outcome=admitted epoch=3 phase=admitted
  wait for host 0-10
  challenge 10-12
  verification 12-13
    read 12-12.1
    quote 12.1-12.4
    boot 12.4-12.5
    record 12.5-13
  hand-over 13-15
  guards 15-16 ports=2
  memberships 16-38
    port 16-30 port.guid=0x0000000000000101 port.place=0x0000000000000050/1 membership=applied
      order 16-17
      write and read back 17-30
    port 16-38 port.guid=0x0000000000000102 port.place=0x0000000000000050/2 membership=applied
      order 16-18
      write and read back 18-38
  confirmation 38-40 phase=admitted
`
	if d := cmp.Diff(want, text(&tr.Root, "")); d != "" {
		t.Error(d)
	}
	if tr.Parent != assigned().Trace || tr.Link != evidence().Course.Host || e.Took() != 40*time.Second {
		t.Errorf("parent %v, link %v, took %v", tr.Parent, tr.Link, e.Took())
	}
}

// TestUnended: a trace that is not that of an admission says in which step it ended.
func TestUnended(t *testing.T) {
	t.Parallel()
	released := hostrecord.Record{Phase: v1.PhaseQuarantined, Since: at(100), Epoch: 3}
	again := assigned()
	again.Epoch, again.Assigned = 4, at(90)
	attested := assigned()
	attested.Evidence, attested.Phase, attested.Since = evidence(), v1.PhaseVerified, at(13)
	sealed := attested
	sealed.Sealed = at(15)
	granting := sealed
	granting.Grants, granting.Granted = []string{port(1).String()}, true
	refused := assigned()
	refused.Denial, refused.DenialProof = &v1.Denial{Time: at(5), Code: "pcr", Detail: "what a host sent"}, hostrecord.ProvenTPM
	const head = " host=h1 cluster=train tenant=acme "
	for name, c := range map[string]struct {
		records []hostrecord.Record
		of      map[records.Key]records.Standing
		want    string
	}{
		"released before the host came": {[]hostrecord.Record{assigned(), released}, nil, "admission 0-100" + head + `outcome=released epoch=3 phase=awaiting FAILED released
  wait for host 0-100 FAILED released
`},
		"assigned again": {[]hostrecord.Record{assigned(), again}, nil, "admission 0-90" + head + `outcome=reassigned epoch=3 phase=awaiting FAILED reassigned
  wait for host 0-90 FAILED reassigned
`},
		"refused": {[]hostrecord.Record{assigned(), refused, refused, released}, nil, "admission 0-100" + head + `outcome=released epoch=3 phase=awaiting refusals=1 [attestation refused 5 pcr tpm] FAILED released
  wait for host 0-100 FAILED released
`},
		"not handed over": {[]hostrecord.Record{attested, released}, nil, "admission 0-100" + head + `outcome=released epoch=3 phase=verified FAILED released
  wait for host 0-10
  challenge 10-12
  verification 12-13
    read 12-12.1
    quote 12.1-12.4
    boot 12.4-12.5
    record 12.5-13
  hand-over 13-100 FAILED released
`},
		"held by guards": {[]hostrecord.Record{sealed, released}, nil, "admission 0-100" + head + `outcome=released epoch=3 phase=verified FAILED released
  wait for host 0-10
  challenge 10-12
  verification 12-13
    read 12-12.1
    quote 12.1-12.4
    boot 12.4-12.5
    record 12.5-13
  hand-over 13-15
  guards 15-100 FAILED released
`},
		"not read back": {[]hostrecord.Record{granting, released}, map[records.Key]records.Standing{port(1): {Grant: records.Grant{Host: "h1", Since: at(16), Epoch: 3}, Modified: 7}}, "admission 0-100" + head + `outcome=released epoch=3 phase=verified FAILED released
  wait for host 0-10
  challenge 10-12
  verification 12-13
    read 12-12.1
    quote 12.1-12.4
    boot 12.4-12.5
    record 12.5-13
  hand-over 13-15
  guards 15-16 ports=1
  memberships 16-100 FAILED released
    port 16-100 port.guid=0x0000000000000101 port.place=0x0000000000000050/1 FAILED not read back
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := one(t, follow(NewKeeper(), c.records...)).Trace(c.of)
			if d := cmp.Diff(c.want, text(&tr.Root, "")); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestWindow: a window that closes without evidence ends a trace once; with evidence it ends none.
func TestWindow(t *testing.T) {
	t.Parallel()
	k := NewKeeper()
	attested := assigned()
	attested.Evidence = evidence()
	open := assigned()
	k.Take("h1", &open, at(0))
	k.Take("h2", &attested, at(0))
	if ended := k.Due(at(3599)); len(ended) != 0 {
		t.Errorf("%+v ended before the window closed", ended)
	}
	e := one(t, k.Due(at(3600)))
	if tr := e.Trace(nil); e.Host != "h1" || tr.Root.Failed != string(Shut) || !tr.Root.End.Equal(at(3600)) {
		t.Errorf("%+v", tr)
	}
	if ended := append(k.Due(at(9000)), follow(k, hostrecord.Record{Epoch: 3, Since: at(4000)})...); len(ended) != 0 {
		t.Errorf("%+v ended once more", ended)
	}
}

// TestRelease: from the order until the P_Keys are proven absent, with the names of the assignment that ended.
func TestRelease(t *testing.T) {
	t.Parallel()
	by := tracecontext.Parent{Trace: [16]byte{5}, Span: [8]byte{6}}
	releasing := hostrecord.Record{Phase: v1.PhaseReleasing, Since: at(50), Epoch: 3, Trace: by}
	gone := hostrecord.Record{Phase: v1.PhaseQuarantined, Since: at(57), Epoch: 3, Trace: by}
	e := one(t, follow(NewKeeper(), admitted(), releasing, gone, gone))
	tr := e.Trace(nil)
	if got, want := text(&tr.Root, ""), "release 50-57 host=h1 cluster=train tenant=acme outcome=released epoch=3\n"; got != want || tr.Parent != by || !tr.Link.IsZero() {
		t.Errorf("%s parent %v, link %v; want %s", got, tr.Parent, tr.Link, want)
	}
}

// TestFirstSight: what had ended before the first record was read has no trace; what had not has one, as another instance would
// have made it. A host that is gone ends its trace.
func TestFirstSight(t *testing.T) {
	t.Parallel()
	if ended := follow(NewKeeper(), admitted(), admitted()); len(ended) != 0 {
		t.Errorf("%+v ended", ended)
	}
	old := assigned()
	old.Assigned = time.Time{} // by an earlier release
	if ended := follow(NewKeeper(), old, admitted()); len(ended) != 0 {
		t.Errorf("%+v ended", ended)
	}
	attested := assigned()
	attested.Evidence = evidence()
	all, late := one(t, follow(NewKeeper(), assigned(), attested, admitted())).Trace(nil), one(t, follow(NewKeeper(), attested, admitted())).Trace(nil)
	if d := cmp.Diff(all, late); d != "" || all.ID == [16]byte{} {
		t.Errorf("an instance that came later makes another trace: %s", d)
	}
	with := admitted()
	with.Denial = &v1.Denial{Time: at(11), Code: "nonce"}
	last := one(t, follow(NewKeeper(), assigned(), with)).Trace(nil)
	if len(last.Root.Events) != 1 {
		t.Errorf("events %v, want the refusal that is first seen with the admission", last.Root.Events)
	}
	k := NewKeeper()
	follow(k, assigned())
	other := assigned()
	k.Take("h2", &other, at(0))
	e := one(t, k.Keep(map[string]bool{"h2": true}, at(70)))
	if tr := e.Trace(nil); e.Host != "h1" || tr.Root.Failed != string(Removed) || !tr.Root.End.Equal(at(70)) {
		t.Errorf("%+v", tr)
	}
	if len(k.hosts) != 1 {
		t.Errorf("%d hosts are kept, want 1", len(k.hosts))
	}
}

// TestBounds: neither refusals nor ports nor times of other clocks make a trace larger or turn it around.
func TestBounds(t *testing.T) {
	t.Parallel()
	k := NewKeeper()
	follow(k, assigned())
	for i := range 1000 {
		r := assigned()
		r.Denial = &v1.Denial{Time: at(1 + i), Code: "nonce", Detail: strings.Repeat("x", 4096)}
		follow(k, r)
	}
	r := admitted()
	r.Denial = &v1.Denial{Time: at(1000), Code: "nonce"}
	r.Grants = nil
	of := map[records.Key]records.Standing{}
	for i := range 200 {
		r.Grants = append(r.Grants, port(i).String())
		of[port(i)] = standing(30, 17)
	}
	e := one(t, follow(k, r))
	keys, err := e.Keys()
	if err != nil || len(keys) != MaxPorts {
		t.Errorf("%d keys, %v", len(keys), err)
	}
	tr := e.Trace(of)
	if n := len(tr.Root.Events); n != MaxRefusals {
		t.Errorf("%d events, want %d", n, MaxRefusals)
	}
	if got := text(&tr.Root, ""); !strings.Contains(got, "refusals=1000 ") || strings.Count(got, "\n    port ") != MaxPorts || strings.Contains(got, "xx") {
		t.Errorf("%.3000s", got)
	}

	// Grants of another assignment, and those that were taken back since, are none of this one.
	old, gone := standing(30, 17), standing(30, 17)
	old.Grant.Epoch, old.Grant.Since = 2, at(14)
	gone.Grant.Withdrawn = true
	tr = one(t, follow(NewKeeper(), assigned(), admitted())).Trace(map[records.Key]records.Standing{port(1): old, port(2): gone, port(3): standing(35, 18)})
	if got := text(&tr.Root, ""); !strings.Contains(got, "guards 15-16 ") || strings.Contains(got, port(2).GUID.String()) {
		t.Error(got)
	}

	turned := admitted()
	turned.Evidence.Course.Asked, turned.Evidence.Course.Received, turned.Sealed = at(-50), at(900), at(2)
	turned.Evidence.Course.Parts[0].Time = -time.Hour
	turned.Evidence.Course.Parts[1].Time = time.Hour
	tr = one(t, follow(NewKeeper(), assigned(), turned)).Trace(map[records.Key]records.Standing{port(1): standing(-7, 9000)})
	ordered(t, &tr.Root)
	turned.Since = at(-100)
	tr = one(t, follow(NewKeeper(), assigned(), turned)).Trace(map[records.Key]records.Standing{port(1): standing(3, 2)})
	ordered(t, &tr.Root)
}

// ordered holds that spans end after they began, and that children lie within.
func ordered(t *testing.T, s *Span) {
	t.Helper()
	if s.End.Before(s.Start) {
		t.Errorf("%s ends before it began", text(s, ""))
	}
	for i := range s.Children {
		c := &s.Children[i]
		if c.Start.Before(s.Start) || c.End.After(s.End) {
			t.Errorf("%s is not within %s", text(c, ""), s.Name)
		}
		ordered(t, c)
	}
}

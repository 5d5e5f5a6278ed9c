package admission

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

var (
	noon   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	placeA = ib.Place{Switch: 0x10, Port: 1}
	placeB = ib.Place{Switch: 0x10, Port: 2}
	keyA   = records.Key{PKey: 5, GUID: 0xa1, Place: placeA}
	keyB   = records.Key{PKey: 5, GUID: 0xb1, Place: placeB}
)

// admitted returns the facts about a host with two HCAs that is admitted, its grants last changed at revision 100.
func admitted() *facts {
	granted := records.Standing{Grant: records.Grant{Host: "h"}, Modified: 100, Found: records.Membership{State: records.Applied, Revision: 100}}
	return &facts{
		now: noon, evidenceAge: time.Hour, needsSeal: true, keepsUnseen: true,
		host: inventory.Host{ID: "h", HCAs: []inventory.HCA{
			{NodeGUID: 0xa0, Ports: []inventory.Port{{Num: 1, GUID: 0xa1, Cable: placeA}}},
			{NodeGUID: 0xb0, Ports: []inventory.Port{{Num: 1, GUID: 0xb1, Cable: placeB}}},
		}},
		rec: hostrecord.Record{
			Phase: v1.PhaseAdmitted, Cluster: "c", Tenant: "t", PKey: 5, Window: noon.Add(time.Hour), Granted: true, Admitted: true,
			Evidence: &hostrecord.Evidence{Time: noon.Add(-time.Minute)}, Sealed: noon.Add(-time.Minute),
		},
		ports: map[ib.GUID]records.Port{
			0xa1: {NodeGUID: 0xa0, Place: placeA, HCACap: 128, SwitchCap: 32}, 0xb1: {NodeGUID: 0xb0, Place: placeB, HCACap: 128, SwitchCap: 32},
		},
		grants: map[records.Key]records.Standing{keyA: granted, keyB: granted},
	}
}

func alter(k records.Key, change func(*records.Standing)) func(*facts) {
	return func(f *facts) {
		s := f.grants[k]
		change(&s)
		f.grants[k] = s
	}
}

func fresh(f *facts) { f.grants, f.rec.Granted, f.rec.Admitted = nil, false, false }

// unread: the subnet manager has forgotten what it read of the second port.
func unread(f *facts) { alter(keyB, func(s *records.Standing) { s.Found = records.Membership{} })(f) }

func claimedToo(f *facts) { f.rec.Conflicts = []hostrecord.Dispute{{GUID: 0xa1, With: "other"}} }

func released(f *facts) {
	f.rec = hostrecord.Record{Phase: v1.PhaseAdmitted}
	for k, s := range f.grants {
		s.Grant.Withdrawn = true
		f.grants[k] = s
	}
}

func all(fs ...func(*facts)) func(*facts) {
	return func(f *facts) {
		for _, fn := range fs {
			fn(f)
		}
	}
}

func TestDecide(t *testing.T) {
	removed := func(rev int64, hca bool) func(*records.Standing) {
		return func(s *records.Standing) {
			s.Found = records.Membership{State: records.Removed, Revision: rev, HCAProven: hca}
		}
	}
	for _, c := range []struct {
		name  string
		alter func(*facts)
		phase v1.Phase
		unmet []string // guards
		want  int      // grants
	}{
		{"everything holds", func(*facts) {}, v1.PhaseAdmitted, nil, 2},
		{"never assigned", func(f *facts) { f.rec, f.grants = hostrecord.Record{}, nil }, v1.PhaseQuarantined, []string{"assigned", "attested", "sealed", "programmed"}, 0},
		{"no evidence", all(fresh, func(f *facts) { f.rec.Evidence = nil }), v1.PhaseAwaiting, []string{"attested", "sealed", "programmed"}, 0},
		{"evidence not sealed", all(fresh, func(f *facts) { f.rec.Sealed = time.Time{} }), v1.PhaseVerified, []string{"sealed", "programmed"}, 0},
		{"a GUID that another host claims", all(fresh, claimedToo), v1.PhaseAwaiting, []string{"attested", "programmed"}, 0},
		{"a GUID that another host claims, admitted before", claimedToo, v1.PhaseAdmitted, nil, 2},
		{"a GUID that another host claims, admitted before, where that counts for nothing", all(claimedToo, func(f *facts) { f.cutOff = true }), v1.PhaseAwaiting, []string{"attested", "programmed"}, 0},
		{"a GUID that another host claims, granted and never told admitted", func(f *facts) {
			claimedToo(f)
			f.rec.Admitted = false
		}, v1.PhaseAwaiting, []string{"attested", "programmed"}, 0},
		{"a GUID that another host claims, without evidence", all(fresh, claimedToo, func(f *facts) { f.rec.Evidence = nil }), v1.PhaseAwaiting, []string{"attested", "sealed", "programmed"}, 0},
		{"evidence at its age", all(fresh, func(f *facts) { f.rec.Evidence.Time = noon.Add(-time.Hour) }), v1.PhaseGranting, []string{"programmed"}, 2},
		{"evidence too old for a first grant", all(fresh, func(f *facts) { f.rec.Evidence.Time = noon.Add(-time.Hour - 1) }), v1.PhaseAwaiting, []string{"attested", "programmed"}, 0},
		{"evidence too old, granted but never admitted", func(f *facts) {
			f.rec.Admitted, f.rec.Evidence.Time = false, noon.Add(-time.Hour-1)
		}, v1.PhaseAwaiting, []string{"attested", "programmed"}, 0},
		{"evidence old but admitted before", func(f *facts) { f.rec.Evidence.Time = noon.Add(-1000 * time.Hour) }, v1.PhaseAdmitted, nil, 2},
		{"window closed after evidence", all(fresh, func(f *facts) { f.rec.Window = noon.Add(-1) }), v1.PhaseGranting, []string{"programmed"}, 2},
		{"a port without cable", func(f *facts) { f.host.HCAs[1].Ports[0].Cable = ib.Place{} }, v1.PhaseGranting, []string{"cabled", "seen", "programmed"}, 1},
		{"a host without HCA", all(fresh, func(f *facts) { f.host.HCAs = nil }), v1.PhaseVerified, []string{"cabled", "programmed"}, 0},
		{"a port not seen", func(f *facts) { delete(f.ports, 0xb1) }, v1.PhaseAdmitted, []string{"seen"}, 2},
		{"a port not seen, nothing granted", all(fresh, func(f *facts) { delete(f.ports, 0xb1) }), v1.PhaseVerified, []string{"seen", "programmed"}, 0},
		{"a port not seen, granted and never admitted", all(unread, func(f *facts) { f.rec.Admitted = false; delete(f.ports, 0xb1) }), v1.PhaseGranting, []string{"seen", "programmed"}, 2},
		{"a port not seen, whose membership was forgotten", all(unread, func(f *facts) { delete(f.ports, 0xb1) }), v1.PhaseAdmitted, []string{"seen"}, 2},
		{"no port seen", func(f *facts) { clear(f.ports) }, v1.PhaseAdmitted, []string{"seen"}, 2},
		{"no port seen, evidence lapsed", func(f *facts) { clear(f.ports); f.rec.Evidence = nil }, v1.PhaseAwaiting, []string{"attested", "sealed", "seen", "programmed"}, 0},
		{"no port seen, released", all(released, func(f *facts) { clear(f.ports) }), v1.PhaseReleasing, []string{"assigned", "attested", "sealed", "seen", "programmed"}, 0},
		{"a port not seen that was seen elsewhere before", all(alter(keyB, func(s *records.Standing) { s.Grant.Withdrawn = true }), func(f *facts) { delete(f.ports, 0xb1) }), v1.PhaseGranting, []string{"seen", "programmed"}, 1},
		{"one port seen elsewhere, the other not", func(f *facts) {
			delete(f.ports, 0xa1)
			f.ports[0xb1] = records.Port{NodeGUID: 0xb0, Place: ib.Place{Switch: 0x10, Port: 3}}
		}, v1.PhaseGranting, []string{"seen", "programmed"}, 1},
		{"seen elsewhere, and read back as absent from there", all(alter(keyB, func(s *records.Standing) { s.Grant.Withdrawn, s.Found.State = true, records.Removed }), func(f *facts) {
			f.ports[0xb1] = records.Port{NodeGUID: 0xb0, Place: ib.Place{Switch: 0x10, Port: 3}}
		}), v1.PhaseAdmitted, []string{"seen"}, 1},
		{"a port seen elsewhere", func(f *facts) { f.ports[0xb1] = records.Port{NodeGUID: 0xb0, Place: ib.Place{Switch: 0x10, Port: 3}} }, v1.PhaseGranting, []string{"seen", "programmed"}, 1},
		{"a port seen on the same port of another switch", func(f *facts) { f.ports[0xb1] = records.Port{NodeGUID: 0xb0, Place: ib.Place{Switch: 0x11, Port: 2}} }, v1.PhaseGranting, []string{"seen", "programmed"}, 1},
		{"a port seen on another node", func(f *facts) { f.ports[0xb1] = records.Port{NodeGUID: 0xc0, Place: placeB} }, v1.PhaseGranting, []string{"seen", "programmed"}, 1},
		{"a port seen on a node not known", func(f *facts) { f.ports[0xb1] = records.Port{Place: placeB} }, v1.PhaseGranting, []string{"seen", "programmed"}, 1},
		{"a membership that is another host's", all(fresh, func(f *facts) { f.foreign = map[records.Key]string{keyB: "other"} }), v1.PhaseVerified, []string{"capacity", "programmed"}, 0},
		{"two ports swapped", func(f *facts) { f.ports[0xa1], f.ports[0xb1] = f.ports[0xb1], f.ports[0xa1] }, v1.PhaseVerified, []string{"seen", "programmed"}, 0},
		{"a switch port that can enforce one P_Key, nothing granted", all(fresh, func(f *facts) { f.ports[0xa1] = records.Port{NodeGUID: 0xa0, Place: placeA, SwitchCap: 1} }), v1.PhaseVerified, []string{"capacity", "programmed"}, 0},
		{"a switch port that can enforce one P_Key", func(f *facts) { f.ports[0xa1] = records.Port{NodeGUID: 0xa0, Place: placeA, SwitchCap: 1} }, v1.PhaseAdmitted, []string{"capacity"}, 2},
		{"an HCA that can hold one P_Key", func(f *facts) { f.ports[0xa1] = records.Port{NodeGUID: 0xa0, Place: placeA, HCACap: 1} }, v1.PhaseAdmitted, []string{"capacity"}, 2},
		{"room for two P_Keys", func(f *facts) { f.ports[0xa1] = records.Port{NodeGUID: 0xa0, Place: placeA, HCACap: 2, SwitchCap: 2} }, v1.PhaseAdmitted, nil, 2},
		{"room for two P_Keys, an old one lingers", func(f *facts) {
			f.ports[0xa1] = records.Port{NodeGUID: 0xa0, Place: placeA, HCACap: 2, SwitchCap: 2}
			f.grants[records.Key{PKey: 9, GUID: 0xa1, Place: placeA}] = records.Standing{Grant: records.Grant{Withdrawn: true}, Modified: 50, Found: records.Membership{State: records.Removed, Revision: 60}}
		}, v1.PhaseAdmitted, []string{"capacity"}, 2},
		{"nothing read back yet", alter(keyA, func(s *records.Standing) { s.Found = records.Membership{} }), v1.PhaseGranting, []string{"programmed"}, 2},
		{"read back before the grant changed", alter(keyA, func(s *records.Standing) { s.Modified = 101 }), v1.PhaseGranting, []string{"programmed"}, 2},
		{"refused", alter(keyA, func(s *records.Standing) { s.Found.State = records.Refused }), v1.PhaseGranting, []string{"programmed"}, 2},
		{"refused before the grant changed", alter(keyA, func(s *records.Standing) { s.Found.State, s.Modified = records.Refused, 101 }), v1.PhaseGranting, []string{"programmed"}, 2},
		{"grant marked withdrawn, wanted again", alter(keyA, func(s *records.Standing) { s.Grant.Withdrawn = true }), v1.PhaseGranting, []string{"programmed"}, 2},
		{"released, nothing proven", released, v1.PhaseReleasing, []string{"assigned", "attested", "sealed", "programmed"}, 0},
		{"released, one switch port proven", all(released, alter(keyA, removed(100, true))), v1.PhaseReleasing, []string{"assigned", "attested", "sealed", "programmed"}, 0},
		{"released, proven before the withdrawal", all(released, alter(keyA, removed(100, true)), alter(keyB, removed(99, true))), v1.PhaseReleasing, []string{"assigned", "attested", "sealed", "programmed"}, 0},
		{"released, both switch ports proven", all(released, alter(keyA, removed(100, true)), alter(keyB, removed(101, false))), v1.PhaseQuarantined, []string{"assigned", "attested", "sealed", "programmed"}, 0},
		{"another cluster's grant not proven absent", func(f *facts) {
			f.grants[records.Key{PKey: 9, GUID: 0xa1, Place: placeA}] = records.Standing{Grant: records.Grant{Withdrawn: true}, Modified: 50}
		}, v1.PhaseGranting, []string{"programmed"}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := admitted()
			c.alter(f)
			d := decide(f)
			var unmet []string
			for _, g := range d.guards {
				if g.Met != (g.Detail == "") {
					t.Errorf("guard %s: met %v with detail %q", g.Name, g.Met, g.Detail)
				}
				if !g.Met {
					unmet = append(unmet, g.Name)
				}
			}
			if d.phase != c.phase || len(d.want) != c.want {
				t.Errorf("got %s with %d grants, want %s with %d", d.phase, len(d.want), c.phase, c.want)
			}
			if diff := cmp.Diff(c.unmet, unmet); diff != "" {
				t.Errorf("unmet guards (-want +got):\n%s", diff)
			}
			if d.phase != v1.PhaseAdmitted && d.guards[6].Met {
				t.Error("programmed although not admitted")
			}
		})
	}
}

func TestWantedGrantsAreThePlaces(t *testing.T) {
	if d := cmp.Diff([]records.Key{keyA, keyB}, decide(admitted()).want); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestWhyAPortIsNotSeen: a guard names the remedy, and sends no operator to a cable where the subnet manager itself shut
// the switch port.
func TestWhyAPortIsNotSeen(t *testing.T) {
	detail := func(p records.Port) string {
		f := admitted()
		f.ports[0xb1] = p
		for _, g := range decide(f).guards {
			if g.Name == "seen" {
				return g.Detail
			}
		}
		return ""
	}
	if got := detail(records.Port{}); !strings.Contains(got, "power on the host, or check the cable to "+placeB.String()) {
		t.Errorf("%q", got)
	}
	why := "switch port " + placeB.String() + " is kept from carrying data, because an operator marked it unhealthy"
	got := detail(records.Port{Shut: why})
	if !strings.Contains(got, "is not seen: "+why) || strings.Contains(got, "power on") {
		t.Errorf("%q, want that an operator did it", got)
	}
	if got := detail(records.Port{NodeGUID: 0xb0, Place: placeB, HCACap: 32, SwitchCap: 32, Shut: why}); got != "" {
		t.Errorf("%q of a port that is seen", got)
	}
}

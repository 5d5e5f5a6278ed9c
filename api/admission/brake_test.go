package admission

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"portcullis/api/events"
	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest/attesttest"
	"portcullis/fabricsm/ib"
)

func TestBrakeDecides(t *testing.T) {
	now := attesttest.Epoch
	limits := BrakeLimits{Hosts: 3, Share: 0.5, Within: time.Minute}
	recent := func(age time.Duration, hosts ...string) (out []BrakeRecent) {
		for _, h := range hosts {
			out = append(out, BrakeRecent{h, now.Add(-age)})
		}
		return out
	}
	tests := []struct {
		name    string
		b       Brake
		held    *HeldHost
		members int
		pending []string
		goes    bool
		engaged bool
	}{
		{"the first", Brake{}, nil, 100, nil, true, false},
		{"the last that may", Brake{Recent: recent(time.Second, "a", "b")}, nil, 100, nil, true, false},
		{"one too many", Brake{Recent: recent(time.Second, "a", "b", "c")}, nil, 100, nil, false, true},
		{"the others were long ago", Brake{Recent: recent(time.Minute, "a", "b", "c")}, nil, 100, nil, true, false},
		{"the same host again", Brake{Recent: recent(time.Second, "a", "b", "h")}, nil, 100, nil, true, false},
		{"share", Brake{Recent: recent(time.Second, "a", "b")}, nil, 4, nil, false, true},
		{"one host in any case", Brake{}, nil, 1, nil, true, false},
		{"too many at once, before the first", Brake{}, nil, 100, []string{"a", "b", "c", "h"}, false, true},
		{"those at once that are gone are counted once", Brake{Recent: recent(time.Second, "a", "b")}, nil, 100, []string{"a", "b", "h"}, true, false},
		{"engaged", Brake{Engaged: now.Add(-time.Hour), Held: 4}, nil, 100, nil, false, true},
		{"held before an operator had it go on", Brake{Generation: 1, Recent: recent(time.Second, "a", "b", "c")}, &HeldHost{}, 100, []string{"a", "b", "c", "h"}, true, false},
		{"held after that", Brake{Generation: 1, Engaged: now}, &HeldHost{Generation: 1}, 100, nil, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			next, goes := tt.b.letsGo(brakeQuestion{now: now, host: "h", held: tt.held, members: tt.members, pending: tt.pending, limits: limits})
			if goes != tt.goes || !next.Engaged.IsZero() != tt.engaged {
				t.Errorf("goes %v, engaged %v; want %v, %v", goes, !next.Engaged.IsZero(), tt.goes, tt.engaged)
			}
		})
	}
}

// braked returns a site of n admitted hosts whose brake stops the second of them, and a function that denies their EKs.
func braked(t *testing.T, n int) (l *lab, deny func(hosts ...string)) {
	t.Helper()
	l = allAdmitted(t, n, nil)
	return l, func(hosts ...string) {
		t.Helper()
		l.policy.Denied = map[string]bool{}
		for _, id := range hosts {
			l.policy.Denied[l.hosts[id].EKDigest()] = true
		}
		l.restart()
		l.settle()
	}
}

func (l *lab) wantPhases(when string, want v1.Phase, hosts ...string) {
	l.t.Helper()
	for _, id := range hosts {
		if s := l.host(id).Status; s.Phase != want {
			l.t.Errorf("%s: host %s is %s, want %s: %+v", when, id, s.Phase, want, s.Guards)
		}
	}
}

// A list of denied EKs that names every host stops before the first host. Changes that operators order go on. The stop
// survives a restart, and ends when the list is corrected.
func TestBrakeOnDeniedEKs(t *testing.T) {
	l, deny := braked(t, 4)
	all := []string{"host-1", "host-2", "host-3", "host-4"}
	deny(all...)
	l.wantPhases("all denied", v1.PhaseAdmitted, all...)
	l.settlesNothing()
	b, err := l.svc.BrakeState(t.Context())
	if err != nil || !b.Items[0].Engaged || b.Items[0].Held != 4 || len(b.Items[0].Hosts) != 4 || b.Items[1].Engaged {
		t.Fatalf("brakes: %+v, %v", b, err)
	}
	if got := l.brakeEvents(); !slices.Equal(got, []string{"admission.brake evidence"}) {
		t.Errorf("told %q", got)
	}
	l.must(l.svc.Release(t.Context(), "ann", "host-1"))
	l.settle()
	l.fabric.program(t)
	l.settle()
	l.wantPhases("released by an operator", v1.PhaseQuarantined, "host-1")
	l.wantPhases("after that release", v1.PhaseAdmitted, all[1:]...)
	deny("host-2")
	l.wantPhases("the list is mended for most", v1.PhaseAdmitted, all[2:]...)
	l.wantPhases("the one that is denied still is held with the rest", v1.PhaseAdmitted, "host-2")
	deny()
	l.wantPhases("the list is mended", v1.PhaseAdmitted, all[1:]...)
	if got := l.brakeEvents(); !slices.Equal(got, []string{"admission.brake evidence", "admission.brake-ended evidence"}) {
		t.Errorf("told %q", got)
	}
	deny("host-3")
	l.wantPhases("one denied EK", v1.PhaseAwaiting, "host-3")
	l.wantPhases("the others", v1.PhaseAdmitted, "host-2", "host-4")
}

func (l *lab) brakeEvents() (out []string) {
	l.t.Helper()
	list, err := events.Book{Store: l.store.Twin()}.List(l.ctx(), v1.EventQuery{})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, e := range list.Items {
		if e.Type == events.BrakeEngaged || e.Type == events.BrakeEnded {
			out = append(out, e.Type+" "+e.Cause)
		}
	}
	slices.Sort(out)
	return out
}

// A release by an operator takes the hosts that were listed, and no more.
func TestBrakeIsReleased(t *testing.T) {
	l, deny := braked(t, 3)
	if _, err := l.svc.ReleaseBrake(t.Context(), "ann", v1.BrakeRelease{Class: BrakeEvidence, Reason: "no brake"}); !refusal.IsKind(err, refusal.Conflict) {
		t.Errorf("release of a brake that stops nothing: %v", err)
	}
	deny("host-1", "host-2")
	l.wantPhases("stopped", v1.PhaseAdmitted, "host-1", "host-2", "host-3")
	for _, in := range []v1.BrakeRelease{{Class: BrakeEvidence}, {Class: "all", Reason: "x"}} {
		if _, err := l.svc.ReleaseBrake(t.Context(), "ann", in); !refusal.IsKind(err, refusal.Invalid) {
			t.Errorf("release %+v: %v", in, err)
		}
	}
	if _, err := l.svc.ReleaseBrake(t.Context(), "ann", v1.BrakeRelease{Class: BrakeEvidence, Reason: "they are stolen"}); err != nil {
		t.Fatal(err)
	}
	l.settle()
	l.wantPhases("released", v1.PhaseAwaiting, "host-1", "host-2")
	l.wantPhases("not denied", v1.PhaseAdmitted, "host-3")
	if got := l.brakeEvents(); !slices.Equal(got, []string{"admission.brake evidence", "admission.brake-ended evidence"}) {
		t.Errorf("told %q", got)
	}
	held, _, err := HeldHosts().List(t.Context(), l.store, "")
	if err != nil || len(held) != 0 {
		t.Errorf("held after all: %v, %v", held, err)
	}
}

// The service that runs has what an operator released go on by itself.
func TestRunningServiceGoesOn(t *testing.T) {
	l, deny := braked(t, 3)
	deny("host-1", "host-2")
	l.running()
	if _, err := l.svc.ReleaseBrake(t.Context(), "ann", v1.BrakeRelease{Class: BrakeEvidence, Reason: "they are stolen"}); err != nil {
		t.Fatal(err)
	}
	l.until("host-1", v1.PhaseAwaiting)
	l.until("host-2", v1.PhaseAwaiting)
}

// A finding about a single port goes through while evidence is stopped; findings about many ports at once are stopped.
func TestBrakeOnPlaces(t *testing.T) {
	l, deny := braked(t, 4)
	deny("host-1", "host-2", "host-3", "host-4")
	elsewhere := func(id string) {
		t.Helper()
		p := l.ports(id)[0]
		l.fabric.show(t, p.GUID, records.Port{Place: ib.Place{Switch: 0x99, Port: p.Cable.Port}, HCACap: 32, SwitchCap: 32})
	}
	withdrawn := func(id string) (n int) {
		t.Helper()
		list, _, err := records.Grants().List(t.Context(), l.store, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range list {
			if g.Value.Host == id && g.Value.Withdrawn {
				n++
			}
		}
		return n
	}
	elsewhere("host-1")
	l.settle()
	if n := withdrawn("host-1"); n != 1 {
		t.Errorf("%d grants of a host with one port elsewhere are withdrawn, want 1", n)
	}
	elsewhere("host-2")
	elsewhere("host-3")
	l.settle()
	for _, id := range []string{"host-2", "host-3", "host-4"} {
		if n := withdrawn(id); n != 0 {
			t.Errorf("%d grants of %s are withdrawn, want none", n, id)
		}
	}
	if b, err := l.svc.BrakeState(t.Context()); err != nil || !b.Items[1].Engaged || b.Items[1].Held != 2 {
		t.Errorf("brakes: %+v, %v", b, err)
	}
}

// While the subnet manager does not see what it knows, evidence takes nothing; once it sees again it does.
func TestFrozenWhileBlind(t *testing.T) {
	l, deny := braked(t, 3)
	sees := func(state string) {
		t.Helper()
		l.write(func(tx *store.Tx) error { return records.Sights().Put(tx, records.Master, v1.Sight{State: state}) })
	}
	sees(v1.SightPartly)
	deny("host-1")
	l.wantPhases("partly blind", v1.PhaseAdmitted, "host-1", "host-2", "host-3")
	l.settlesNothing()
	l.running()
	sees(v1.SightClear)
	l.until("host-1", v1.PhaseAwaiting)
	l.wantPhases("it sees again", v1.PhaseAdmitted, "host-2", "host-3")
}

// A host that is out of sight for longer than the site allows loses its memberships, and gets them back when it is seen.
func TestHostUnseenForLong(t *testing.T) {
	for _, limit := range []time.Duration{0, time.Hour} {
		l := allAdmitted(t, 3, nil)
		l.options = func(o *Options) { o.UnseenFor = limit }
		l.restart()
		for _, p := range l.ports("host-1") {
			l.fabric.show(t, p.GUID, records.Port{Time: l.clock})
		}
		l.fabric.show(t, l.ports("host-2")[0].GUID, records.Port{Time: l.clock})
		l.settle()
		l.clock = l.clock.Add(time.Hour - time.Second)
		l.settle()
		l.wantPhases("not yet", v1.PhaseAdmitted, "host-1", "host-2")
		l.clock = l.clock.Add(time.Second)
		l.settle()
		want := v1.PhaseAdmitted
		if limit > 0 {
			want = v1.PhaseVerified
		}
		l.wantPhases(fmt.Sprint("after an hour, with limit ", limit), want, "host-1")
		l.wantPhases("a host with one port in sight", v1.PhaseAdmitted, "host-2")
		l.fabric.program(t)
		l.fabric.place(t, l.ports("host-1")...)
		l.settle()
		l.fabric.program(t)
		l.settle()
		l.wantPhases("seen again", v1.PhaseAdmitted, "host-1")
	}
}

// A brake in force does not stop orders: a host that an operator released keeps no grant, and a host whose cable an
// operator moved keeps none at the old place.
func TestOrdersAreNeverStopped(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		place := func(n int) ib.Place { return ib.Place{Switch: 0x10, Port: ib.PortNum(n)} }
		host := inventory.Host{ID: "h", HCAs: []inventory.HCA{{NodeGUID: 1, Ports: []inventory.Port{{Num: 1, GUID: 2, Cable: place(rapid.IntRange(1, 3).Draw(rt, "cable"))}}}}}
		f := &facts{
			now: attesttest.Epoch, evidenceAge: time.Hour, needsSeal: true, keepsUnseen: true, host: host, unseenFor: rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(rt, "unseen"),
			withdraw: map[string]bool{"ek": true}, ports: map[ib.GUID]records.Port{}, grants: map[records.Key]records.Standing{}, foreign: map[records.Key]string{},
			braking: braking{frozen: rapid.Bool().Draw(rt, "frozen"), brakes: map[string]Brake{}, held: map[string]*HeldHost{}},
		}
		for _, class := range brakeClasses() {
			if rapid.Bool().Draw(rt, "engaged "+class) {
				f.braking.brakes[class] = Brake{Engaged: f.now, Held: 1}
				f.braking.held[class] = &HeldHost{Class: class}
			}
		}
		f.ports[2] = records.Port{NodeGUID: 1, Place: place(rapid.IntRange(1, 3).Draw(rt, "seen at")), Time: f.now, HCACap: 8, SwitchCap: 8}
		for i := range rapid.IntRange(0, 3).Draw(rt, "grants") {
			f.grants[records.Key{PKey: 5, GUID: 2, Place: place(i + 1)}] = records.Standing{Grant: records.Grant{Host: "h", Withdrawn: rapid.Bool().Draw(rt, "withdrawn")}}
		}
		if rapid.Bool().Draw(rt, "assigned") {
			f.rec = hostrecord.Record{Cluster: "c", PKey: 5, Granted: true, Admitted: true, Sealed: f.now}
			if rapid.Bool().Draw(rt, "attested") {
				f.rec.Evidence = &hostrecord.Evidence{Time: f.now}
				if rapid.Bool().Draw(rt, "denied") {
					f.rec.Evidence.Lapses = []hostrecord.Lapse{{Cause: "ek", Detail: "denied"}}
				}
			}
		}
		d := decide(f)
		if f.rec.Cluster == "" && len(d.want) != 0 {
			rt.Errorf("a released host is to have %v", d.want)
		}
		for _, k := range d.want {
			if k.Place != host.HCAs[0].Ports[0].Cable {
				rt.Errorf("the host is to have %v, and its cable is at %v", k, host.HCAs[0].Ports[0].Cable)
			}
		}
		for class := range d.takes {
			if f.braking.keeps(class) {
				rt.Errorf("class %s takes, and is stopped", class)
			}
		}
	})
}

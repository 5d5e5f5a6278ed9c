package sm_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// auditTime is how long the core takes to read all tables again.
const auditTime = 5 * time.Second

// inheritance is a fabric that another subnet manager configured.
type inheritance struct {
	*env
	hosts []endPort // on the switch that ours is attached to
}

// left returns one in which no port checks P_Keys or is a tenant's.
func left(t *testing.T) *inheritance {
	t.Helper()
	l := tree(t, 16, 8)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: auditTime, IntentWait: time.Hour}, 1)
	e.start()
	e.want(sm.Intent{Revision: 1})
	e.mustSettle(10 * time.Second)
	i := &inheritance{env: e, hosts: slices.DeleteFunc(hosts(l), func(h endPort) bool { return h.peer != l.Find("sm").Ports[1].Peer })}
	for _, h := range i.hosts {
		i.checks(h, false)
	}
	return i
}

// has sets the table of an adapter, or of the switch port in front of it.
func (i *inheritance) has(h endPort, adapter bool, keys ...ib.PKey) {
	i.t.Helper()
	table := mad.PKeyTable{PKey: [32]ib.PKey{ib.DefaultPKeyLimited}}
	copy(table.PKey[1:], keys)
	mod, hops := mad.PKeyTableMod(h.pnum, 0), []ib.PortNum{1}
	if adapter {
		mod, hops = mad.PKeyTableMod(0, 0), []ib.PortNum{1, h.pnum}
	}
	behind(i.env, mad.AttrPKeyTable, mod, func(b []byte) error { return mad.Encode(b, &table) }, hops...)
}

// checks sets whether a switch port checks P_Keys.
func (i *inheritance) checks(h endPort, on bool) {
	i.t.Helper()
	pi := i.fab.PortInfo(h.peer, h.pnum)
	pi.PortState, pi.PortPhysicalState = ib.PortNop, ib.PhysNop
	pi.LinkWidthEnabled, pi.LinkSpeedEnabled, pi.LinkSpeedExtEnabled, pi.LinkSpeedExtEnabled2 = 0, 0, 0, 0
	pi.PartitionEnforcementInbound, pi.PartitionEnforcementOutbound = on, on
	behind(i.env, mad.AttrPortInfo, mad.PortInfoMod(h.pnum, 0), func(b []byte) error { return mad.Encode(b, &pi) }, 1)
}

// holds checks which P_Keys of tenants a port has: its adapter and its switch port the same.
func (i *inheritance) holds(when string, h endPort, want ...ib.PKey) {
	i.t.Helper()
	of := func(node string, num ib.PortNum) string {
		keys := tenants(i.fab.PKeys(node, num))
		slices.Sort(keys)
		return fmt.Sprint(keys)
	}
	slices.Sort(want)
	adapter, gate := of(h.node.Name, h.num), of(h.peer, h.pnum)
	if all := fmt.Sprint(want); adapter != all || gate != all {
		i.t.Errorf("%s: %s has %s, its switch port %s, want %s", when, h.node.Name, adapter, gate, all)
	}
	if pi := i.fab.PortInfo(h.peer, h.pnum); !pi.PartitionEnforcementInbound || !pi.PartitionEnforcementOutbound {
		i.t.Errorf("%s: the switch port of %s does not check P_Keys", when, h.node.Name)
	}
}

// takeOver has ours begin, and returns what it reported to be kept.
func (i *inheritance) takeOver(in sm.Intent) map[ib.GUID]string {
	i.t.Helper()
	i.takeEvents()
	i.start()
	i.want(in)
	i.mustSettle(10 * time.Second)
	kept := map[ib.GUID]string{}
	for _, ev := range i.takeEvents() {
		if e, ok := ev.(*sm.InheritedPKeys); ok {
			if kept[e.GUID] != "" {
				i.t.Errorf("reported again: %v", e)
			}
			kept[e.GUID] = fmt.Sprint(e.PKeys)
		}
	}
	return kept
}

// TestTakeoverKeeps: a port keeps what it could use when it was read first, and nothing more: what its adapter had where the
// switch port did not check P_Keys, else what both had. The write to the adapter never comes before that to the switch port.
func TestTakeoverKeeps(t *testing.T) {
	for _, tt := range []struct {
		name          string
		adapter, gate []ib.PKey
		checked       bool
		except        []ib.PKey
		want          []ib.PKey
	}{
		{"the adapter alone", []ib.PKey{0x8001, 0x0002}, nil, false, nil, []ib.PKey{0x8001, 0x0002}},
		{"a switch port that checks", []ib.PKey{0x8001, 0x0002}, []ib.PKey{0x0002, 0x8001}, true, nil, []ib.PKey{0x8001, 0x0002}},
		{"one that a host set itself", []ib.PKey{0x8001, 0x8666}, []ib.PKey{0x8001}, true, nil, []ib.PKey{0x8001}},
		{"one that the adapter lacks", []ib.PKey{0x8001}, []ib.PKey{0x8001, 0x8002}, true, nil, []ib.PKey{0x8001}},
		{"full at the adapter, limited at the switch port", []ib.PKey{0x8001}, []ib.PKey{0x0001}, true, nil, []ib.PKey{0x0001}},
		{"one of a cluster", []ib.PKey{0x8001, 0x8002}, []ib.PKey{0x8001, 0x8002}, true, []ib.PKey{0x0002}, []ib.PKey{0x8001}},
		{"none", nil, []ib.PKey{0x8001}, true, nil, nil},
		{"a table of the switch port that it did not check", nil, []ib.PKey{0x8001}, false, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i := left(t)
			h, plain := i.hosts[0], i.hosts[1]
			i.has(h, true, tt.adapter...)
			i.has(h, false, tt.gate...)
			i.checks(h, tt.checked)
			in := sm.Intent{Revision: 2, Takeover: sm.Takeover{Open: true, Except: tt.except}}
			kept := i.takeOver(in)
			want := map[ib.GUID]string{}
			if len(tt.want) > 0 {
				want[h.grant(0).GUID] = fmt.Sprint(tt.want)
			}
			if fmt.Sprint(kept) != fmt.Sprint(want) {
				t.Errorf("reported %v, want %v", kept, want)
			}
			i.holds("taken over", h, tt.want...)
			i.holds("taken over", plain)
			i.run(time.Second)

			// The records have what was reported, and the takeover ends.
			var granted []sm.Grant
			for _, k := range tt.want {
				granted = append(granted, h.grant(k))
			}
			before := i.sets()
			in.Revision, in.Grants = 3, granted
			i.want(in)
			i.mustSettle(10 * time.Second)
			applied := 0
			for _, ev := range i.takeEvents() {
				if e, ok := ev.(*sm.MembershipApplied); ok && e.Revision == 3 {
					applied++
				}
			}
			if applied != len(granted) {
				t.Errorf("%d memberships are reported to be in force once they are recorded, want %d", applied, len(granted))
			}
			in.Revision, in.Takeover = 4, sm.Takeover{}
			i.want(in)
			i.mustSettle(10 * time.Second)
			i.holds("ended", h, tt.want...)
			if n := i.sets() - before; n != 0 {
				t.Errorf("%d Sets although nothing changes", n)
			}

			// One is ended.
			if len(granted) > 0 {
				in.Revision, in.Grants = 5, granted[1:]
				i.want(in)
				i.mustSettle(10 * time.Second)
				i.holds("one ended", h, tt.want[1:]...)
			}
		})
	}
}

// TestTakeoverKeepsOnce: nothing that a port has after the first read of its table is kept, be it set by the host or by another
// manager; and what no record has when the takeover ends goes, with a report. It does not begin again.
func TestTakeoverKeepsOnce(t *testing.T) {
	i := left(t)
	first, later, moved := i.hosts[0], i.hosts[1], i.hosts[2]
	i.has(first, true, 0x8001)
	i.has(moved, true, 0x8003)
	in := sm.Intent{Revision: 2, Takeover: sm.Takeover{Open: true}}
	i.takeOver(in)
	i.holds("taken over", first, 0x8001)

	i.has(first, true, 0x8001, 0x8666)
	i.has(later, true, 0x8666)
	i.has(later, false, 0x8666)
	i.refreshAll()
	i.holds("a P_Key was added", first, 0x8001)
	i.holds("a P_Key was set", later)

	// A device that was away and comes back with a P_Key is none that was there.
	i.pull(&later)
	i.run(5 * time.Second)
	i.has(later, false, 0x8666)
	i.plug(&later)
	i.run(5 * time.Second)
	i.mustSettle(10 * time.Second)
	i.holds("plugged in", later)

	// A partition that becomes a cluster's is one no longer.
	in.Revision, in.Takeover.Except = 3, []ib.PKey{0x0003}
	i.want(in)
	i.mustSettle(10 * time.Second)
	i.holds("of a cluster now", moved)

	i.takeEvents()
	in.Revision, in.Takeover = 4, sm.Takeover{}
	i.want(in)
	i.mustSettle(10 * time.Second)
	i.holds("ended without a record", first)
	if got, want := foreign(i.env, &first), "switch [0x8001], adapter [0x8001]"; got != want {
		t.Errorf("reported %q of what goes, want %q", got, want)
	}
	in.Revision, in.Takeover = 5, sm.Takeover{Open: true}
	i.want(in)
	i.has(first, true, 0x8001)
	i.has(first, false, 0x8001)
	i.refreshAll()
	i.holds("once more", first)
}

// refreshAll has the core read all tables again.
func (i *inheritance) refreshAll() {
	i.t.Helper()
	i.run(3 * auditTime)
	i.mustSettle(10 * time.Second)
}

// TestTakeoverRespectsDecisions: where an intent names a port or its place, what it does not name goes.
func TestTakeoverRespectsDecisions(t *testing.T) {
	i := left(t)
	listed, replaced, denied := i.hosts[0], i.hosts[1], i.hosts[2]
	for _, h := range []endPort{listed, replaced, denied} {
		i.has(h, true, 0x8001, 0x8002)
	}
	other := sm.Grant{GUID: 0xabcd, PKey: 0x8001, Place: replaced.place}
	kept := i.takeOver(sm.Intent{
		Revision: 2, Takeover: sm.Takeover{Open: true},
		Grants: []sm.Grant{listed.grant(0x8001), other}, Absent: []sm.Grant{denied.grant(0x8001)},
	})
	if len(kept) != 0 {
		t.Errorf("kept %v, want nothing: the intent says what these ports have", kept)
	}
	i.holds("listed", listed, 0x8001)
	i.holds("another port belongs there", replaced)
	i.holds("denied", denied)
}

// TestTakeoverAfterCrash: a core that is started again while the takeover is open keeps the same.
func TestTakeoverAfterCrash(t *testing.T) {
	i := left(t)
	h := i.hosts[0]
	i.has(h, true, 0x8001, 0x0002)
	in := sm.Intent{Revision: 2, Takeover: sm.Takeover{Open: true}}
	first := i.takeOver(in)
	before := i.sets()
	again := i.takeOver(in)
	if fmt.Sprint(first) != fmt.Sprint(again) {
		t.Errorf("kept %v, want %v", again, first)
	}
	i.holds("again", h, 0x8001, 0x0002)
	if n := i.sets() - before; n != 0 {
		t.Errorf("%d Sets, want none", n)
	}
	// A P_Key that the host sets itself meanwhile is not kept: the switch port checks by now.
	i.has(h, true, 0x8001, 0x0002, 0x8666)
	i.takeOver(in)
	i.holds("with one more", h, 0x8001, 0x0002)
}

// TestTakeoverOfSilentAdapter: an adapter that does not answer keeps what its switch port lets pass.
func TestTakeoverOfSilentAdapter(t *testing.T) {
	i := left(t)
	h := i.hosts[0]
	i.has(h, true, 0x8001)
	i.has(h, false, 0x8001)
	i.checks(h, true)
	i.mangle = func(p *transport.Packet) {
		if r := p.MAD.Route(); p.MAD.Attr() == mad.AttrPKeyTable && r.Len() == 2 && r.At(1) == h.pnum {
			p.MAD = mad.MAD{} // it does not arrive
		}
	}
	kept := i.takeOver(sm.Intent{Revision: 2, Takeover: sm.Takeover{Open: true}})
	if kept[h.grant(0).GUID] != "[0x8001]" {
		t.Errorf("kept %v, want 0x8001", kept)
	}
	if got := tenants(i.fab.PKeys(h.peer, h.pnum)); !slices.Equal(got, []ib.PKey{0x8001}) {
		t.Errorf("the switch port has %v, want 0x8001", got)
	}
}

package path_test

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/qos"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/dfsssp"
	"portcullis/fabricsm/sa/path"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// TestRules checks the rules for paths one by one. By default host 0 asks for the path from host 0 to host 2.
func TestRules(t *testing.T) {
	slow := func(l *lab) { // the link between the leaves
		f := l.k.Fabric()
		for _, sw := range f.Switches() {
			for p := l.k.Node(sw).FirstPort; p <= l.k.Node(sw).FirstPort+4; p++ {
				if peer := l.k.Port(p).Peer; peer != topo.None && f.NodeOf(peer).Type == ib.NodeSwitch {
					l.link(p, ib.EDR, ib.MTU2048)
				}
			}
		}
	}
	type question struct {
		name   string
		set    func(*lab)
		from   int // requester
		trust  bool
		src    int
		dst    int
		loop   bool              // to host 0
		mask   mad.ComponentMask // besides the GIDs
		r      mad.PathRecord
		change func(*lab, *mad.PathRecord) // of the query
		want   func(*mad.PathRecord) bool
		status mad.Status
	}
	const ok = mad.StatusOK
	for _, q := range []question{
		{name: "the whole record", want: func(r *mad.PathRecord) bool {
			return *r == mad.PathRecord{
				SGID: r.SGID, DGID: r.DGID, SLID: r.SLID, DLID: r.DLID, Reversible: true, PKey: 0x8001,
				MTUSelector: mad.SelectExactly, MTU: ib.MTU4096, RateSelector: mad.SelectExactly, Rate: ib.Rate200,
				PacketLifeTimeSelector: mad.SelectExactly, PacketLifeTime: 18,
			} && r.SGID != ib.GID{} && r.SLID != 0 && r.DLID != 0 && r.SLID != r.DLID
		}},

		// 1. values
		{name: "half a ServiceID", mask: mad.PathComponentServiceID8MSB, status: mad.StatusInsufficientComponents},
		{name: "the other half", mask: mad.PathComponentServiceID56LSB, status: mad.StatusInsufficientComponents},
		{name: "a whole ServiceID", mask: service, r: mad.PathRecord{ServiceID: 7}, want: func(r *mad.PathRecord) bool { return r.ServiceID == 0 }},
		{name: "MTU 0 without selector", mask: mad.PathComponentMTU},
		{name: "rate 0 without selector", mask: mad.PathComponentRate},
		{name: "MTU 0", mask: mtu, status: mad.StatusInvalidRequest},
		{name: "MTU 6", mask: mtu, r: mad.PathRecord{MTU: 6}, status: mad.StatusInvalidRequest},
		{name: "rate 1", mask: rate, r: mad.PathRecord{Rate: 1}, status: mad.StatusInvalidRequest},
		{name: "rate 63", mask: rate, r: mad.PathRecord{Rate: 63}, status: mad.StatusInvalidRequest},
		{name: "a rate that is not given does not count", r: mad.PathRecord{Rate: 63, MTU: 9}},

		// 3. ends
		{name: "SGID of another subnet", change: func(_ *lab, r *mad.PathRecord) { r.SGID[3] = 1 }, status: mad.StatusInvalidGID},
		{name: "DGID of another subnet, no route", change: func(_ *lab, r *mad.PathRecord) { r.DGID[3] = 1 }, status: mad.StatusInvalidGID},
		{name: "nobody has the GID", change: func(_ *lab, r *mad.PathRecord) { r.DGID[15] = 99 }, status: mad.StatusNoRecords},
		{name: "the same, trusted", trust: true, change: func(_ *lab, r *mad.PathRecord) { r.DGID[15] = 99 }, status: mad.StatusNoRecords},
		{name: "nobody has the LID, trusted", trust: true, mask: mad.PathComponentDLID, r: mad.PathRecord{DLID: 999}, status: mad.StatusNoRecords},
		{name: "GID and LID agree", mask: mad.PathComponentDLID, change: func(l *lab, r *mad.PathRecord) { r.DLID = l.lid(2) }},
		{name: "GID and LID contradict", mask: mad.PathComponentDLID, change: func(l *lab, r *mad.PathRecord) { r.DLID = l.lid(1) }, status: mad.StatusInvalidRequest},
		{name: "they contradict, and the asker may not know", mask: mad.PathComponentDLID, change: func(l *lab, r *mad.PathRecord) { r.DLID = l.lid(3) }, status: mad.StatusNoRecords},
		{
			name: "the prefix of the subnet", set: func(l *lab) { l.cfg.Prefix = 0xFEC0_0000_0000_0001 },
			change: func(_ *lab, r *mad.PathRecord) { r.DGID = ib.MakeGID(0xFEC0_0000_0000_0001, r.DGID.GUID()) },
			want:   func(r *mad.PathRecord) bool { return r.SGID.Prefix() == 0xFEC0_0000_0000_0001 && r.HopLimit == 0 },
		},
		{
			name: "an alias keeps its name", set: func(l *lab) { l.s.SetAliases(l.port(2), 0xA1) },
			change: func(_ *lab, r *mad.PathRecord) { r.DGID = ib.MakeGID(ib.DefaultPrefix, 0xA1) },
			want:   func(r *mad.PathRecord) bool { return r.DGID.GUID() == 0xA1 },
		},

		// 4. partitions
		{name: "not of a partition", dst: 3, status: mad.StatusNoRecords},
		{name: "the same, trusted", trust: true, dst: 3, status: mad.StatusNoRecords},
		{name: "both limited", trust: true, src: 1, dst: 3, status: mad.StatusNoRecords},
		{name: "who asks shares with neither", from: 3, dst: 1, status: mad.StatusNoRecords},
		{name: "who asks shares with the destination alone", from: 3, dst: 2, status: mad.StatusNoRecords},
		{name: "who asks is neither, and shares with both", from: 1, dst: 2},
		{name: "nobody asks", from: -1, dst: 2, status: mad.StatusNoRecords},
		{name: "nobody asks, trusted", from: -1, trust: true, dst: 2},
		{name: "behind a switch that checks nothing", set: func(l *lab) {
			for _, sw := range l.k.Fabric().Switches() {
				n := l.k.Node(sw)
				n.PartitionEnforcementCap = 0
				l.k.SetNode(sw, n)
			}
		}, dst: 2, status: mad.StatusNoRecords},
		{name: "the switch port holds another table", set: func(l *lab) { l.s.SetPKeys(l.k.Port(l.port(2)).Peer, 0x7fff, 0x8002) }, dst: 2, status: mad.StatusNoRecords},

		// 6. MTU and rate
		{name: "a slow link on the way", set: slow, want: func(r *mad.PathRecord) bool { return r.MTU == ib.MTU2048 && r.Rate == ib.Rate100 }},
		{name: "not on this way", set: slow, dst: 1, want: func(r *mad.PathRecord) bool { return r.MTU == ib.MTU4096 && r.Rate == ib.Rate200 }},
		{name: "a code that old clients know", set: func(l *lab) { l.cfg.MaxRate = ib.Rate120 }, want: func(r *mad.PathRecord) bool { return r.Rate == ib.Rate120 }},

		// 8. selectors
		{name: "MTU greater", mask: mtu, r: mad.PathRecord{MTU: ib.MTU2048}, want: func(r *mad.PathRecord) bool { return r.MTU == ib.MTU4096 }},
		{name: "MTU greater than the greatest", mask: mtu, r: mad.PathRecord{MTU: ib.MTU4096}, status: mad.StatusNoRecords},
		{name: "MTU less", mask: mtu, r: mad.PathRecord{MTUSelector: mad.SelectLess, MTU: ib.MTU2048}, want: func(r *mad.PathRecord) bool { return r.MTU == ib.MTU1024 }},
		{name: "MTU less than the least", mask: mtu, r: mad.PathRecord{MTUSelector: mad.SelectLess, MTU: ib.MTU256}, status: mad.StatusNoRecords},
		{name: "MTU exactly", mask: mtu, r: mad.PathRecord{MTUSelector: mad.SelectExactly, MTU: ib.MTU512}, want: func(r *mad.PathRecord) bool { return r.MTU == ib.MTU512 }},
		{name: "MTU exactly, and the way has less", set: slow, mask: mtu, r: mad.PathRecord{MTUSelector: mad.SelectExactly, MTU: ib.MTU4096}, status: mad.StatusNoRecords},
		{name: "MTU largest", mask: mtu, r: mad.PathRecord{MTUSelector: mad.SelectBest, MTU: ib.MTU512}, want: func(r *mad.PathRecord) bool { return r.MTU == ib.MTU4096 }},
		{name: "MTU without selector", mask: mad.PathComponentMTU, r: mad.PathRecord{MTU: ib.MTU4096}},
		{name: "rate greater, by speed and not by code", mask: rate, r: mad.PathRecord{Rate: ib.Rate28}, want: func(r *mad.PathRecord) bool { return r.Rate == ib.Rate200 }},
		{name: "rate greater than it is", mask: rate, r: mad.PathRecord{Rate: ib.Rate300}, status: mad.StatusNoRecords},
		{name: "rate less", mask: rate, r: mad.PathRecord{RateSelector: mad.SelectLess, Rate: ib.Rate100}, want: func(r *mad.PathRecord) bool { return r.Rate == ib.Rate80 }},
		{name: "rate less than more than it is", mask: rate, r: mad.PathRecord{RateSelector: mad.SelectLess, Rate: ib.Rate400}, want: func(r *mad.PathRecord) bool { return r.Rate == ib.Rate200 }},
		{name: "rate exactly", mask: rate, r: mad.PathRecord{RateSelector: mad.SelectExactly, Rate: ib.Rate200}},
		{name: "rate exactly, and it is more", mask: rate, r: mad.PathRecord{RateSelector: mad.SelectExactly, Rate: ib.Rate100}, status: mad.StatusNoRecords},
		{name: "lifetime greater", mask: lifetime, r: mad.PathRecord{PacketLifeTime: 17}, want: func(r *mad.PathRecord) bool { return r.PacketLifeTime == 18 }},
		{name: "lifetime greater than it is", mask: lifetime, r: mad.PathRecord{PacketLifeTime: 18}, status: mad.StatusNoRecords},
		{name: "lifetime less", mask: lifetime, r: mad.PathRecord{PacketLifeTimeSelector: mad.SelectLess, PacketLifeTime: 10}, want: func(r *mad.PathRecord) bool { return r.PacketLifeTime == 9 }},
		{name: "lifetime exactly", mask: lifetime, r: mad.PathRecord{PacketLifeTimeSelector: mad.SelectExactly, PacketLifeTime: 19}, status: mad.StatusNoRecords},
		{name: "lifetime from the configuration", set: func(l *lab) { l.cfg.PacketLifeTime = 14 }, want: func(r *mad.PathRecord) bool { return r.PacketLifeTime == 14 }},
		{name: "a loop with a lifetime", loop: true, mask: lifetime, r: mad.PathRecord{PacketLifeTimeSelector: mad.SelectExactly, PacketLifeTime: 4}, status: mad.StatusNoRecords},
		{name: "a loop lives for no time", loop: true, want: func(r *mad.PathRecord) bool { return r.PacketLifeTime == 0 && r.SLID == r.DLID }},

		// 9. P_Key
		{name: "the P_Key of the source", from: 1, src: 1, dst: 2, want: func(r *mad.PathRecord) bool { return r.PKey == 0x0001 }},
		{name: "asked for as limited, held as full", mask: mad.PathComponentPKey, r: mad.PathRecord{PKey: 1}, want: func(r *mad.PathRecord) bool { return r.PKey == 0x8001 }},
		{name: "a P_Key that only one has", mask: mad.PathComponentPKey, r: mad.PathRecord{PKey: 0x8002}, status: mad.StatusNoRecords},
		{name: "the default partition, both limited", mask: mad.PathComponentPKey, r: mad.PathRecord{PKey: 0x7fff}, status: mad.StatusNoRecords},
		{name: "P_Key 0", mask: mad.PathComponentPKey, status: mad.StatusNoRecords},
		{name: "the default partition comes last", set: func(l *lab) { l.keys(0, 0xffff, 0x8001) }, want: func(r *mad.PathRecord) bool { return r.PKey == 0x8001 }},
		{name: "the lowest base", set: func(l *lab) { l.keys(0, 0x8002, 0x8001) }, want: func(r *mad.PathRecord) bool { return r.PKey == 0x8001 }},
		{name: "raw packets have none", mask: mad.PathComponentRawTraffic, r: mad.PathRecord{RawTraffic: true}, want: func(r *mad.PathRecord) bool { return r.PKey == 0 && r.RawTraffic }},
		{name: "raw packets, no partition", trust: true, dst: 3, mask: mad.PathComponentRawTraffic, r: mad.PathRecord{RawTraffic: true}, status: mad.StatusNoRecords},

		// 10. SL
		{name: "SL of the partition", set: func(l *lab) { l.cfg.Partitions = map[ib.PKey]ib.SL{1: 3} }, want: func(r *mad.PathRecord) bool { return r.SL == 3 }},
		{name: "SL asked for", mask: mad.PathComponentSL, r: mad.PathRecord{SL: 5}, want: func(r *mad.PathRecord) bool { return r.SL == 5 }},
		{
			name: "SL that switches drop", set: func(l *lab) {
				l.cfg.QoS = options(l.t, "qos TRUE\nqos_swe_sl2vl 0,1,2,3,4,15,6,7,8,9,10,11,12,13,14,7\n")
			},
			mask: mad.PathComponentSL, r: mad.PathRecord{SL: 5}, status: mad.StatusNoRecords,
		},
		{
			name: "SL that the host drops", set: func(l *lab) {
				l.cfg.QoS = options(l.t, "qos TRUE\nqos_ca_sl2vl 0,1,2,3,4,15,6,7,8,9,10,11,12,13,14,7\n")
			},
			mask: mad.PathComponentSL, r: mad.PathRecord{SL: 5}, status: mad.StatusNoRecords,
		},
		{
			name: "SL that routers drop", set: func(l *lab) {
				l.cfg.QoS = options(l.t, "qos TRUE\nqos_rtr_sl2vl 0,1,2,3,4,15,6,7,8,9,10,11,12,13,14,7\n")
			},
			mask: mad.PathComponentSL, r: mad.PathRecord{SL: 5},
		},
		{name: "multicast has a lane of its own", set: func(l *lab) { l.sl = 1 }, mask: mad.PathComponentSL, r: mad.PathRecord{SL: 1}, status: mad.StatusNoRecords},
		{name: "so all else is on 0", set: func(l *lab) { l.sl, l.cfg.Partitions = 1, map[ib.PKey]ib.SL{1: 3} }, want: func(r *mad.PathRecord) bool { return r.SL == 0 }},

		// 7. QoS policy
		{
			name: "a level of service", set: func(l *lab) { l.cfg.Policy = policy(l.t, levels) }, mask: mad.PathComponentQoSClass, r: mad.PathRecord{QoSClass: 7},
			want: func(r *mad.PathRecord) bool {
				return r.SL == 2 && r.MTU == ib.MTU1024 && r.Rate == ib.Rate40 && r.PacketLifeTime == 12 && r.QoSClass == 0
			},
		},
		{
			name: "its SL is not what is asked for", set: func(l *lab) { l.cfg.Policy = policy(l.t, levels) }, mask: mad.PathComponentQoSClass | mad.PathComponentSL,
			r: mad.PathRecord{QoSClass: 7, SL: 1}, status: mad.StatusNoRecords,
		},
		{
			name: "its limits before selectors", set: func(l *lab) { l.cfg.Policy = policy(l.t, levels) }, mask: mad.PathComponentQoSClass | mtu,
			r: mad.PathRecord{QoSClass: 7, MTU: ib.MTU1024}, status: mad.StatusNoRecords,
		},
		{
			name: "a level with P_Keys", set: func(l *lab) { l.cfg.Policy = policy(l.t, levels); l.keys(0, 0x8001, 0x8002) }, mask: service, r: mad.PathRecord{ServiceID: 9},
			want: func(r *mad.PathRecord) bool { return r.PKey == 0x8002 && r.SL == 1 },
		},
		{name: "a level with P_Keys that they do not share", set: func(l *lab) { l.cfg.Policy = policy(l.t, levels) }, mask: service, r: mad.PathRecord{ServiceID: 9}, status: mad.StatusNoRecords},
		{name: "a level by where packets go", set: func(l *lab) { l.cfg.Policy = policy(l.t, levels) }, dst: 1, want: func(r *mad.PathRecord) bool { return r.SL == 4 }},

		// 11. reversible
		{name: "it is reversible", mask: mad.PathComponentReversible, r: mad.PathRecord{Reversible: true}, want: func(r *mad.PathRecord) bool { return r.Reversible }},

		// 12. the rest of the answer
		{
			name: "what is 0 in a subnet", mask: mad.PathComponentFlowLabel | mad.PathComponentTClass | mad.PathComponentHopLimit | mad.PathComponentNumbPath,
			r: mad.PathRecord{FlowLabel: 5, TClass: 6, HopLimit: 7, NumbPath: 8},
			want: func(r *mad.PathRecord) bool {
				return r.FlowLabel == 0 && r.TClass == 0 && r.HopLimit == 0 && r.NumbPath == 0
			},
		},
	} {
		t.Run(q.name, func(t *testing.T) {
			l := newLab(t)
			if q.set != nil {
				q.set(l)
			}
			if q.dst == 0 && !q.loop {
				q.dst = 2
			}
			l.open()
			q.r.SGID, q.r.DGID = l.gid(q.src), l.gid(q.dst)
			if q.change != nil {
				q.change(l, &q.r)
			}
			got, status := l.get(l.asker(q.from, q.trust), q.r, byGID|q.mask)
			if status != q.status || status == ok && q.want != nil && !q.want(&got) {
				t.Errorf("status %v, want %v; %+v", status, q.status, got)
			}
		})
	}
}

const levels = `
port-groups
    port-group
        name: Second
        port-guid: 0x0020000000000101
    end-port-group
end-port-groups
qos-levels
    qos-level
        name: DEFAULT
        sl: 0
    end-qos-level
    qos-level
        name: Small
        sl: 2
        mtu-limit: 3
        rate-limit: 7
        packet-life: 12
    end-qos-level
    qos-level
        name: Keyed
        sl: 1
        pkey: 0x2
    end-qos-level
    qos-level
        name: There
        sl: 4
    end-qos-level
end-qos-levels
qos-match-rules
    qos-match-rule
        qos-class: 7
        qos-level-name: Small
    end-qos-match-rule
    qos-match-rule
        service-id: 9
        qos-level-name: Keyed
    end-qos-match-rule
    qos-match-rule
        destination: Second
        qos-level-name: There
    end-qos-match-rule
end-qos-match-rules
`

func options(t testing.TB, text string) qos.Options {
	t.Helper()
	o, err := qos.ParseOptions("options", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestOneWayOnly: where the way back is missing there is a path, but not a reversible
// one.
func TestOneWayOnly(t *testing.T) {
	l := newLab(t).open()
	tables, err := l.engines[0].Route(l.v.Fabric, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, sw := range l.v.Fabric.Switches() {
		tables.Writable(nil, sw)[l.lid(0)] = ib.NoPort
	}
	l.openWith(tables)
	r := mad.PathRecord{SGID: l.gid(0), DGID: l.gid(2), Reversible: true}
	if got, status := l.get(l.asker(0, false), r, byGID); status != mad.StatusOK || got.Reversible {
		t.Errorf("%v, %+v, want a path that is not reversible", status, got)
	}
	if _, status := l.get(l.asker(0, false), r, byGID|mad.PathComponentReversible); status != mad.StatusNoRecords {
		t.Errorf("%v for a reversible path", status)
	}
}

// TestEarlyTablesPromiseLeast: where routes are not known yet, a path promises no more than the worst link between switches
// carries, and it is the same path otherwise.
func TestEarlyTablesPromiseLeast(t *testing.T) {
	l := newLab(t)
	l.k = topotest.Chain(3, 2)
	f := l.k.Fabric()
	for id := range topo.PortID(f.NumPorts()) {
		l.link(id, ib.HDR, ib.MTU4096)
		peer := f.Port(id).Peer
		last := f.Switches()[2]
		if peer != topo.None && f.NodeOf(peer).Type == ib.NodeSwitch && (f.Port(id).Node == last || f.Port(peer).Node == last) {
			l.link(id, ib.EDR, ib.MTU2048)
		}
	}
	l.keys(0, 0x7fff, 0x8001)
	l.keys(1, 0x7fff, 0x8001)
	l.keys(2, 0x7fff, 0x8001)
	l.open()
	far := mad.PathRecord{SGID: l.gid(0), DGID: l.gid(2), Reversible: true}
	near := mad.PathRecord{SGID: l.gid(0), DGID: l.gid(1), Reversible: true}
	asker := l.asker(0, false)
	sure, _ := l.get(asker, far, byGID)
	if sure.MTU != ib.MTU4096 {
		t.Fatalf("MTU %v between the first two switches, want 4096", sure.MTU)
	}
	leaf, _ := l.get(asker, near, byGID)
	early := *l.v
	early.Early, early.Tables = early.Tables, nil
	for _, sound := range []bool{true, false} {
		l.b = portindex.New(portindex.Empty(l.rules), &early)
		if l.b.Routes.Sound = sound; !l.b.Routes.Early {
			t.Fatal("the routes do not count as early")
		}
		got, status := l.get(asker, far, byGID)
		if status != mad.StatusOK || got.MTU != ib.MTU2048 || got.Rate.Compare(sure.Rate) >= 0 {
			t.Errorf("sound %v: %v, MTU %v, rate %v; want MTU 2048 and less than %v", sound, status, got.MTU, got.Rate, sure.Rate)
		}
		if got.MTU, got.Rate = sure.MTU, sure.Rate; got != sure {
			t.Errorf("sound %v: %+v, want %+v but for MTU and rate", sound, got, sure)
		}
		if got, status := l.get(asker, near, byGID); status != mad.StatusOK || got != leaf {
			t.Errorf("sound %v: %v, %+v on one switch, want %+v", sound, status, got, leaf)
		}
	}
}

// TestEngineSaysLevel: with several layers the routing engine sets the service level, regardless of the partition.
func TestEngineSaysLevel(t *testing.T) {
	k := topotest.Torus(5, 1, 1)
	l := newLab(t)
	l.k, l.engines = k, []route.Engine{dfsssp.Engine{Lanes: 8}}
	for i := range k.Hosts {
		l.keys(i, 0x8001)
	}
	l.cfg.Partitions = map[ib.PKey]ib.SL{1: 9}
	l.open()
	if l.v.Tables.Layers() < 2 {
		t.Fatal("the ring has one layer")
	}
	seen := make(map[ib.SL]bool)
	for x := range k.Hosts {
		for y := range k.Hosts {
			want := l.v.Tables.SL(l.lid(x), l.lid(y))
			seen[want] = true
			r := mad.PathRecord{SGID: l.gid(x), DGID: l.gid(y), SL: want}
			if got, status := l.get(l.asker(x, false), r, byGID); status != mad.StatusOK || got.SL != want {
				t.Errorf("%v to %v: %v, SL %v, want %v", x, y, status, got.SL, want)
			}
			if _, status := l.get(l.asker(x, false), r, byGID|mad.PathComponentSL); status != mad.StatusOK {
				t.Errorf("%v to %v: %v for the right service level", x, y, status)
			}
			r.SL = want + 1
			if _, status := l.get(l.asker(x, false), r, byGID|mad.PathComponentSL); status != mad.StatusNoRecords {
				t.Errorf("%v to %v: %v for a wrong service level", x, y, status)
			}
		}
	}
	if len(seen) < 2 {
		t.Errorf("all paths are on %v", seen)
	}
}

// TestToOtherSubnets asks for ports of other subnets.
func TestToOtherSubnets(t *testing.T) {
	const far = ib.Prefix(0xFEC0_0000_0000_0007)
	l := newLab(t)
	f := l.k.Fabric()
	router := l.k.AddNode(topo.Node{GUID: 0x700, Type: ib.NodeRouter, NumPorts: 2, PartitionCap: 8})
	p := l.k.Port(l.k.PortOf(router, 1))
	p.GUID, p.State = 0x701, ib.PortActive
	l.k.SetPort(l.k.PortOf(router, 1), p)
	l.k.Link(router, f.Switches()[1])
	at := l.k.PortOf(router, 1)
	l.link(at, ib.HDR, ib.MTU4096)
	l.link(l.k.Port(at).Peer, ib.HDR, ib.MTU4096)
	for _, id := range []topo.PortID{at, l.k.Port(at).Peer} {
		l.s.SetPKeys(id, 0x8001)
	}
	q := mad.PathRecord{SGID: l.gid(0), DGID: ib.MakeGID(far, 5)}
	for _, c := range []struct {
		name   string
		routes []path.PrefixRoute
		from   int
		status mad.Status
	}{
		{"no route", nil, 0, mad.StatusInvalidGID},
		{"another prefix", []path.PrefixRoute{{Prefix: far + 1}}, 0, mad.StatusInvalidGID},
		{"any router", []path.PrefixRoute{{Prefix: far + 1, Router: 1}, {Prefix: far}}, 0, mad.StatusOK},
		{"for all prefixes", []path.PrefixRoute{{Router: 0x701}}, 0, mad.StatusOK},
		{"a router that is not there", []path.PrefixRoute{{Prefix: far, Router: 0x999}}, 0, mad.StatusNoRecords},
		{"what is no router", []path.PrefixRoute{{Prefix: far, Router: l.gid(2).GUID()}}, 0, mad.StatusNoRecords},
		{"a router of others", []path.PrefixRoute{{Prefix: far}}, 3, mad.StatusNoRecords},
	} {
		t.Run(c.name, func(t *testing.T) {
			l.cfg.Routes = c.routes
			l.open()
			q.SGID = l.gid(c.from)
			got, status := l.get(l.asker(c.from, false), q, byGID)
			if status != c.status || status == mad.StatusOK && (got.DLID != l.k.Port(at).LID || got.DGID != q.DGID || got.HopLimit != 255 || got.PKey != 0x8001) {
				t.Errorf("%v, want %v; %+v", status, c.status, got)
			}
		})
	}
}

// TestToGroups asks for the path to a multicast group.
func TestToGroups(t *testing.T) {
	mgid := ib.GID{0xFF, 0x12, 0x40, 0x1B, 0x80, 0x01, 14: 1, 15: 1}
	global := ib.GID{0xFF, 0x1E, 15: 2}
	l := newLab(t)
	l.groups[mgid] = path.Group{MLID: 0xC001, PKey: 0x8001, MTU: ib.MTU2048, Rate: ib.Rate10, PacketLifeTime: 17, SL: 1, FlowLabel: 3, HopLimit: 4, TClass: 5}
	l.groups[global] = path.Group{MLID: 0xC002, PKey: 0x8002, MTU: ib.MTU2048, Rate: ib.Rate10, HopLimit: 4}
	l.open()
	for _, c := range []struct {
		name   string
		from   int
		trust  bool
		mask   mad.ComponentMask
		r      mad.PathRecord
		status mad.Status
	}{
		{name: "who has the P_Key"},
		{name: "limited", from: 1},
		{name: "who has not", from: 3, status: mad.StatusNoRecords},
		{name: "nobody", from: -1, status: mad.StatusNoRecords},
		{name: "trusted", from: 3, trust: true},
		{name: "no such group", r: mad.PathRecord{DGID: ib.GID{0xFF, 0x12}}, status: mad.StatusNoRecords},
		{name: "a group of others", r: mad.PathRecord{DGID: global}, status: mad.StatusNoRecords},
		{name: "its MLID", mask: mad.PathComponentDLID, r: mad.PathRecord{DLID: 0xC001}},
		{name: "another MLID", mask: mad.PathComponentDLID, r: mad.PathRecord{DLID: 0xC002}, status: mad.StatusNoRecords},
		{name: "a unicast LID", mask: mad.PathComponentDLID, r: mad.PathRecord{DLID: 3}, status: mad.StatusInvalidRequest},
		{name: "a source with the P_Key", mask: mad.PathComponentSGID, r: mad.PathRecord{SGID: l.gid(2)}},
		{name: "a source without it", from: 2, trust: true, mask: mad.PathComponentSGID, r: mad.PathRecord{SGID: l.gid(3)}, status: mad.StatusNoRecords},
		{name: "its P_Key", mask: mad.PathComponentPKey, r: mad.PathRecord{PKey: 1}},
		{name: "another P_Key", mask: mad.PathComponentPKey, r: mad.PathRecord{PKey: 0x8002}, status: mad.StatusNoRecords},
		{name: "another SL", mask: mad.PathComponentSL, r: mad.PathRecord{SL: 2}, status: mad.StatusNoRecords},
		{name: "another TClass", mask: mad.PathComponentTClass, status: mad.StatusNoRecords},
		{name: "another flow", mask: mad.PathComponentFlowLabel, status: mad.StatusNoRecords},
		{name: "another hop limit", mask: mad.PathComponentHopLimit, status: mad.StatusNoRecords},
		{name: "more than its MTU", mask: mtu, r: mad.PathRecord{MTU: ib.MTU2048}, status: mad.StatusNoRecords},
		{name: "no path at all", mask: mad.PathComponentNumbPath, status: mad.StatusNoRecords},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.r.DGID == (ib.GID{}) {
				c.r.DGID = mgid
			}
			want := mad.PathRecord{
				DGID: mgid, SGID: c.r.SGID, DLID: 0xC001, FlowLabel: 3, HopLimit: 4, TClass: 5, Reversible: true, NumbPath: 1, PKey: 0x8001, SL: 1,
				MTUSelector: mad.SelectExactly, MTU: ib.MTU2048, RateSelector: mad.SelectExactly, Rate: ib.Rate10, PacketLifeTimeSelector: mad.SelectExactly, PacketLifeTime: 17,
			}
			if c.r.SGID != (ib.GID{}) {
				want.SLID = l.lid(2)
			}
			got, status := l.get(l.asker(c.from, c.trust), c.r, mad.PathComponentDGID|c.mask)
			if status != c.status || status == mad.StatusOK && got != want {
				t.Errorf("%v, want %v; %+v", status, c.status, got)
			}
			table, status := l.e.GetTable(l.b, l.groups, l.asker(c.from, c.trust), request(&c.r, mad.PathComponentDGID|c.mask))
			if n := len(list(t, &table)); (n == 1) != (c.status == mad.StatusOK) || status != mad.StatusOK && status != c.status {
				t.Errorf("%d records in a table, status %v", n, status)
			}
		})
	}
	if got, status := l.get(l.asker(3, false), mad.PathRecord{DGID: global}, mad.PathComponentDGID); status != mad.StatusOK || got.HopLimit != 255 {
		t.Errorf("beyond the subnet: %v, %+v", status, got)
	}
}

// TestLMC: pairs of LIDs that share nothing come first, then the others.
func TestLMC(t *testing.T) {
	l := newLab(t)
	for i := range l.k.Hosts {
		p := l.k.Port(l.port(i))
		p.LMC, p.LID = 1, ib.LID(0x40+2*i)
		l.k.SetPort(l.port(i), p)
	}
	l.open()
	r := mad.PathRecord{SGID: l.gid(0), DGID: l.gid(2), NumbPath: 3}
	for _, c := range []struct {
		mask mad.ComponentMask
		want [][3]int // offset of source and destination, preference
	}{
		{0, [][3]int{{0, 0, 0}, {1, 1, 0}, {0, 1, 2}, {1, 0, 2}}},
		{mad.PathComponentNumbPath, [][3]int{{0, 0, 0}, {1, 1, 0}, {0, 1, 2}}},
		{mad.PathComponentSLID, [][3]int{{1, 0, 0}, {1, 1, 2}}},
	} {
		r.SLID = 0x41
		table, status := l.e.GetTable(l.b, nil, l.asker(0, false), request(&r, byGID|c.mask))
		got := list(t, &table)
		if status != mad.StatusOK || len(got) != len(c.want) {
			t.Fatalf("%v: %d records, want %d", status, len(got), len(c.want))
		}
		for i, w := range c.want {
			if g := got[i]; int(g.SLID) != 0x40+w[0] || int(g.DLID) != 0x44+w[1] || int(g.Preference) != w[2] {
				t.Errorf("record %d: %v to %v, preference %d, want %v", i, g.SLID, g.DLID, g.Preference, w)
			}
		}
	}
	if got, status := l.get(l.asker(0, false), r, byGID|mad.PathComponentSLID); status != mad.StatusOK || got.SLID != 0x41 || got.DLID != 0x44 {
		t.Errorf("Get: %v, %v to %v", status, got.SLID, got.DLID)
	}
}

// TestConfig: invalid configurations are refused.
func TestConfig(t *testing.T) {
	for _, c := range []path.Config{
		{PacketLifeTime: 32},
		{MaxRate: 1},
		{Partitions: map[ib.PKey]ib.SL{1: 16}},
		{Routes: []path.PrefixRoute{{Prefix: ib.DefaultPrefix}}},
		{Prefix: 5, Routes: []path.PrefixRoute{{Prefix: 5}}},
	} {
		if e, err := path.New(c); err == nil || e != nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

// TestOpenEnds: a Get that leaves an end open gets a path of the requester itself. An untrusted requester causes no search.
func TestOpenEnds(t *testing.T) {
	l := newLab(t).open()
	const sgid, dgid = mad.PathComponentSGID, mad.PathComponentDGID
	q := mad.PathRecord{SGID: l.gid(2), DGID: l.gid(2)}
	for _, c := range []struct {
		name   string
		from   int
		trust  bool
		world  bool
		mask   mad.ComponentMask
		src    ib.LID // 0: any
		status mad.Status
	}{
		{"no source", 0, false, false, dgid, l.lid(0), mad.StatusOK},
		{"no source, foreign", 1, false, false, dgid, l.lid(1), mad.StatusOK},
		{"no source, trusted", 3, true, false, dgid, l.lid(3), mad.StatusOK},
		{"no source, nobody asks", -1, false, false, dgid, 0, mad.StatusNoRecords},
		{"no source, nobody asks, trusted", -1, true, false, dgid, l.lid(0), mad.StatusOK},
		{"no destination", 2, false, false, sgid, 0, mad.StatusInsufficientComponents},
		{"no destination, trusted", 2, true, false, sgid, l.lid(2), mad.StatusOK},
		{"neither", 2, false, false, 0, 0, mad.StatusInsufficientComponents},
		{"neither, trusted", 2, true, false, 0, l.lid(2), mad.StatusOK},
		{"neither, trusted, nobody asks", -1, true, false, 0, 0, mad.StatusDenied},
		{"neither, trusted, nobody asks, the whole world", -1, true, true, 0, l.lid(0), mad.StatusOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			l.cfg.FullWorld = c.world
			l.open()
			got, status := l.get(l.asker(c.from, c.trust), q, c.mask)
			if status != c.status || status == mad.StatusOK && got.SLID != c.src {
				t.Errorf("%v, want %v; from %v, want %v", status, c.status, got.SLID, c.src)
			}
		})
	}
}

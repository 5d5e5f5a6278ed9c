package perfmgr_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/perfmgr"
)

// distinct sets each counter to another value that every width holds.
func distinct(v *perfmgr.Values) {
	for c := range v {
		v[c] = uint64(c) + 1
	}
	v[perfmgr.LocalLinkIntegrityErrors], v[perfmgr.ExcessiveBufferOverrunErrors] = 14, 13
}

// Each kind of device is read by what it has, and each counter has its own place.
func TestReadsEachKind(t *testing.T) {
	t.Parallel()
	const unicast = 1<<perfmgr.UnicastXmitPkts | 1<<perfmgr.UnicastRcvPkts | 1<<perfmgr.MulticastXmitPkts | 1<<perfmgr.MulticastRcvPkts
	const all, wait, qp1 = perfmgr.Set(1<<perfmgr.NumCounters - 1), perfmgr.Set(1 << perfmgr.XmitWait), perfmgr.Set(1 << perfmgr.QP1Dropped)
	for _, tt := range []struct {
		name        string
		caps, caps2 uint32
		has         perfmgr.Set
		requests    int // of the second pass
	}{
		{"32 bits", 0, 0, all &^ unicast &^ wait &^ qp1, 1},
		{"64 bits", 1 << 9, 0, all &^ wait &^ qp1, 2},
		{"64 bits, no unicast", 1 << 10, 0, all &^ unicast &^ wait &^ qp1, 2},
		{"wait and QP1", 1<<9 | 1<<12 | 1<<15, 0, all, 2},
		{"all of 64 bits", 1<<9 | 1<<12, 2, all, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, nil)
			d := b.add(7, tt.caps, tt.caps2, 3)
			distinct(d.ports[3])
			b.m.SetAgents(b.now, []perfmgr.Agent{agentOf(7, 3)})
			b.run(29 * time.Second)
			r := b.must(0x1007, 3)
			if r.Has != tt.has {
				t.Errorf("has %#x, want %#x", r.Has, tt.has)
			}
			for c := range perfmgr.Counter(perfmgr.NumCounters) {
				if r.Has.Has(c) && r.Totals[c] != d.ports[3][c] {
					t.Errorf("counter %d is %d, want %d", c, r.Totals[c], d.ports[3][c])
				}
			}
			d.asked = 0
			b.run(30 * time.Second)
			if d.asked != tt.requests {
				t.Errorf("%d requests in a pass, want %d", d.asked, tt.requests)
			}
			if s := b.m.Stats(); s.Refused+s.TimedOut+s.Invalid+s.Strays+s.Resets != 0 || s.Passes != 2 || s.Current != 1 || s.Ports != 1 || s.Between != 30*time.Second {
				t.Errorf("%+v", s)
			}
		})
	}
}

// A device that says it has counters of 64 bits and has none is read by the others.
func TestShortens(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	d := b.add(7, 1<<9|1<<12, 0, 1)
	distinct(d.ports[1])
	d.spoil = func(m *mad.MAD) {
		if m.Attr() == 0x001D {
			m.SetStatus(mad.StatusUnsupportedMethodAttr)
		}
	}
	b.m.SetAgents(b.now, []perfmgr.Agent{agentOf(7, 1)})
	b.run(time.Minute - time.Second)
	if r := b.must(0x1007, 1); r.Totals[perfmgr.XmitData] != d.ports[1][perfmgr.XmitData] || !r.Has.Has(perfmgr.XmitWait) || r.Has.Has(perfmgr.UnicastRcvPkts) {
		t.Errorf("%+v", r)
	}
	if s := b.m.Stats(); s.Refused != 1 {
		t.Errorf("it was asked again: %+v", s)
	}
}

// Totals never go back, though counters are cleared, and grow by what was counted since.
func TestResets(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	d := b.add(7, 1<<9, 0, 1)
	v := d.ports[1]
	b.m.SetAgents(b.now, []perfmgr.Agent{agentOf(7, 1)})
	var want uint64
	for i, x := range []struct{ is, grown uint64 }{{100, 100}, {130, 30}, {128, 128}, {0, 0}, {5, 5}, {5, 0}} {
		v[perfmgr.RcvConstraintErrors], v[perfmgr.XmitData] = x.is, 1000*x.is
		want += x.grown
		b.run(30 * time.Second)
		if r := b.must(0x1007, 1); r.Totals[perfmgr.RcvConstraintErrors] != want || r.Totals[perfmgr.XmitData] != 1000*want {
			t.Errorf("step %d: totals %d and %d, want %d", i, r.Totals[perfmgr.RcvConstraintErrors], r.Totals[perfmgr.XmitData], want)
		}
	}
	if s := b.m.Stats(); s.Resets != 4 || s.Implausible != 0 { // two attributes each, twice
		t.Errorf("%+v", s)
	}
}

// A counter at its largest value is counted as such and stays; when it is cleared, the total goes on.
func TestSaturates(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	d := b.add(7, 1<<9, 0, 1)
	v := d.ports[1]
	b.m.SetAgents(b.now, []perfmgr.Agent{agentOf(7, 1)})
	v[perfmgr.SymbolErrors], v[perfmgr.XmitData], v[perfmgr.LocalLinkIntegrityErrors] = 1_000_000, math.MaxUint32, 15
	b.run(45 * time.Second)
	if s, r := b.m.Stats(), b.must(0x1007, 1); s.Saturated != 2 || r.Totals[perfmgr.SymbolErrors] != 65535 || r.Totals[perfmgr.XmitData] != math.MaxUint32 {
		t.Errorf("%+v, %v", s, r.Totals)
	}
	v[perfmgr.SymbolErrors], v[perfmgr.LocalLinkIntegrityErrors] = 3, 0
	b.run(30 * time.Second)
	if s, r := b.m.Stats(), b.must(0x1007, 1); s.Saturated != 0 || r.Totals[perfmgr.SymbolErrors] != 65538 || r.Totals[perfmgr.LocalLinkIntegrityErrors] != 15 {
		t.Errorf("%+v, %v", s, r.Totals)
	}
}

// Values that no link can have counted do not come into the totals, and no total wraps.
func TestImplausible(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	d := b.add(7, 1<<9, 2, 1)
	v := d.ports[1]
	b.m.SetAgents(b.now, []perfmgr.Agent{agentOf(7, 1)})
	v[perfmgr.XmitData], v[perfmgr.RcvData] = 1000, math.MaxUint64-10
	b.run(30 * time.Second)
	v[perfmgr.XmitData], v[perfmgr.RcvData] = 1<<60, 1000
	b.run(30 * time.Second)
	v[perfmgr.XmitData] += 50
	b.run(30 * time.Second)
	if r := b.must(0x1007, 1); r.Totals[perfmgr.XmitData] != 1050 || r.Totals[perfmgr.RcvData] != math.MaxUint64 {
		t.Errorf("%v", r.Totals)
	}
	if s := b.m.Stats(); s.Implausible != 1 {
		t.Errorf("%+v", s)
	}
}

// Ports without a link are not asked for; the totals of a link that comes back go on.
func TestLinks(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	d := b.add(7, 1<<9, 0, 1, 2, 3)
	for _, v := range d.ports {
		v[perfmgr.LinkDowned] = 4
	}
	b.m.SetAgents(b.now, []perfmgr.Agent{agentOf(7, 1, 3)})
	b.run(29 * time.Second)
	if _, ok := b.of(0x1007, 2); ok || d.asked != 1+2*2 {
		t.Errorf("%d requests; port without a link read: %v", d.asked, ok)
	}
	d.ports[1][perfmgr.LinkDowned] = 1 // cleared: the total is 5
	b.run(30 * time.Second)
	b.m.SetAgents(b.now, []perfmgr.Agent{agentOf(7, 2, 3)})
	b.run(20 * time.Minute)
	if _, ok := b.of(0x1007, 1); ok {
		t.Error("old values are shown")
	}
	d.ports[1][perfmgr.LinkDowned] = 2
	b.m.SetAgents(b.now, []perfmgr.Agent{agentOf(7, 1, 2, 3)})
	b.run(30 * time.Second)
	if r := b.must(0x1007, 1); r.Totals[perfmgr.LinkDowned] != 6 {
		t.Errorf("%v", r.Totals)
	}
	b.m.SetAgents(b.now, nil) // the whole device, twice
	b.run(10 * time.Minute)
	b.m.SetAgents(b.now, []perfmgr.Agent{agentOf(7, 1)})
	b.run(30 * time.Second)
	if r := b.must(0x1007, 1); r.Totals[perfmgr.LinkDowned] != 6 {
		t.Errorf("after the device was away: %v", r.Totals)
	}
	b.m.SetAgents(b.now, nil)
	b.run(2 * time.Hour)
	b.m.SetAgents(b.now, nil)
	b.m.SetAgents(b.now, []perfmgr.Agent{agentOf(7, 1)})
	b.run(30 * time.Second)
	if r := b.must(0x1007, 1); r.Totals[perfmgr.LinkDowned] != 2 {
		t.Errorf("it was not forgotten: %v", r.Totals)
	}
}

// fleet adds switches with 4 ports each.
func (b *bed) fleet(n int) (all []perfmgr.Agent) {
	for i := range n {
		lid := ib.LID(1 + i)
		b.add(lid, 1<<9, 0, 1, 2, 3, 4)
		all = append(all, agentOf(lid, 1, 2, 3, 4))
	}
	return all
}

// In no second more requests are sent than the rate says, and what has no room in the interval makes it longer.
func TestRate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		agents, rate int
		between      time.Duration // at least
	}{{100, 1000, 30 * time.Second}, {1000, 200, 40 * time.Second}} {
		b := newBed(t, func(o *perfmgr.Options) { o.Rate = tt.rate })
		b.m.SetAgents(b.now, b.fleet(tt.agents))
		b.run(3 * time.Minute)
		for i := tt.rate + 5; i < len(b.sent); i++ {
			if took := b.sent[i].Sub(b.sent[i-tt.rate-5]); took < time.Second {
				t.Fatalf("requests %d to %d were sent in %v", i-tt.rate-5, i, took)
			}
		}
		s := b.m.Stats()
		if s.Between < tt.between || s.Between > tt.between+tt.between/10 || s.Current != 4*tt.agents || s.Took > s.Between {
			t.Errorf("%d agents: %+v", tt.agents, s)
		}
	}
}

// The requests of a pass are spread over the interval.
func TestSpreads(t *testing.T) {
	t.Parallel()
	b := newBed(t, func(o *perfmgr.Options) { o.Rate = 10_000 })
	b.m.SetAgents(b.now, b.fleet(1000))
	b.run(90 * time.Second)
	if s := b.m.Stats(); s.Took < 25*time.Second || s.Took > 28*time.Second {
		t.Errorf("%+v", s)
	}
}

// Devices that do not answer, or answer late, take no time of others, and are asked less and less.
func TestSilent(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	all := b.fleet(200)
	for i := range 20 {
		b.devices[ib.LID(1+10*i)].silent = true
	}
	b.devices[2].delay = 400 * time.Millisecond
	b.m.SetAgents(b.now, all)
	b.run(29 * time.Second)
	if s := b.m.Stats(); s.Passes != 1 || s.TimedOut != 40 || s.Silent != 20 || s.Current != 4*180 || s.Took > 20*time.Second {
		t.Errorf("%+v", s)
	}
	first := b.devices[1].asked
	b.run(time.Hour)
	if n := b.devices[1].asked - first; first != 2 || n > 12 || n < 6 {
		t.Errorf("it was asked %d times, then %d times in an hour", first, n)
	}
	b.devices[1].silent = false
	b.run(10 * time.Minute)
	b.must(0x1001, 4)
	if s := b.m.Stats(); s.Silent != 19 {
		t.Errorf("%+v", s)
	}
	if b.most > 8 {
		t.Errorf("%d requests were out at once, of a window of 8", b.most)
	}
}

// What a device answers to a question that it was not asked changes no value, its own or others'.
func TestNonsense(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*mad.MAD){
		"other port":        func(m *mad.MAD) { m[65]++ },
		"all ports":         func(m *mad.MAD) { m[65] = 255 },
		"other attribute":   func(m *mad.MAD) { m.SetAttr(m.Attr() ^ 0x0F) },
		"other class":       func(m *mad.MAD) { m[1] = byte(mad.ClassVendorVS) },
		"no answer":         func(m *mad.MAD) { m.SetMethod(mad.MethodGet) },
		"other transaction": func(m *mad.MAD) { m.SetTID(m.TID() ^ 0x100) },
		"other slot":        func(m *mad.MAD) { m.SetTID(m.TID() ^ 1) },
		"slot out of range": func(m *mad.MAD) { m.SetTID(m.TID() | 7) },
		"busy":              func(m *mad.MAD) { m.SetStatus(1) },
		"error":             func(m *mad.MAD) { m.SetStatus(mad.StatusInvalidField) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, func(o *perfmgr.Options) { o.Window = 5 })
			all := b.fleet(20)
			for lid, d := range b.devices {
				for _, v := range d.ports {
					v[perfmgr.XmitData] = uint64(lid)
				}
			}
			for _, v := range b.devices[3].ports {
				v[perfmgr.XmitData] = 666
			}
			b.devices[3].spoil = func(m *mad.MAD) {
				if m.Attr() != mad.AttrClassPortInfo {
					spoil(m)
				}
			}
			b.m.SetAgents(b.now, all)
			b.run(5 * time.Minute)
			for _, r := range b.m.Append(b.now, nil) {
				if want := uint64(r.GUID - 0x1000); r.Totals[perfmgr.XmitData] != want && r.Has != 0 {
					t.Errorf("%v port %d: %d, want %d", r.GUID, r.Port, r.Totals[perfmgr.XmitData], want)
				}
			}
			s := b.m.Stats()
			if s.Current != 4*19 || s.Passes < 9 || s.Refused+s.Invalid+s.Strays == 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// An answer counts only from the LID that was asked.
func TestSource(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	b.add(7, 0, 0, 1)
	b.m.SetAgents(b.now, []perfmgr.Agent{agentOf(7, 1)})
	var m mad.MAD
	if lid, ok := b.m.Next(b.now, &m); !ok || lid != 7 {
		t.Fatalf("LID %v, %v", lid, ok)
	}
	m.Respond(mad.StatusOK)
	b.m.Answer(b.now, 8, &m)
	if s := b.m.Stats(); s.Strays != 1 || s.Answered != 0 {
		t.Errorf("%+v", s)
	}
	b.m.Answer(b.now, 7, &m)
	b.m.Answer(b.now, 7, &m)
	if s := b.m.Stats(); s.Strays != 2 || s.Answered != 1 {
		t.Errorf("%+v", s)
	}
}

// A request that is out when its device gets another LID, or is gone, means nothing any longer.
func TestMoves(t *testing.T) {
	t.Parallel()
	for name, then := range map[string][]perfmgr.Agent{
		"other LID": {{GUID: 0x1007, LID: 9, Ports: []ib.PortNum{1}}, agentOf(8, 1)},
		"gone":      {agentOf(8, 1)},
		"swapped":   {{GUID: 0x1007, LID: 8, Ports: []ib.PortNum{1}}, {GUID: 0x1008, LID: 7, Ports: []ib.PortNum{1}}},
	} {
		b := newBed(t, nil)
		b.add(7, 0, 0, 1)
		b.m.SetAgents(b.now, []perfmgr.Agent{agentOf(7, 1), agentOf(8, 1)})
		var m mad.MAD
		if _, ok := b.m.Next(b.now, &m); !ok {
			t.Fatal("no request")
		}
		b.m.SetAgents(b.now, then)
		m.Respond(mad.StatusOK)
		b.m.Answer(b.now, 7, &m)
		b.m.Undelivered(b.now, m.TID())
		if s := b.m.Stats(); s.Answered != 0 || s.Strays != 1 || s.TimedOut != 0 {
			t.Errorf("%s: %+v", name, s)
		}
		for lid := range b.devices {
			delete(b.devices, lid)
		}
		for i, a := range then {
			b.add(a.LID, 0, 0, 1).ports[1][perfmgr.XmitData] = uint64(i + 1)
		}
		b.run(20 * time.Second)
		for i, a := range then {
			if r := b.must(a.GUID, 1); r.Totals[perfmgr.XmitData] != uint64(i+1) {
				t.Errorf("%s: %v of %v", name, r.Totals[perfmgr.XmitData], a)
			}
		}
	}
}

// A request that comes back without an answer ends at once.
func TestUndelivered(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	b.m.SetAgents(b.now, []perfmgr.Agent{agentOf(7, 1)})
	for range 2 {
		var m mad.MAD
		if _, ok := b.m.Next(b.now, &m); !ok {
			t.Fatal("no request")
		}
		b.m.Undelivered(b.now, m.TID()|5<<48)
		b.now = b.now.Add(20 * time.Millisecond)
	}
	if s := b.m.Stats(); s.TimedOut != 2 || s.Passes != 1 || s.Silent != 1 {
		t.Errorf("%+v", s)
	}
}

// Of two agents with one name the first is read.
func TestTwins(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	b.add(7, 0, 0, 1)
	b.add(8, 0, 0, 1)
	b.m.SetAgents(b.now, []perfmgr.Agent{agentOf(7, 1), {GUID: 0x1007, LID: 8, Ports: []ib.PortNum{1}}})
	b.run(20 * time.Second)
	if len(b.m.Append(b.now, nil)) != 1 || b.devices[8].asked != 0 {
		t.Errorf("%d requests to the second", b.devices[8].asked)
	}
}

// A device that shows ever new GUIDs takes a bounded memory.
func TestForgets(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	for i := range 5000 {
		b.m.SetAgents(b.now, []perfmgr.Agent{{GUID: ib.GUID(1 + i), LID: 7, Ports: []ib.PortNum{1}}})
	}
	if n := b.m.Known(); n > perfmgr.MaxWindow+2 {
		t.Errorf("%d agents are known", n)
	}
	b = newBed(t, nil)
	b.m.SetAgents(b.now, b.fleet(3000)) // the Subnet Manager lost its port
	b.m.SetAgents(b.now, nil)
	if n := b.m.Known(); n != 3000 {
		t.Errorf("%d agents of a fabric that is out of reach are known", n)
	}
}

// Options that make no sense are refused.
func TestOptions(t *testing.T) {
	t.Parallel()
	good := perfmgr.Options{Interval: time.Second, Rate: 1, Window: 1, Timeout: time.Second, Draw: func() uint32 { return 0 }}
	if _, err := perfmgr.New(good); err != nil {
		t.Error(err)
	}
	for i, spoil := range []func(*perfmgr.Options){
		func(o *perfmgr.Options) { o.Interval = 0 }, func(o *perfmgr.Options) { o.Rate = 0 }, func(o *perfmgr.Options) { o.Window = 0 },
		func(o *perfmgr.Options) { o.Window = 1025 }, func(o *perfmgr.Options) { o.Timeout = -1 }, func(o *perfmgr.Options) { o.Draw = nil },
	} {
		o := good
		spoil(&o)
		if _, err := perfmgr.New(o); err == nil {
			t.Errorf("case %d is taken", i)
		}
	}
}

// FuzzAnswer: whatever comes, the Manager goes on, keeps its bounds, and totals never go back.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3}, uint8(0), uint16(7))
	f.Fuzz(func(t *testing.T, raw []byte, mix uint8, from uint16) {
		b := newBed(t, func(o *perfmgr.Options) { o.Window = 3 })
		b.m.SetAgents(b.now, b.fleet(4))
		b.devices[1].spoil = func(m *mad.MAD) {
			at := 0
			if mix&1 != 0 {
				at = 64
			}
			copy(m[at:], raw)
			if mix&2 != 0 && len(raw) > 0 {
				raw = append(raw[1:], raw[0])
			}
		}
		last := map[string]perfmgr.Reading{}
		for range 6 {
			b.run(20 * time.Second)
			var stray mad.MAD
			copy(stray[:], raw)
			b.m.Answer(b.now, ib.LID(from), &stray)
			for _, r := range b.m.Append(b.now, nil) {
				name := fmt.Sprint(r.GUID, r.Port)
				for c, v := range last[name].Totals {
					if r.Totals[c] < v {
						t.Fatalf("%s counter %d went from %d to %d", name, c, v, r.Totals[c])
					}
					if r.GUID != 0x1001 && r.Totals[c] != 0 {
						t.Fatalf("%s has counted %d", name, r.Totals[c])
					}
				}
				last[name] = r
			}
		}
		if s := b.m.Stats(); s.Passes < 4 {
			t.Fatalf("%+v", s)
		}
	})
}

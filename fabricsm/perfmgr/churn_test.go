package perfmgr_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/perfmgr"
)

// While the fabric changes at any time, each port gets its own values, and no device is asked more than twice its share.
func TestChurn(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		b := newBed(t, func(o *perfmgr.Options) { o.Window = 4 })
		all := b.fleet(12)
		for lid, d := range b.devices {
			d.delay = time.Duration(rng.IntN(30)) * time.Millisecond
			for num, v := range d.ports {
				v[perfmgr.XmitData] = uint64(lid)<<8 | uint64(num)
			}
		}
		b.m.SetAgents(b.now, all)
		for range 200 {
			b.run(time.Duration(rng.IntN(int(500 * time.Millisecond))))
			var some []perfmgr.Agent
			for _, a := range all {
				switch rng.IntN(6) {
				case 0: // gone
				case 1:
					a.Ports = a.Ports[:rng.IntN(4)]
					some = append(some, a)
				default:
					some = append(some, a)
				}
			}
			b.m.SetAgents(b.now, some)
		}
		b.m.SetAgents(b.now, all)
		b.run(time.Minute)
		readings := b.m.Append(b.now, nil)
		for _, r := range readings {
			if want := uint64(r.GUID-0x1000)<<8 | uint64(r.Port); r.Totals[perfmgr.XmitData] != want {
				t.Errorf("seed %d: %v port %d is %d, want %d", seed, r.GUID, r.Port, r.Totals[perfmgr.XmitData], want)
			}
		}
		if s := b.m.Stats(); len(readings) != 48 || s.Invalid+s.Refused+s.TimedOut+s.Resets != 0 || s.Current != 48 {
			t.Errorf("seed %d: %d ports, %+v", seed, len(readings), s)
		}
	}
}

// That the fabric is shown again while it is read causes no further requests.
func TestShownAgain(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	all := b.fleet(50)
	for range 29 {
		b.m.SetAgents(b.now, all)
		b.run(100 * time.Millisecond)
	}
	b.run(20 * time.Second)
	if want := 50 * (1 + 2*4); len(b.sent) != want {
		t.Errorf("%d requests, want %d", len(b.sent), want)
	}
}

// A device that is busy is asked again later, for all that it has.
func TestBusy(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	d := b.add(7, 1<<9, 0, 1)
	distinct(d.ports[1])
	d.spoil = func(m *mad.MAD) { m.SetStatus(mad.StatusBusy) }
	b.m.SetAgents(b.now, []perfmgr.Agent{agentOf(7, 1)})
	b.run(29 * time.Second)
	if s := b.m.Stats(); s.Passes != 1 || s.Refused != 2 || d.asked != 2 {
		t.Errorf("%+v, %d requests", s, d.asked)
	}
	d.spoil = nil
	b.run(time.Minute)
	if r := b.must(0x1007, 1); !r.Has.Has(perfmgr.UnicastRcvPkts) || !r.Has.Has(perfmgr.SymbolErrors) {
		t.Errorf("has %#x", r.Has)
	}
}

// An error about one port says nothing about what the device has.
func TestOnePortRefused(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	d := b.add(7, 1<<9, 0, 1, 3)
	distinct(d.ports[3])
	b.m.SetAgents(b.now, []perfmgr.Agent{agentOf(7, 1, 2, 3)})
	b.run(time.Minute)
	if r := b.must(0x1007, 3); !r.Has.Has(perfmgr.UnicastRcvPkts) || r.Totals[perfmgr.XmitPkts] != d.ports[3][perfmgr.XmitPkts] {
		t.Errorf("%+v", r)
	}
	if s := b.m.Stats(); s.Refused != 4 || s.Current != 2 || s.Ports != 3 || s.Silent != 0 {
		t.Errorf("%+v", s)
	}
}

// What a device has is asked again when it may be another one, or have another firmware: its counters went back, or its LID is another.
func TestAsksAgainWhatThereIs(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(b *bed, d *device){
		"reset": func(_ *bed, d *device) { d.ports[1][perfmgr.SymbolErrors] = 0 },
		"LID": func(b *bed, d *device) {
			b.devices[9] = d
			b.m.SetAgents(b.now, []perfmgr.Agent{{GUID: 0x1007, LID: 9, Ports: []ib.PortNum{1}}})
		},
	} {
		b := newBed(t, nil)
		d := b.add(7, 0, 0, 1)
		distinct(d.ports[1])
		b.m.SetAgents(b.now, []perfmgr.Agent{agentOf(7, 1)})
		b.run(45 * time.Second)
		if b.must(0x1007, 1).Has.Has(perfmgr.UnicastRcvPkts) {
			t.Fatal("it has what it does not have")
		}
		d.caps = 1 << 9
		change(b, d)
		b.run(2 * time.Minute)
		if !b.must(0x1007, 1).Has.Has(perfmgr.UnicastRcvPkts) {
			t.Errorf("%s: it was not asked again", name)
		}
	}
}

// Where there is nothing to read any more, nothing is said to be unread, and the pause is no interval.
func TestNothingToRead(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	all := b.fleet(3)
	b.devices[1].silent = true
	b.m.SetAgents(b.now, all)
	b.run(5 * time.Minute)
	if s := b.m.Stats(); s.Ports != 12 || s.Current != 8 || s.Silent != 1 || s.Between != 30*time.Second {
		t.Errorf("%+v", s)
	}
	b.m.SetAgents(b.now, nil)
	if s := b.m.Stats(); s.Ports != 0 || s.Current != 0 || s.Silent != 0 || s.Saturated != 0 || s.Between != 0 {
		t.Errorf("afterwards: %+v", s)
	}
	b.now = b.now.Add(time.Hour) // nothing is asked meanwhile
	b.m.SetAgents(b.now, all)
	b.run(20 * time.Second)
	if s := b.m.Stats(); s.Current != 8 || s.Between != 0 {
		t.Errorf("later: %+v", s)
	}
	b.run(30 * time.Second)
	if s := b.m.Stats(); s.Between != 30*time.Second {
		t.Errorf("then: %+v", s)
	}
}

package sim

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// asking returns a fabric in which h1, with LMC 1, sends requests to the subnet administration at sm.
func asking(t testing.TB) (f *Fabric, sm, h1 *Station) {
	t.Helper()
	f, sm = refusals(t)
	h1, err := f.Station("h1", false)
	if err != nil {
		t.Fatal(err)
	}
	at := f.port(t, "h1", 1)
	at.info.LID, at.info.LMC = 4, 1
	binary.BigEndian.PutUint64(at.guids[8:], 0xA11A5) // an alias
	sw := f.port(t, "leaf1", 0).node.sw
	sw.info.LinearFDBTop, sw.linear = 5, []byte{255, 1, 255, 0, 2, 2}
	at.withKeys(ib.DefaultPKeyLimited, 0x8005)
	f.port(t, "sm", 1).withKeys(0x8004, ib.DefaultPKeyFull, 0x8005)
	return f, sm, h1
}

func question() transport.Packet {
	p := transport.Packet{LID: 1, QP: 1}
	p.MAD.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: mad.MethodGet, Attr: mad.AttrPathRecord, TID: 7})
	return p
}

// A received packet shows where it came from, and sent back with an answer in it goes
// there.
func TestAddresses(t *testing.T) {
	port, alias := ib.MakeGID(ib.DefaultPrefix, 0x0020000000000101), ib.MakeGID(ib.DefaultPrefix, 0xA11A5)
	manager := ib.MakeGID(ib.DefaultPrefix, 0x0020000000000001)
	global := func(own uint8, to ib.GID) transport.GRH {
		return transport.GRH{Present: true, GIDIndex: own, HopLimit: 64, TrafficClass: 9, FlowLabel: 0x12345, GID: to}
	}
	for _, tt := range []struct {
		name       string
		send, want func(p *transport.Packet)
		back       func(p *transport.Packet)
	}{
		{
			"plain", func(p *transport.Packet) {},
			func(p *transport.Packet) { p.LID, p.PKeyIndex = 4, 1 },
			func(p *transport.Packet) {},
		},
		{
			"path bits and service level",
			func(p *transport.Packet) { p.PathBits, p.SL = 1, 3 },
			func(p *transport.Packet) { p.LID, p.PKeyIndex, p.SL = 5, 1, 3 },
			func(p *transport.Packet) { p.PathBits, p.SL = 1, 3 },
		},
		{
			"more path bits than there are",
			func(p *transport.Packet) { p.PathBits = 3 },
			func(p *transport.Packet) { p.LID, p.PKeyIndex = 5, 1 },
			func(p *transport.Packet) { p.PathBits = 1 },
		},
		{
			"another partition",
			func(p *transport.Packet) { p.PKeyIndex = 1 },
			func(p *transport.Packet) { p.LID, p.PKeyIndex = 4, 2 },
			func(p *transport.Packet) { p.PKeyIndex = 1 },
		},
		{
			"global route",
			func(p *transport.Packet) { p.GRH = global(0, manager) },
			func(p *transport.Packet) { p.LID, p.PKeyIndex, p.GRH = 4, 1, global(0, port) },
			func(p *transport.Packet) { p.GRH = global(0, manager) },
		},
		{
			"global route from an alias",
			func(p *transport.Packet) { p.GRH = global(1, manager) },
			func(p *transport.Packet) { p.LID, p.PKeyIndex, p.GRH = 4, 1, global(0, alias) },
			func(p *transport.Packet) { p.GRH = global(1, manager) },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, sm, h1 := asking(t)
			p := question()
			tt.send(&p)
			h1.Send(p)
			want := question()
			want.MAD.SetTID(want.MAD.TID() | ib.TID(h1.Slot())<<slotShift)
			tt.want(&want)
			got := sm.Take(nil)
			if diff := cmp.Diff(got, []transport.Packet{want}); diff != "" {
				t.Fatalf("asked: got-, want+\n%s", diff)
			}
			got[0].MAD.Respond(mad.StatusOK)
			sm.Send(got[0])
			back := question()
			tt.back(&back)
			back.MAD = got[0].MAD
			if diff := cmp.Diff(h1.Take(nil), []transport.Packet{back}); diff != "" {
				t.Errorf("answered: got-, want+\n%s", diff)
			}
		})
	}
}

// A tenant shows any source GID, and its place shows in the LID all the same.
func TestForgedGID(t *testing.T) {
	_, sm, h1 := asking(t)
	other := ib.MakeGID(0xFEC0_0000_0000_0001, 0x666)
	h1.UseGID(other)
	p := question()
	p.GRH = transport.GRH{Present: true, GID: ib.MakeGID(ib.DefaultPrefix, 0x0020000000000001)}
	h1.Send(p)
	if got := sm.Take(nil); len(got) != 1 || got[0].GRH.GID != other || got[0].LID != 4 {
		t.Errorf("%+v", got)
	}
	h1.UseGID(ib.GID{})
	h1.Send(p)
	if got := sm.Take(nil); len(got) != 1 || got[0].GRH.GID.GUID() != 0x0020000000000101 {
		t.Errorf("%+v", got)
	}
}

// A GMP whose global route header is for another port is not taken.
func TestOtherDGID(t *testing.T) {
	for _, to := range []ib.GID{{}, ib.MakeGID(ib.DefaultPrefix, 0x777), ib.MakeGID(0xFEC0_0000_0000_0001, 0x0020000000000001)} {
		f, sm, h1 := asking(t)
		p := question()
		p.GRH = transport.GRH{Present: true, HopLimit: 64, GID: to}
		if got := h1.Exchange([]transport.Packet{p}, nil); len(got) != 1 || !got[0].Undelivered || len(sm.Take(nil)) != 0 {
			t.Errorf("to %v: %+v", to, got)
		}
		if f.Stats().Undelivered != 1 {
			t.Errorf("to %v: %+v", to, f.Stats())
		}
	}
}

// A router carries a GMP to the subnet that its header names.
func TestRoutersCarryGMPs(t *testing.T) {
	f := twoSubnets(t, Device{})
	a, errA := f.Station("a", false)
	b, errB := f.Station("b", true)
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	p := question()
	p.LID, p.GRH = 3, transport.GRH{Present: true, HopLimit: 8, GID: ib.MakeGID(prefixB, 0x201)}
	a.Send(p)
	got := b.Take(nil)
	if len(got) != 1 || got[0].LID != 3 || got[0].GRH.HopLimit != 7 || got[0].GRH.GID != ib.MakeGID(prefixA, 0x101) {
		t.Fatalf("%+v", got)
	}
	got[0].MAD.Respond(mad.StatusOK)
	b.Send(got...)
	if back := a.Take(nil); len(back) != 1 || back[0].Undelivered || back[0].LID != 3 || back[0].GRH.HopLimit != 6 {
		t.Errorf("%+v", back)
	}
	p.GRH.HopLimit = 1
	if back := a.Exchange([]transport.Packet{p}, nil); len(back) != 1 || !back[0].Undelivered {
		t.Errorf("at the end of its hops: %+v", back)
	}
}

// The P_Key of its GMPs decides whether a tenant reaches the subnet administration, at the switch of the tenant and at the
// destination port, as with data.
func TestPartitionsKeepTenantsFromSA(t *testing.T) {
	const open ib.PKey = ib.DefaultPKeyLimited
	for _, tt := range []struct {
		name     string
		enforced bool
		held     []ib.PKey // by the switch port in front of the tenant
		shows    ib.PKey   // 0: the first of its own
		reaches  bool
		at       func(f *Fabric) bool // the refusal is counted where it was
	}{
		{"limited member of the default partition", true, []ib.PKey{open}, 0, true, nil},
		{"the switch port holds nothing", true, nil, 0, false, switchRefused},
		{"full P_Key that the switch port does not hold", true, []ib.PKey{open}, ib.DefaultPKeyFull, false, switchRefused},
		{"of another tenant, held nowhere near", true, []ib.PKey{open}, 0x8004, false, switchRefused},
		{"of another tenant, which the manager is in and nobody enforces", false, nil, 0x8004, true, nil},
		{"of a partition that the manager is not in", false, nil, 0x8009, false, managerRefused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, sm, h1 := asking(t)
			sw := f.port(t, "leaf1", 2)
			sw.withKeys(tt.held...)
			sw.info.PartitionEnforcementInbound, sw.info.PartitionEnforcementOutbound = tt.enforced, tt.enforced
			h1.UsePKey(tt.shows)
			h1.Send(question())
			got := 0
			for _, p := range sm.Take(nil) {
				if p.IsSA() {
					got++
				}
			}
			if got == 1 != tt.reaches {
				t.Errorf("%d arrived", got)
			}
			if tt.at != nil && !tt.at(f) {
				t.Error("the refusal was not counted")
			}
		})
	}
}

func switchRefused(f *Fabric) bool {
	return f.byName["leaf1"].ports[2].counters.PortRcvConstraintErrors == 1
}

func managerRefused(f *Fabric) bool { return f.byName["sm"].ports[1].info.PKeyViolations == 1 }

// The lane of subnet administration has an inbox of its own, with a bound.
func TestSALane(t *testing.T) {
	_, sm, h1 := asking(t)
	lane, err := sm.Port().SA()
	if err != nil {
		t.Fatal(err)
	}
	for range maxSA + 3 {
		h1.Send(question())
	}
	smp := transport.Packet{LID: 1}
	mad.NewSMP(&smp.MAD, mad.Header{Method: mad.MethodGet, Attr: mad.AttrSMInfo, TID: 8}, nil, ib.MKey{})
	h1.Send(smp)
	in := make([]transport.Packet, maxSA+3)
	if n, err := sm.Port().Receive(in); n != 1 || err != nil || in[0].MAD.Attr() != mad.AttrSMInfo {
		t.Errorf("the port received %d, %v", n, err)
	}
	if n, err := lane.TryReceive(in); n != maxSA || err != nil || lane.Dropped() != 3 {
		t.Errorf("the lane received %d, %v, and %d were dropped", n, err, lane.Dropped())
	}
	in[0].MAD.Respond(mad.StatusOK)
	if n, err := lane.TrySend(in[:1]); n != 1 || err != nil || len(h1.Take(nil)) != 1 {
		t.Errorf("sent %d, %v", n, err)
	}
	if err := lane.Pause(time.Microsecond); err != nil {
		t.Error(err)
	}
	ended := make(chan error)
	go func() {
		err := lane.Wait()
		if err == nil {
			if n, _ := lane.TryReceive(in); n == 0 {
				err = errors.New("woken for nothing")
			}
		}
		ended <- err
		ended <- lane.Wait()
	}()
	h1.Send(question())
	if err := <-ended; err != nil {
		t.Error(err)
	}
	sm.Close()
	if err := <-ended; !errors.Is(err, transport.ErrClosed) {
		t.Errorf("Wait after Close: %v", err)
	}
}

// In a flood that no client receives, at most 512 packets wait, as at an adapter under Linux. A flood of GMPs costs a
// station none of its SMPs; a flood of SMPs does.
func TestGMPsLeaveRoomForSMPs(t *testing.T) {
	f, sm, h1 := asking(t)
	for range maxQueued + 100 {
		h1.Send(question())
	}
	smp := transport.Packet{LID: 1}
	mad.NewSMP(&smp.MAD, mad.Header{Method: mad.MethodGet, Attr: mad.AttrSMInfo, TID: 8}, nil, ib.MKey{})
	h1.Send(smp)
	got := sm.Take(nil)
	if len(got) != maxQueued+1 || got[maxQueued].MAD.Attr() != mad.AttrSMInfo || f.Stats().Overflowed != 100 {
		t.Errorf("%d arrived, %d did not", len(got), f.Stats().Overflowed)
	}
	for range maxQueued + 10 {
		h1.Send(smp)
	}
	if got := sm.Take(nil); len(got) != maxQueued || f.Stats().Overflowed != 110 {
		t.Errorf("%d SMPs arrived, %d packets did not", len(got), f.Stats().Overflowed)
	}
}

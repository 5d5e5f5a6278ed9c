package sm_test

import (
	"fmt"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// mangled brings up a small fabric with a tenant while what arrives is changed,
// for ten seconds, and wants it to settle as it should when that is over.
func mangled(t testing.TB, bad chaos, mangle func(n int, p *transport.Packet)) {
	t.Helper()
	l, err := netlist.Single(netlist.Shape{Hosts: 3, Radix: 4})
	l = list(t, l, err)
	e := newEnv(t, l, sim.Options{LoseSilently: true}, sm.Config{AuditPeriod: 30 * time.Second, SMKey: ib.NewSMKey(7)}, 1)
	h := hosts(l)[0]
	n := 0
	e.bad = bad
	e.mangle = func(p *transport.Packet) { n++; mangle(n, p) }
	e.start()
	e.want(sm.Intent{Revision: 1, Grants: []sm.Grant{h.grant(0x8001)}, Hosts: places(hosts(l))})
	e.run(10 * time.Second)
	e.bad, e.mangle = chaos{}, nil
	e.run(3 * time.Minute)
	e.mustSettle(2 * time.Minute)
	w := watch(e)
	for i := range w.hosts {
		if s := e.fab.PortInfo(w.hosts[i].node.Name, w.hosts[i].num).PortState; s != ib.PortActive {
			t.Fatalf("%s is %v, want Active; problems %q", w.hosts[i].node.Name, s, e.problems())
		}
	}
	w.checkEnd()
}

// TestMangledWire: no byte of no MAD of a bring-up, flipped, wedges or crashes
// the core: every second packet has one bit of the byte, or all, inverted.
func TestMangledWire(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 8
	}
	for at := 0; at < mad.Size; at += step {
		t.Run(fmt.Sprintf("byte %d", at), func(t *testing.T) {
			t.Parallel()
			mangled(t, chaos{}, func(n int, p *transport.Packet) {
				switch n % 4 {
				case 0:
					p.MAD[at] ^= 1 << (n / 4 % 8)
				case 2:
					p.MAD[at] ^= 0xFF
				}
			})
		})
	}
}

// TestBadWire: all damage that a wire can do to MADs except for flipped bytes.
func TestBadWire(t *testing.T) {
	tests := map[string]struct {
		bad    chaos
		mangle func(n int, p *transport.Packet)
	}{
		"truncated in the header":  {mangle: func(n int, p *transport.Packet) { clear(p.MAD[n%24:]) }},
		"truncated in the path":    {mangle: func(n int, p *transport.Packet) { clear(p.MAD[128+n%128:]) }},
		"truncated in the data":    {mangle: func(n int, p *transport.Packet) { clear(p.MAD[64+n%64 : 128]) }},
		"filled with ones":         {mangle: func(n int, p *transport.Packet) { fill(p.MAD[64:128], 0xFF, n%3 == 0) }},
		"filled with zeros":        {mangle: func(n int, p *transport.Packet) { fill(p.MAD[64:128], 0, n%3 == 0) }},
		"with a foreign TID":       {mangle: func(n int, p *transport.Packet) { p.MAD.SetTID(p.MAD.TID() + ib.TID(n%3)) }},
		"with the TID before":      {mangle: func(n int, p *transport.Packet) { p.MAD.SetTID(p.MAD.TID() - ib.TID(n%2)<<12) }},
		"with another attribute":   {mangle: func(n int, p *transport.Packet) { p.MAD.SetAttr(mad.AttrID(0x10 + n%16)) }},
		"refused":                  {mangle: func(n int, p *transport.Packet) { p.MAD.SetStatus(mad.Status(n % 3 * 4)) }},
		"busy":                     {mangle: func(n int, p *transport.Packet) { p.MAD.SetStatus(mad.Status(n % 2)) }},
		"twice":                    {bad: chaos{twice: 1}},
		"late and out of order":    {bad: chaos{delay: 0.8}},
		"lost, late and twice":     {bad: chaos{lose: 0.3, delay: 0.3, twice: 0.3}},
		"garbled at random":        {bad: chaos{garble: 0.5}},
		"undelivered now and then": {mangle: func(n int, p *transport.Packet) { p.Undelivered = n%3 == 0 }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.mangle == nil {
				tt.mangle = func(int, *transport.Packet) {}
			}
			mangled(t, tt.bad, tt.mangle)
		})
	}
}

func fill(b []byte, v byte, really bool) {
	for i := range b {
		if really {
			b[i] = v
		}
	}
}

// FuzzWire changes packets as the input says: three bytes each say which byte of
// the next packet becomes what, and how many packets pass untouched before.
func FuzzWire(f *testing.F) {
	f.Add([]byte{3, 0x81, 0, 8, 1, 2, 64, 0xFF, 1})
	f.Add([]byte{97, 0x11, 0, 97, 0x22, 0, 97, 0x33, 0})
	f.Fuzz(func(t *testing.T, plan []byte) {
		if len(plan) > 300 {
			return
		}
		wait := 0
		mangled(t, chaos{}, func(_ int, p *transport.Packet) {
			if wait--; wait >= 0 || len(plan) < 3 {
				return
			}
			p.MAD[plan[0]], wait = plan[1], int(plan[2]%16)
			plan = plan[3:]
		})
	})
}

package sim_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/transport"
)

func TestMKeyLease(t *testing.T) {
	bad := keyed(directed(mad.Header{Method: mad.MethodSet, Attr: mad.AttrGUIDInfo}, 1, 2), wrongKey)
	good := keyed(directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo}, 1, 2), rightKey)
	for _, tt := range []struct {
		name   string
		lease  uint16
		do     func(f *sim.Fabric, send func(transport.Packet))
		lapsed bool
	}{
		{"no violation", 60, func(f *sim.Fabric, _ func(transport.Packet)) { f.Advance(time.Hour) }, false},
		{"not over yet", 60, func(f *sim.Fabric, send func(transport.Packet)) {
			send(bad)
			f.Advance(59 * time.Second)
		}, false},
		{"over", 60, func(f *sim.Fabric, send func(transport.Packet)) {
			send(bad)
			f.Advance(60 * time.Second)
		}, true},
		{"another violation does not prolong it", 60, func(f *sim.Fabric, send func(transport.Packet)) {
			send(bad)
			f.Advance(40 * time.Second)
			send(bad)
			f.Advance(20 * time.Second)
		}, true},
		{"the right key stops it", 60, func(f *sim.Fabric, send func(transport.Packet)) {
			send(bad)
			f.Advance(40 * time.Second)
			send(good)
			f.Advance(time.Hour)
		}, false},
		{"it starts anew after that", 60, func(f *sim.Fabric, send func(transport.Packet)) {
			send(bad)
			send(good)
			f.Advance(time.Hour)
			send(bad)
			f.Advance(time.Minute)
		}, true},
		{"0 is for ever", 0, func(f *sim.Fabric, send func(transport.Packet)) {
			send(bad)
			f.Advance(24 * time.Hour)
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tree(t, sim.Options{})
			s := station(t, f, "sm", false)
			protect(t, s, 2, tt.lease, 1, 2)
			tt.do(f, func(p transport.Packet) { ask(t, s, p) })
			pi := f.PortInfo("h1", 1)
			if got := pi.MKeyProtectBits == 0; got != tt.lapsed {
				t.Errorf("protection is %d, lapsed %v", pi.MKeyProtectBits, tt.lapsed)
			}
			in := ask(t, s, directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrPortInfo}, 1, 2))
			if (in != nil) != tt.lapsed {
				t.Errorf("a Get without the key is answered: %v", in != nil)
			}
			if in := ask(t, s, directed(mad.Header{Method: mad.MethodSet, Attr: mad.AttrGUIDInfo}, 1, 2)); in != nil {
				t.Error("a Set without the key is answered: the key does not lapse")
			}
		})
	}
	f := tree(t, sim.Options{})
	s := station(t, f, "sm", false)
	protect(t, s, 2, 60, 1, 2)
	ask(t, s, bad)
	f.Advance(10 * time.Second)
	if left, running := f.MKeyLease("h1", 1); !running || left != 50*time.Second {
		t.Errorf("lease: %v, %v", left, running)
	}
}

func TestMKeyViolationsSaturateAndClear(t *testing.T) {
	f := tree(t, sim.Options{LoseSilently: true})
	s := station(t, f, "sm", false)
	protect(t, s, 2, 0, 1, 2)
	bad := keyed(directed(mad.Header{Method: mad.MethodSet, Attr: mad.AttrGUIDInfo}, 1, 2), wrongKey)
	for range 1<<16 + 5 {
		s.Send(bad)
	}
	if got := f.PortInfo("h1", 1).MKeyViolations; got != 0xFFFF {
		t.Errorf("%d violations", got)
	}
	pi := f.PortInfo("h1", 1)
	pi.PortState, pi.PortPhysicalState = ib.PortNop, ib.PhysNop
	for _, tt := range []struct{ write, want uint16 }{{7, 0xFFFF}, {0, 0}} {
		p := keyed(directed(mad.Header{Method: mad.MethodSet, Attr: mad.AttrPortInfo}, 1, 2), rightKey)
		pi.MKeyViolations = tt.write
		if err := mad.Encode(p.MAD.Data(), &pi); err != nil {
			t.Fatal(err)
		}
		if in := ask(t, s, p); in == nil || in.Status() != mad.StatusOK {
			t.Fatalf("Set of %d is not answered well", tt.write)
		}
		if got := f.PortInfo("h1", 1).MKeyViolations; got != tt.want {
			t.Errorf("%d violations after a Set to %d, want %d", got, tt.write, tt.want)
		}
	}
}

package ibsimserver_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/simtest"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// guard sets a key at the end port at the end of a route from sm.
func guard(t testing.TB, f *sim.Fabric, key uint64, level uint8, route ...ib.PortNum) {
	t.Helper()
	s, err := f.Station("sm", false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var pi mad.PortInfo
	for _, method := range []mad.Method{mad.MethodGet, mad.MethodSet} {
		p := get(1, mad.AttrPortInfo, route...)
		p.MAD.SetMethod(method)
		if method == mad.MethodSet {
			pi.MKey, pi.MKeyProtectBits = ib.NewMKey(key), level
			pi.PortState, pi.PortPhysicalState = ib.PortNop, ib.PhysNop
			if err := mad.Encode(p.MAD.Data(), &pi); err != nil {
				t.Fatal(err)
			}
		}
		in := s.Exchange([]transport.Packet{p}, nil)
		if len(in) != 1 || in[0].MAD.Status() != mad.StatusOK {
			t.Fatalf("%v of PortInfo: %d answers", method, len(in))
		}
		if err := mad.Decode(in[0].MAD.Data(), &pi); err != nil {
			t.Fatal(err)
		}
	}
}

// smpquery, unchanged, with the right, a wrong and no key at each level.
func TestSmpqueryNeedsTheMKey(t *testing.T) {
	ibsimtest.Need(t, "smpquery")
	const right = "0xa5a5a5a5deadbeef"
	for _, at := range []struct {
		name  string
		route []ib.PortNum
		path  string
	}{{"HCA", []ib.PortNum{1, 2}, "0,1,2"}, {"switch", []ib.PortNum{1}, "0,1"}} {
		for level := range uint8(4) {
			f, _ := fabric(t)
			guard(t, f, 0xa5a5a5a5deadbeef, level, at.route...)
			c := simtest.Serve(t, f)
			for _, tt := range []struct {
				name    string
				key     string
				answers bool
				shown   bool
			}{
				{"right", right, true, true},
				{"wrong", "0x1", level < 2, level == 0},
				{"none", "", level < 2, level == 0},
			} {
				op := []string{"-D", "-K", "portinfo", at.path, "0"}
				if tt.key != "" {
					op = append([]string{"--m_key", tt.key}, op...)
				}
				out, err := c.Diag(t.Context(), "sm", "smpquery", op...)
				if (err == nil) != tt.answers {
					t.Errorf("%s, level %d, %s key: %v\n%s", at.name, level, tt.name, err, out)
					continue
				}
				if got := strings.Contains(string(out), right); got != tt.shown {
					t.Errorf("%s, level %d, %s key: the key is shown %v\n%s", at.name, level, tt.name, got, out)
				}
			}
		}
	}
}

// OpenSM, unchanged, locks the fabric with the key of its configuration. Then only a client with the key can read anything,
// and the keys are hidden.
func TestOpenSMLocksTheFabric(t *testing.T) {
	ibsimtest.Need(t, "opensm", "smpquery")
	for name, device := range map[string]sim.Device{"plain": {}, "modern": sim.Modern()} {
		t.Run(name, func(t *testing.T) { openSMLocks(t, device) })
	}
}

func openSMLocks(t *testing.T, device sim.Device) {
	const key = 0x1122334455667788
	f, _ := fabric(t)
	if err := f.SetDevice("", device); err != nil {
		t.Fatal(err)
	}
	ours := simtest.Serve(t, f)
	conf := ours.Dir + "/opensm.conf"
	if err := os.WriteFile(conf, []byte("m_key 0x1122334455667788\nm_key_protection_level 2\nm_key_lease_period 60\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	if _, err := ours.OpenSM(ctx, "sm", ours.Dir, "-F", conf); err != nil {
		t.Fatal(err)
	}
	for _, end := range []struct {
		node string
		port ib.PortNum
	}{{"sm", 1}, {"h1", 1}, {"h2", 1}, {"h3", 1}, {"leaf1", 0}, {"leaf2", 0}, {"spine1", 0}} {
		pi := f.PortInfo(end.node, end.port)
		if pi.MKey != ib.NewMKey(key) || pi.MKeyProtectBits != 2 || pi.MKeyLeasePeriod != 60 || pi.LID == 0 || pi.PortState != ib.PortActive {
			t.Errorf("%s port %d: key is OpenSM's %v, level %d, lease %d, LID %v, %v", end.node, end.port,
				pi.MKey == ib.NewMKey(key), pi.MKeyProtectBits, pi.MKeyLeasePeriod, pi.LID, pi.PortState)
		}
		if pi.MKeyViolations != 0 {
			t.Errorf("%s port %d: OpenSM itself violated the key %d times", end.node, end.port, pi.MKeyViolations)
		}
	}
	host := f.PortInfo("h3", 1)
	lid := host.LID.String()
	for _, tt := range []struct {
		name string
		args []string
		want string // empty: no answer
	}{
		{"right key by LID", []string{"--m_key", "0x1122334455667788", "nodeinfo", lid}, "LocalPort"},
		{"wrong key by LID", []string{"--m_key", "0x42", "nodeinfo", lid}, ""},
		{"no key, directed", []string{"-D", "nodeinfo", "0,1,2"}, ""},
		{"right key, directed", []string{"--m_key", "0x1122334455667788", "-D", "-K", "portinfo", "0,1,2", "1"}, "0x1122334455667788"},
	} {
		out, err := ours.Diag(t.Context(), "sm", "smpquery", tt.args...)
		if (err == nil) != (tt.want != "") || !strings.Contains(string(out), tt.want) {
			t.Errorf("%s: %v, want %q in\n%s", tt.name, err, tt.want, out)
		}
	}
	if got := f.PortInfo("h3", 1).MKeyViolations; got == 0 {
		t.Error("the wrong key was not counted")
	}
	// A level below, the key is hidden from clients that do not show it.
	guardedGet := func(s *sim.Station, offered uint64) mad.PortInfo {
		p := get(1, mad.AttrPortInfo, 1, 2)
		p.MAD.SetMKey(ib.NewMKey(offered))
		var pi mad.PortInfo
		if in := s.Exchange([]transport.Packet{p}, nil); len(in) != 1 || in[0].Undelivered || mad.Decode(in[0].MAD.Data(), &pi) != nil {
			t.Fatalf("%d answers", len(in))
		}
		return pi
	}
	s, err := f.Station("sm", false)
	if err != nil {
		t.Fatal(err)
	}
	pi := guardedGet(s, key)
	pi.MKeyProtectBits, pi.PortState, pi.PortPhysicalState = 1, ib.PortNop, ib.PhysNop
	p := get(2, mad.AttrPortInfo, 1, 2)
	p.MAD.SetMethod(mad.MethodSet)
	p.MAD.SetMKey(ib.NewMKey(key))
	if err := mad.Encode(p.MAD.Data(), &pi); err != nil {
		t.Fatal(err)
	}
	s.Exchange([]transport.Packet{p}, nil)
	if hidden, open := guardedGet(s, 0), guardedGet(s, key); !hidden.MKey.IsZero() || open.MKey != ib.NewMKey(key) {
		t.Errorf("level 1 shows the key to those without it: %v, and to those with it: %v", !hidden.MKey.IsZero(), !open.MKey.IsZero())
	}
	s.Close()
	out, err := ours.Diag(t.Context(), "sm", "smpquery", "-D", "-K", "portinfo", "0,1,2", "1")
	if err != nil || strings.Contains(string(out), "1122334455667788") || !strings.Contains(string(out), "0x0000000000000000") {
		t.Errorf("smpquery without the key: %v\n%s", err, out)
	}
}

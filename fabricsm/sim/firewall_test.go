package sim_test

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/hcaconf"
	"portcullis/fabricsm/transport"
)

// wall switches the firewall of h1 on and reboots it.
func wall(t testing.TB, f *sim.Fabric) {
	t.Helper()
	if err := f.ConfigureHCA("h1", hcaconf.Config{SMPFirewall: true}); err != nil {
		t.Fatal(err)
	}
	if now, next := f.HCA("h1"); now.SMPFirewall || !next.SMPFirewall {
		t.Errorf("before the reboot: %+v, next %+v", now, next)
	}
	if err := f.Reboot("h1"); err != nil {
		t.Fatal(err)
	}
}

func TestFirewall(t *testing.T) {
	f := tree(t, sim.Options{})
	wall(t, f)
	s := station(t, f, "sm", true)
	forward(t, s)
	activate(t, s)
	host := station(t, f, "h1", true)
	s.Take(nil)
	local := directed(mad.Header{Method: mad.MethodSet, Attr: mad.AttrPortInfo})
	perf := perf(1, mad.MethodGet, 0x12, 1, 0)
	for _, tt := range []struct {
		name   string
		from   *sim.Station
		packet transport.Packet
		answer bool
	}{
		{"the host asks the leaf", host, directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo}, 1), false},
		{"the host asks itself", host, directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrPortInfo}), false},
		{"the host sets its own port", host, local, false},
		{"the host asks by LID", host, toLID(1, mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo}), false},
		{"the manager asks the host's adapter", s, directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo}, 1, 2), true},
		{"the manager asks for a manager there", s, directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrSMInfo}, 1, 2), false},
		{"a GMP of the host", host, perf, true},
	} {
		if got := ask(t, tt.from, tt.packet) != nil; got != tt.answer {
			t.Errorf("%s: answered %v, want %v", tt.name, got, tt.answer)
		}
	}
	if in := host.Take(nil); len(in) != 0 {
		t.Errorf("the host was given %d packets", len(in))
	}
	host.SetIsSM(true)
	if mask := f.PortInfo("h1", 1).CapabilityMask; mask.Has(mad.IsSM) || !mask.Has(mad.IsSMDisabled) {
		t.Errorf("capabilities %v", mask)
	}
	if err := f.RogueSM("h1", &mad.SMInfo{Priority: 15}); err != nil {
		t.Fatal(err)
	}
	if ask(t, s, directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrSMInfo}, 1, 2)) != nil {
		t.Error("a rogue manager behind the firewall answers")
	}
	var forged sim.Forged
	mad.NewSMP(&forged.MAD, mad.Header{Method: mad.MethodTrap, Attr: mad.AttrNotice}, nil, ib.MKey{})
	forged.SLID, forged.DLID = 2, 1
	before := f.Stats().Barred
	if err := f.InjectMAD(sim.Endpoint{Node: "h1", Port: 1}, forged); err != nil {
		t.Fatal(err)
	}
	if got := len(s.Take(nil)); got != 0 || f.Stats().Barred != before+1 {
		t.Errorf("%d forged traps arrived, %d SMPs were barred", got, f.Stats().Barred-before)
	}
	if f.PortInfo("h1", 1).MKeyViolations != 0 {
		t.Error("what the firewall barred was counted as a violation")
	}
}

// The lock is taken and left by signed configurations alone.
func TestFirewallLock(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, stranger, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	f := tree(t, sim.Options{Device: sim.Device{Trusts: hcaconf.Ed25519Key(public)}})
	locked := hcaconf.Config{SMPFirewall: true, Locked: true}
	const h1 = ib.GUID(0x0020000000000100)
	sign := func(key ed25519.PrivateKey, m hcaconf.Message, spoil func([]byte) []byte) error {
		message := m.Encode()
		if spoil != nil {
			message = spoil(message)
		}
		return f.ApplyConfig("h1", hcaconf.Signed{Message: message, Signature: ed25519.Sign(key, message)})
	}
	if err := f.ConfigureHCA("h1", locked); err == nil {
		t.Error("the host locked its adapter by itself")
	}
	good := hcaconf.Message{Config: locked, GUID: h1, Serial: 5}
	if err := sign(private, good, nil); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		do   func() error
	}{
		{"by the host", func() error { return f.ConfigureHCA("h1", hcaconf.Config{}) }},
		{"signed by a stranger", func() error { return sign(stranger, hcaconf.Message{GUID: h1, Serial: 6}, nil) }},
		{"for another adapter", func() error { return sign(private, hcaconf.Message{GUID: h1 + 1, Serial: 6}, nil) }},
		{"the one before", func() error { return sign(private, good, nil) }},
		{"an older one", func() error { return sign(private, hcaconf.Message{GUID: h1, Serial: 4}, nil) }},
		{"cut off", func() error {
			return sign(private, hcaconf.Message{GUID: h1, Serial: 6}, func(b []byte) []byte { return b[:27] })
		}},
		{"with a flag that nobody knows", func() error {
			return sign(private, hcaconf.Message{GUID: h1, Serial: 6}, func(b []byte) []byte { b[8] |= 0x80; return b })
		}},
		{"with something in its gaps", func() error {
			return sign(private, hcaconf.Message{GUID: h1, Serial: 6}, func(b []byte) []byte { b[10] = 1; return b })
		}},
		{"altered after signing", func() error {
			m := hcaconf.Message{GUID: h1, Serial: 6}.Encode()
			signature := ed25519.Sign(private, m)
			m[configSerial]++
			return f.ApplyConfig("h1", hcaconf.Signed{Message: m, Signature: signature})
		}},
		{"of a switch", func() error { return f.ConfigureHCA("leaf1", hcaconf.Config{}) }},
	} {
		if err := tt.do(); err == nil {
			t.Errorf("%s: taken", tt.name)
		}
		if _, next := f.HCA("h1"); next != locked {
			t.Errorf("%s: settings are now %+v", tt.name, next)
		}
	}
	if err := f.ConfigureHCA("h1", hcaconf.Config{}); !errors.Is(err, hcaconf.ErrLocked) {
		t.Errorf("the host is told %v", err)
	}
	for range 2 { // it survives
		if err := f.Reboot("h1"); err != nil {
			t.Fatal(err)
		}
		if now, _ := f.HCA("h1"); now != locked {
			t.Errorf("after a reboot: %+v", now)
		}
	}
	if err := sign(private, hcaconf.Message{Serial: 6}, nil); err != nil {
		t.Fatal(err)
	}
	if err := f.Reboot("h1"); err != nil {
		t.Fatal(err)
	}
	if now, _ := f.HCA("h1"); now != (hcaconf.Config{}) {
		t.Errorf("after it was opened: %+v", now)
	}
	if err := f.SetDevice("h1", sim.Device{}); err != nil {
		t.Fatal(err)
	}
	if err := sign(private, hcaconf.Message{Serial: 7}, nil); err == nil {
		t.Error("an adapter that trusts nobody took a configuration")
	}
}

const configSerial = 27 // the last byte of the serial number

func TestRSAKey(t *testing.T) {
	t.Parallel()
	for _, bits := range []int{2048, 4096} {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			t.Fatal(err)
		}
		message := hcaconf.Message{Config: hcaconf.Config{SMPFirewall: true}, Serial: 1}.Encode()
		hash, digest := crypto.SHA256, sha256.Sum256(message)
		sum := digest[:]
		if bits == 4096 {
			long := sha512.Sum512(message)
			hash, sum = crypto.SHA512, long[:]
		}
		signature, err := rsa.SignPKCS1v15(rand.Reader, key, hash, sum)
		if err != nil {
			t.Fatal(err)
		}
		f := tree(t, sim.Options{Device: sim.Device{Trusts: hcaconf.RSAKey{Public: &key.PublicKey}}})
		signature[3] ^= 1
		if err := f.ApplyConfig("h1", hcaconf.Signed{Message: message, Signature: signature}); err == nil {
			t.Errorf("%d bits: a bad signature was taken", bits)
		}
		signature[3] ^= 1
		if err := f.ApplyConfig("h1", hcaconf.Signed{Message: message, Signature: signature}); err != nil {
			t.Errorf("%d bits: %v", bits, err)
		}
	}
}

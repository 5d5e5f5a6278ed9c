package trust_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/trust"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	first  = 0x4f1d22a8c3e9b705
	second = 0x9c03fe77d1528ab4
	third  = 0x61b8e0945d2fa73c

	hostGUID  ib.GUID = 0x0002c90300a1b2c3
	aliasGUID ib.GUID = 0x1400a1b2c3000001
	otherGUID ib.GUID = 0x0002c90300ffee00

	foreign ib.Prefix = 0xfec0_0000_0000_0001
)

// host is an end port with one alias.
func host() *portindex.EndPort {
	return &portindex.EndPort{Port: 5, GUID: hostGUID, Aliases: []ib.GUID{aliasGUID}, LID: 7}
}

func held(epoch keys.Epoch, bits uint64, since time.Time) keys.Held {
	return keys.Held{Key: keys.New(bits), Epoch: epoch, Origin: keys.OriginRandom, Since: since}
}

// newGuard returns a guard whose current key is second, with first before it for a minute.
func newGuard(t testing.TB, opts trust.Options) *trust.Guard {
	t.Helper()
	k, err := trust.NewKeys(trust.KeyState{})
	if err != nil {
		t.Fatal(err)
	}
	for i, bits := range []uint64{first, second} {
		if err := k.Rotate(start, held(keys.Epoch(i+1), bits, start), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	g, err := trust.NewGuard(opts, ib.DefaultPrefix+1, k)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func request(attr mad.AttrID, method mad.Method, key uint64) *mad.MAD {
	m := new(mad.MAD)
	m.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: method, Attr: attr, TID: 9})
	m.SetSAKey(ib.NewSAKey(key))
	return m
}

func TestCheck(t *testing.T) {
	path := func(key uint64) *mad.MAD { return request(mad.AttrPathRecord, mad.MethodGet, key) }
	for _, tt := range []struct {
		name string
		opts func(*trust.Options)
		m    *mad.MAD
		grh  bool
		sgid ib.GID
		from trust.Source
		at   time.Duration
		want trust.Verdict
		as   ib.GUID
	}{
		{name: "untrusted", m: path(0), want: trust.OK},
		{name: "trusted", m: path(second), want: trust.OK},
		{name: "the key before", m: path(first), want: trust.OK},
		{name: "the key before, after its grace", m: path(first), at: time.Minute, want: trust.RetiredKey},
		{name: "another key", m: path(1), want: trust.WrongKey},
		{name: "an answer", m: request(mad.AttrPathRecord, mad.MethodGetResp, 0), want: trust.BadHeader},
		{name: "nobody has the LID", m: path(second), from: trust.Source{Router: true}, want: trust.UnknownSource},
		{name: "own GID", m: path(0), sgid: ib.MakeGID(ib.DefaultPrefix, hostGUID), want: trust.OK, as: hostGUID},
		{name: "own GID of the subnet", m: path(0), sgid: ib.MakeGID(ib.DefaultPrefix+1, hostGUID), want: trust.OK, as: hostGUID},
		{name: "alias", m: path(0), sgid: ib.MakeGID(ib.DefaultPrefix, aliasGUID), want: trust.OK, as: aliasGUID},
		{name: "another's GID", m: path(0), sgid: ib.MakeGID(ib.DefaultPrefix, otherGUID), want: trust.SpoofedSGID},
		{name: "another's GID, and the key", m: path(second), sgid: ib.MakeGID(ib.DefaultPrefix, otherGUID), want: trust.SpoofedSGID},
		{name: "no GID in a GRH", m: path(0), grh: true, want: trust.SpoofedSGID},
		{name: "foreign subnet", m: path(0), sgid: ib.MakeGID(foreign, hostGUID), want: trust.SpoofedSGID},
		{name: "foreign subnet, by a router", m: path(0), sgid: ib.MakeGID(foreign, otherGUID), from: trust.Source{Port: host(), Router: true}, want: trust.OK},
		{name: "another's GID, unchecked", opts: func(o *trust.Options) { o.CheckSGID = false }, m: path(0), sgid: ib.MakeGID(ib.DefaultPrefix, otherGUID), want: trust.OK, as: hostGUID},
		{name: "the key from elsewhere", opts: func(o *trust.Options) { o.TrustedSources = []ib.GUID{otherGUID} }, m: path(second), want: trust.KeyElsewhere},
		{name: "the key from where it may be", opts: func(o *trust.Options) { o.TrustedSources = []ib.GUID{hostGUID} }, m: path(second), want: trust.OK},
		{name: "the key from an alias of that", opts: func(o *trust.Options) { o.TrustedSources = []ib.GUID{hostGUID} }, m: path(second), sgid: ib.MakeGID(ib.DefaultPrefix, aliasGUID), want: trust.KeyElsewhere},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opts := trust.DefaultOptions()
			if tt.opts != nil {
				tt.opts(&opts)
			}
			if tt.from == (trust.Source{}) {
				tt.from.Port = host()
			}
			key := tt.m.SAKeyBits()
			a, v := newGuard(t, opts).Check(start.Add(tt.at), &trust.Packet{MAD: tt.m, LID: 7, QP: 1, GRH: tt.sgid != (ib.GID{}) || tt.grh, SGID: tt.sgid}, tt.from)
			if v != tt.want {
				t.Fatalf("verdict %v, want %v", v, tt.want)
			}
			if tt.as != 0 && a.As != tt.as {
				t.Errorf("asked as %v, want %v", a.As, tt.as)
			}
			if a.Trusted != (v == trust.OK && key != 0) {
				t.Errorf("trusted %v", a.Trusted)
			}
		})
	}
}

func TestCheckAllocatesNothing(t *testing.T) {
	opts := trust.DefaultOptions()
	opts.Threshold = 5
	g, e := newGuard(t, opts), host()
	now := start
	for _, key := range []uint64{0, second, first, third} {
		p := &trust.Packet{MAD: request(mad.AttrPathRecord, mad.MethodGet, key), LID: 7}
		if got := testing.AllocsPerRun(1000, func() {
			now = now.Add(time.Millisecond)
			g.Check(now, p, trust.Source{Port: e})
		}); got != 0 {
			t.Errorf("key %x: %v allocations, want none", key, got)
		}
	}
}

// FuzzCheck checks arbitrary MADs. Nothing panics, and no request without the key is trusted. Under the enhanced trust
// model an accepted untrusted request has one of five attributes.
func FuzzCheck(f *testing.F) {
	for _, m := range []*mad.MAD{
		request(mad.AttrPathRecord, mad.MethodGetTable, second), request(mad.AttrInformInfo, mad.MethodSet, 0),
		request(mad.AttrGUIDInfoRecord, mad.MethodDelete, first), request(mad.AttrNodeRecord, mad.MethodGetTable, third),
	} {
		f.Add(m[:], []byte{})
	}
	g := newGuard(f, trust.DefaultOptions())
	f.Fuzz(func(t *testing.T, data, gid []byte) {
		var m mad.MAD
		copy(m[:], data)
		p := &trust.Packet{MAD: &m, LID: 7}
		copy(p.SGID[:], gid)
		p.GRH = p.SGID != (ib.GID{})
		a, v := g.Check(start, p, trust.Source{Port: host()})
		if v != trust.OK {
			return
		}
		right := m.SAKeyBits() == second || m.SAKeyBits() == first
		if a.Trusted != right || m.Class() != mad.ClassSubnAdm || m.IsResponse() {
			t.Fatalf("%x: trusted %v", m, a.Trusted)
		}
		if a.As != hostGUID && a.As != aliasGUID || p.SGID != (ib.GID{}) && p.SGID.GUID() != a.As {
			t.Fatalf("GID %v asked as %v", p.SGID, a.As)
		}
		switch m.Attr() {
		case mad.AttrPathRecord, mad.AttrMCMemberRecord, mad.AttrServiceRecord, mad.AttrClassPortInfo, mad.AttrInformInfo:
		default:
			if !right {
				t.Fatalf("attribute 0x%04x goes on without a key", uint16(m.Attr()))
			}
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	g, e := newGuard(b, trust.DefaultOptions()), host()
	for _, bb := range []struct {
		name string
		key  uint64
	}{{"untrusted", 0}, {"trusted", second}, {"wrong key", third}} {
		b.Run(bb.name, func(b *testing.B) {
			p := &trust.Packet{MAD: request(mad.AttrPathRecord, mad.MethodGet, bb.key), LID: 7, GRH: true, SGID: ib.MakeGID(ib.DefaultPrefix, hostGUID)}
			b.ReportAllocs()
			for range b.N {
				g.Check(start, p, trust.Source{Port: e})
			}
		})
	}
}

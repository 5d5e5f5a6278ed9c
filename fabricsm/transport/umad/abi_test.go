package umad

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// unhex reads bytes written with spaces, on a little-endian machine.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// answer is the MAD that answers a request.
func answer(p transport.Packet) transport.Packet {
	p.MAD.Respond(0)
	return p
}

func TestEncode(t *testing.T) {
	gmp := transport.Packet{LID: 0x1234, QP: 1}
	gmp.MAD.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: 2, Method: mad.MethodGet})
	far := gmp
	far.SL, far.PathBits, far.PKeyIndex = 3, 5, 0x0102
	far.GRH = transport.GRH{
		Present: true, GIDIndex: 2, HopLimit: 64, TrafficClass: 9, FlowLabel: 0xABCDE,
		GID: ib.MakeGID(ib.DefaultPrefix, 0x0020000000000101),
	}
	smp := get(7, mad.AttrNodeInfo, 1)
	for _, tt := range []struct {
		name   string
		form   form
		packet transport.Packet
		want   string
	}{
		{
			"SMP, long header", form64, smp, `
			03000000 00000000 c8000000 00000000 00000000
			00000000 00000000 ffff 00 00
			00 00 00 00 00000000000000000000000000000000 00000000
			0000 000000000000`,
		},
		{
			"SMP, short header", form56, smp, `
			03000000 00000000 c8000000 00000000 00000000
			00000000 00000000 ffff 00 00
			00 00 00 00 00000000000000000000000000000000 00000000`,
		},
		{
			"answers are not waited for", form56, answer(smp), `
			03000000 00000000 00000000 00000000 00000000
			00000000 00000000 ffff 00 00
			00 00 00 00 00000000000000000000000000000000 00000000`,
		},
		{
			"GMP", form64, gmp, `
			03000000 00000000 c8000000 00000000 00000000
			00000001 80010000 1234 00 00
			00 00 00 00 00000000000000000000000000000000 00000000
			0000 000000000000`,
		},
		{
			"GMP with all addresses", form64, far, `
			03000000 00000000 c8000000 00000000 00000000
			00000001 80010000 1234 03 05
			01 02 40 09 fe800000000000000020000000000101 000abcde
			0201 000000000000`,
		},
		{
			"the same, short header", form56, far, `
			03000000 00000000 c8000000 00000000 00000000
			00000001 80010000 1234 03 05
			01 02 40 09 fe800000000000000020000000000101 000abcde`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := bytes.Repeat([]byte{0xEE}, int(form64)+mad.Size)
			n := tt.form.encode(b, 3, 200*time.Millisecond, &tt.packet)
			want := append(unhex(t, tt.want), tt.packet.MAD[:]...)
			if diff := cmp.Diff(hex.Dump(b[:n]), hex.Dump(want)); diff != "" {
				t.Errorf("got-, want+\n%s", diff)
			}
		})
	}
}

// arrived returns the bytes that a read of the kernel device returns.
func arrived(f form, status uint32, lid ib.LID, qp byte, body []byte) []byte {
	b := make([]byte, f, int(f)+len(body))
	b[offStatus] = byte(status)
	b[16] = byte(int(f) + len(body))
	b[17] = byte((int(f) + len(body)) >> 8)
	b[offQP+3] = qp
	b[offLID], b[offLID+1] = byte(lid>>8), byte(lid)
	return append(b, body...)
}

func TestDecode(t *testing.T) {
	ask := get(0xAAAAAAAA_00000007, mad.AttrNodeInfo, 1)
	said := answer(ask)
	short := make([]byte, mad.Size)
	copy(short, ask.MAD[:mad.HeaderSize])
	for _, tt := range []struct {
		name   string
		status uint32
		body   []byte
		want   transport.Packet
	}{
		{"request of somebody else", 0, ask.MAD[:], transport.Packet{MAD: ask.MAD}},
		{"answer", 0, said.MAD[:], transport.Packet{MAD: withTID(said.MAD, 7)}},
		{"timeout", statusTimeout, ask.MAD[:mad.HeaderSize], transport.Packet{MAD: withTID(mad.MAD(short), 7), Undelivered: true}},
		{"timeout with all of the MAD", statusTimeout, ask.MAD[:], transport.Packet{MAD: withTID(ask.MAD, 7), Undelivered: true}},
	} {
		for _, f := range []form{form56, form64} {
			t.Run(tt.name, func(t *testing.T) {
				tt.want.LID, tt.want.QP = 0x1234, 1
				got := transport.Packet{LID: 1, QP: 9, Undelivered: true}
				got.MAD[200] = 0xEE // of a packet received before
				if !f.decode(arrived(f, tt.status, 0x1234, 1, tt.body), &got) {
					t.Fatal("not a packet")
				}
				if diff := cmp.Diff(got, tt.want); diff != "" {
					t.Errorf("got-, want+\n%s", diff)
				}
			})
		}
	}
}

// The header of a request has all fields that an answer needs: sent back, the packet goes to the sender of the request.
func TestDecodeAddresses(t *testing.T) {
	want := transport.Packet{LID: 0x1234, QP: 1, SL: 3, PathBits: 5, PKeyIndex: 0x0102}
	want.MAD.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: 2, Method: mad.MethodGet, TID: 1 << 40})
	for _, grh := range []transport.GRH{
		{},
		{Present: true, GIDIndex: 2, HopLimit: 255, TrafficClass: 9, FlowLabel: 0xABCDE, GID: ib.MakeGID(ib.DefaultPrefix, 7)},
	} {
		for _, f := range []form{form56, form64} {
			want := want
			if want.GRH = grh; f == form56 {
				want.PKeyIndex = 0
			}
			b := make([]byte, int(form64)+mad.Size)
			b = b[:f.encode(b, 3, 0, &want)]
			got := transport.Packet{SL: 9, PathBits: 9, PKeyIndex: 9, GRH: transport.GRH{Present: true, GID: ib.GID{1}}} // of one before
			if !f.decode(b, &got) {
				t.Fatal("not a packet")
			}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("header of %d bytes: got-, want+\n%s", f, diff)
			}
		}
	}
}

func withTID(m mad.MAD, tid ib.TID) mad.MAD {
	m.SetTID(tid)
	return m
}

func TestDecodeRefuses(t *testing.T) {
	m := get(7, mad.AttrNodeInfo).MAD
	for _, f := range []form{form56, form64} {
		good := arrived(f, 0, 1, 0, m[:])
		for n := range len(good) {
			if f.decode(good[:n], &transport.Packet{}) {
				t.Errorf("header of %d bytes: %d of %d bytes are a packet", f, n, len(good))
			}
		}
		if f.decode(append(good, 0), &transport.Packet{}) {
			t.Errorf("header of %d bytes: a MAD of 257 bytes is a packet", f)
		}
		if f.decode(arrived(f, 5, 1, 0, m[:]), &transport.Packet{}) {
			t.Errorf("header of %d bytes: status 5 is a packet", f)
		}
	}
}

func FuzzDecode(f *testing.F) {
	m := get(7, mad.AttrNodeInfo).MAD
	f.Add(arrived(form64, 0, 1, 0, m[:]), true)
	f.Add(arrived(form56, statusTimeout, 1, 0, m[:mad.HeaderSize]), false)
	f.Fuzz(func(t *testing.T, b []byte, long bool) {
		h := form56
		if long {
			h = form64
		}
		var p transport.Packet
		if !h.decode(b, &p) {
			return
		}
		if body := b[h:]; !bytes.Equal(p.MAD[:8], body[:8]) || !p.Undelivered && len(body) != mad.Size {
			t.Errorf("MAD of % x is % x", body, p.MAD)
		}
		if (p.Undelivered || p.MAD.IsResponse()) && p.MAD.TID()>>32 != 0 {
			t.Errorf("TID %v", p.MAD.TID())
		}
	})
}

// TestIoctlNumbers builds the numbers as the kernel's macros do.
func TestIoctlNumbers(t *testing.T) {
	const write, read = 1, 2
	number := func(direction, size, n uint32) uint32 { return direction<<30 | size<<16 | 0x1B<<8 | n }
	for _, tt := range []struct {
		name      string
		got, want uint32
	}{
		{"REGISTER_AGENT", ioctlRegister, number(read|write, registrationSize, 1)},
		{"ENABLE_PKEY", ioctlEnablePKey, number(0, 0, 3)},
		{"REGISTER_AGENT2", ioctlRegister2, number(read|write, registration2Size, 4)},
	} {
		if tt.got != tt.want {
			t.Errorf("%s is %#x, want %#x", tt.name, tt.got, tt.want)
		}
	}
}

func TestRegistrationBytes(t *testing.T) {
	sm := subnetAgents(true)[0]
	sa := Agent{Class: mad.ClassSubnAdm, Version: 2, Methods: []mad.Method{mad.MethodGet, 0x7F}, RMPP: true}
	lane := saAgent()
	for _, tt := range []struct {
		name          string
		agent         Agent
		first, second string
	}{
		{
			"subnet manager", sm,
			`00000000 a6000000 00000000 00000000 00000000 00 81 01 000000 00 00`,
			`00000000 00000000 81 01 0000 00000000 a600000000000000 0000000000000000 00000000 00 000000`,
		},
		{
			"only our answers", subnetAgents(false)[1],
			`00000000 00000000 00000000 00000000 00000000 00 01 01 000000 00 00`,
			`00000000 00000000 01 01 0000 00000000 0000000000000000 0000000000000000 00000000 00 000000`,
		},
		{
			"the lane of subnet administration", lane,
			`00000000 06003c00 00000000 00000000 00000000 01 03 02 000000 00 00`,
			`00000000 01000000 03 02 0000 01000000 06003c0000000000 0000000000000000 00000000 01 000000`,
		},
		{
			"bits of high methods", sa,
			`00000000 02000000 00000000 00000000 00000080 01 03 02 000000 00 00`,
			`00000000 01000000 03 02 0000 01000000 0200000000000000 0000000000000080 00000000 01 000000`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			first, second := registration(tt.agent), registration2(tt.agent)
			if diff := cmp.Diff(first[:], unhex(t, tt.first)); diff != "" {
				t.Errorf("REGISTER_AGENT: got-, want+\n%s", diff)
			}
			if diff := cmp.Diff(second[:], unhex(t, tt.second)); diff != "" {
				t.Errorf("REGISTER_AGENT2: got-, want+\n%s", diff)
			}
		})
	}
}

package ibsim

import (
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/transport"
)

// The exact bytes of a CONNECT: words in the order of the machine that both ends
// run on, then a name.
func TestConnectBytes(t *testing.T) {
	c := control{typ: ctlConnect, length: clientInfoSize}
	(&clientInfo{number: 0x01020304, asSM: true, node: "h7"}).encode(&c.data)
	want := []byte{}
	for _, word := range []uint32{
		0xDEADBEEF, // magic
		0,          // client
		1,          // CONNECT
		44,         // length
		0x01020304, // our number
		0,          // queue pair
		1,          // as SM
	} {
		want = binary.NativeEndian.AppendUint32(want, word)
	}
	want = append(want, "h7"...)
	want = append(want, make([]byte, 80-len(want))...)
	if diff := cmp.Diff(c.encode(), want); diff != "" {
		t.Errorf("got-, want+\n%s", diff)
	}
}

func TestFrameHeaderBytes(t *testing.T) {
	for _, tt := range []struct {
		name string
		p    transport.Packet
		fill func(*frameHeader, *transport.Packet)
		want frameHeader
	}{
		{
			"by LID, to QP1",
			transport.Packet{LID: 0x1234, QP: 1},
			(*frameHeader).outgoing,
			frameHeader{0: 0x12, 1: 0x34, 11: 1, 15: 1, 30: 1},
		},
		{
			"directed route",
			transport.Packet{LID: ib.PermissiveLID},
			(*frameHeader).outgoing,
			frameHeader{0: 0xFF, 1: 0xFF, 4: 0xFF, 5: 0xFF, 30: 1},
		},
		{
			"to a client",
			transport.Packet{LID: 0x1234, QP: 1},
			(*frameHeader).toClient,
			frameHeader{4: 0x12, 5: 0x34, 11: 1, 15: 1, 30: 1},
		},
		{
			"undelivered",
			transport.Packet{LID: 7, Undelivered: true},
			(*frameHeader).toClient,
			frameHeader{5: 7, 19: 110, 30: 1},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := frameHeader{31: 0xEE}
			tt.fill(&got, &tt.p)
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("got-, want+\n%s", diff)
			}
		})
	}
	var p transport.Packet
	(&frameHeader{5: 7, 15: 1, 19: 110}).received(&p)
	if p.LID != 7 || p.QP != 1 || !p.Undelivered {
		t.Errorf("received: LID %v, QP %d, undelivered %v", p.LID, p.QP, p.Undelivered)
	}
}

func FuzzControl(f *testing.F) {
	c := control{typ: ctlConnect, length: clientInfoSize}
	(&clientInfo{number: 5, asSM: true, node: "0123456789012345678901234567890123456789"}).encode(&c.data)
	f.Add(c.encode())
	f.Add(make([]byte, ctlSize))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, ok := decodeControl(b)
		if !ok {
			return
		}
		if diff := cmp.Diff(c.encode(), b); diff != "" {
			t.Errorf("got-, want+\n%s", diff)
		}
		if info := decodeClientInfo(&c.data); len(info.node) > nodeIDSize {
			t.Errorf("node of %d bytes", len(info.node))
		}
		_ = c.typ.String()
	})
}

package mad

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
)

// gidA and gidB show on the wire as 16 telling bytes each.
var (
	gidA = ib.GID{0xFE, 0x80, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xA0}
	gidB = ib.GID{0xFE, 0x80, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xB0}

	hexA = "fe80 02030405060708090a0b0c0d0ea0"
	hexB = "fe80 02030405060708090a0b0c0d0eb0"
)

func security(t TrapNum) NoticeHeader {
	return NoticeHeader{IsGeneric: true, Type: NoticeSecurity, ProducerType: ProducerSwitch, TrapNumber: t, IssuerLID: 0x0304, Toggle: true, Count: 0x0506}
}

// TestTrapBytes: no program of the lab sends these notices, so the bytes are set by hand after the tables of IBTA volume 1,
// 14.2.5.1, not captured.
func TestTrapBytes(t *testing.T) {
	head := func(num string) string { return "82 000002 " + num + " 0304 8506 " }
	var path [30]ib.PortNum
	path[1], path[2], path[29] = 7, 8, 0xEE
	tests := []struct {
		name string
		v    any
		want string // missing bytes at the end are zero
	}{
		{"64", &Trap64{NoticeHeader: security(64), GID: gidA}, head("0040") + "000000000000" + hexA},
		{"67", &Trap64{NoticeHeader: security(67), GID: gidB}, head("0043") + "000000000000" + hexB},
		{"128", &Trap128{NoticeHeader: security(128), SwitchLID: 0xABCD}, head("0080") + "abcd"},
		{"129", &Trap129{NoticeHeader: security(129), LID: 0xABCD, PortNum: 0x21}, head("0081") + "0000 abcd 21"},
		{"144", &Trap144{
			NoticeHeader: security(144), LID: 0xABCD, OtherLocalChanges: true, NewCapabilityMask: 0x01020304,
			ChangeFlags: SMPriorityChanged | NodeDescriptionChanged, NewCapabilityMask2: 0x0506,
		}, head("0090") + "0000 abcd 0001 01020304 0009 0506"},
		{"145", &Trap145{NoticeHeader: security(145), LID: 0xABCD, NewSystemImageGUID: 0x0102030405060708}, head("0091") + "0000 abcd 0000 0102030405060708"},
		{
			"256", &Trap256{
				NoticeHeader: security(256), LID: 0xABCD, DrSLID: 0xFFFF, Method: MethodSet, AttributeID: AttrPortInfo,
				AttributeModifier: 0x01020304, MKey: ib.NewMKey(0x1112131415161718), DRNotice: true, DRPathTruncated: true, DRHopCount: 0x2A, DRReturnPath: path,
			},
			head("0100") + "0000 abcd ffff 02 00 0015 01020304 1112131415161718 00 ea 00 07 08" + strings.Repeat("00", 26) + "ee",
		},
		{"257", &Trap257{
			NoticeHeader: security(257), LIDADDR1: 0x1112, LIDADDR2: 0x2122, Key: 0x00008001, SL: 5, QP1: 0x010203, QP2: 0x040506,
			GIDADDR1: gidA, GIDADDR2: gidB,
		}, head("0101") + "0000 1112 2122 00008001 50 010203 00 040506" + hexA + hexB},
		{"258", &Trap257{NoticeHeader: security(258), Key: 0x80010000, SL: 15, QP2: 0xFFFFFF}, head("0102") + "0000 0000 0000 80010000 f0 000000 00 ffffff"},
		{
			"259", &Trap259{
				NoticeHeader: security(259), DataValid: 0x00FF, LIDADDR1: 0x1112, LIDADDR2: 0x2122, PKey: 0x8001, SL: 5, QP1: 0x010203,
				QP2: 0x040506, GIDADDR1: gidA, GIDADDR2: gidB, SwitchLID: 0xABCD, PortNum: 0x21,
			},
			head("0103") + "00ff 1112 2122 8001 50 010203 00 040506" + hexA + hexB + "abcd 21",
		},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			want, err := ParseHex([]byte(c.want))
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, make([]byte, DataSize-len(want))...)
			var n Notice
			if err := Decode(want, &n); err != nil {
				t.Fatal(err)
			}
			l := n.Layout() // found by the trap number
			got := bytes.Repeat([]byte{0xFF}, DataSize)
			if err := l.Encode(got, c.v); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("encoded (-want +got):\n%s", d)
			}
			back, err := l.Decode(want)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.v, back); d != "" {
				t.Errorf("decoded (-want +got):\n%s", d)
			}
		})
	}
}

func TestNoticeLayout(t *testing.T) {
	vendor := func(number uint16) Notice {
		n := Notice{NoticeHeader: NoticeHeader{ProducerType: OUINVIDIA}}
		n.DataDetails[52], n.DataDetails[53] = byte(number>>8), byte(number)
		return n
	}
	generic := func(t TrapNum) Notice { return Notice{NoticeHeader: security(t)} }
	tests := []struct {
		name string
		n    Notice
		want string
	}{
		{"65", generic(65), "Trap64"},
		{"66", generic(66), "Trap64"},
		{"130", generic(130), "Trap129"},
		{"131", generic(131), "Trap129"},
		{"unknown generic", generic(9999), "Notice"},
		{"1144", vendor(1144), "Notice1144"},
		{"1258", vendor(1258), "Notice1257"},
		{"1305", vendor(1305), "Notice1303"},
		{"1307", vendor(1307), "Notice1306"},
		{"1316", vendor(1316), "Notice1316"},
		{"1601", vendor(1601), "Notice1601"},
		{"unknown vendor notice", vendor(1600), "Notice"},
		{"other vendor", Notice{NoticeHeader: NoticeHeader{ProducerType: 0x001175, TrapNumber: 256}}, "Notice"},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			if got := c.n.Layout().Name(); got != c.want {
				t.Errorf("layout %s, want %s", got, c.want)
			}
		})
	}
}

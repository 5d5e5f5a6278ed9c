package register

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
)

func digits(p []byte) string { return hex.EncodeToString(p) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestAccessBytes(t *testing.T) {
	lock := must(Encode(MLOCK{State: Locked, Key: ib.NewLockKey(0x1122334455667788)}))
	a := Access{ID: IDMLOCK, Method: Write, Data: lock}
	const want = "080500000000" + "0000" + "0000402d" + "00000000" + "00000001" + "00000000" + "1122334455667788"
	if got := digits(a.Encode()); got != want {
		t.Errorf("MLOCK write:\n%s, want\n%s", got, want)
	}
	back, err := DecodeAccess(a.Encode())
	if diff := cmp.Diff(a, back); err != nil || diff != "" {
		t.Errorf("read back: %v\n%s", err, diff)
	}
	if a.Method = Read; digits(a.Encode()[:HeaderSize]) != "08050000000000010000402d00000000" {
		t.Errorf("MLOCK read: %s", digits(a.Encode()))
	}
	for n := range HeaderSize {
		if _, err := DecodeAccess(a.Encode()[:n]); !errors.Is(err, ErrShort) {
			t.Errorf("%d bytes: %v, want too few", n, err)
		}
	}
	if _, err := DecodeAccess(VportQuery{Opcode: QueryHCAVportContext}.Encode()); err == nil {
		t.Error("a query of a vport is taken for access to a register")
	}
}

func TestAnswer(t *testing.T) {
	a := Answer{Status: BadParameter, Syndrome: 0x12345678, Data: []byte{1, 2}}
	const want = "03000000" + "12345678" + "0000000000000000" + "0102"
	if got := digits(a.Encode()); got != want {
		t.Errorf("answer %s, want %s", got, want)
	}
	back, err := DecodeAnswer(a.Encode())
	if diff := cmp.Diff(a, back); err != nil || diff != "" {
		t.Errorf("read back: %v\n%s", err, diff)
	}
	if _, err := DecodeAnswer(a.Encode()[:15]); !errors.Is(err, ErrShort) {
		t.Errorf("a short answer: %v", err)
	}
	err = fmt.Errorf("set SM_DISABLE: %w", back.Err("MNVDA write"))
	if !errors.Is(err, ErrBadParameter) || errors.Is(err, ErrBusy) {
		t.Errorf("%v is not what it is", err)
	}
	if want := "set SM_DISABLE: MNVDA write: the firmware answers: bad parameter (syndrome 0x12345678)"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	if err := (Answer{}).Err("MGIR read"); err != nil {
		t.Error(err)
	}
}

func TestVportBytes(t *testing.T) {
	q := VportQuery{Opcode: QueryHCAVportPKey, Vport: Vport{Port: 2}, Index: WholeTable}
	if got, want := digits(q.Encode()), "0765000000000000"+"00020000"+"0000ffff"; got != want {
		t.Errorf("query %s, want %s", got, want)
	}
	other := VportQuery{Opcode: QueryHCAVportContext, Vport: Vport{Other: true, Port: 1, Vport: 3}}
	if got, want := digits(other.Encode()), "0762000000000000"+"80010003"+"00000000"; got != want {
		t.Errorf("query %s, want %s", got, want)
	}
	for _, q := range []VportQuery{q, other} {
		if back, err := DecodeVportQuery(q.Encode()); err != nil || back != q {
			t.Errorf("read back %+v, %v", back, err)
		}
	}
	if _, err := DecodeVportQuery(Access{ID: IDMGIR}.Encode()); err == nil {
		t.Error("access to a register is taken for a query of a vport")
	}
	c := must(Encode(VportContext{HasSMI: true, PortState: 4, PortGUID: 0x99, NodeGUID: 0x77, LID: 5, SMLID: 1}))
	if got, want := digits(c[0x20:0x40]), "40000040"+"00000000"+"0000000000000000"+"0000000000000099"+"0000000000000077"; got != want {
		t.Errorf("context %s, want %s", got, want)
	}
	if got := digits(c[0x60:0x68]); got != "0005000000010000" {
		t.Errorf("LIDs %s", got)
	}
}

func TestPKeys(t *testing.T) {
	table := []ib.PKey{0xFFFF, 0x8123, 0}
	p := EncodePKeys(table)
	if got := digits(p); got != "0000ffff"+"00008123"+"00000000" || len(p) != PKeyRoom(3) {
		t.Errorf("table %s", got)
	}
	back, err := DecodePKeys(p)
	if diff := cmp.Diff(table, back); diff != "" || err != nil {
		t.Errorf("read back: %v\n%s", err, diff)
	}
	for _, n := range []int{1, 3, 5, PKeyRoom(MaxPKeys) + 4} {
		if _, err := DecodePKeys(make([]byte, n)); err == nil {
			t.Errorf("a table of %d bytes is read", n)
		}
	}
}

func TestBlock(t *testing.T) {
	m := NewMCDA(0x123456, 128, []byte("MLNX.C"))
	p := must(Encode(m))
	if got, want := digits(p[:0x18]), "00123456"+"00000080"+"00000006"+"00000000"+hex.EncodeToString([]byte("XNLM\x00\x00C.")); got != want {
		t.Errorf("MCDA %s, want %s", got, want)
	}
	block, ok := must(Decode[MCDA](p)).Block()
	if !ok || string(block) != "MLNX.C" {
		t.Errorf("block %q, %v", block, ok)
	}
	if long := NewMCDA(0, 0, make([]byte, 200)); long.Length != BlockSize {
		t.Errorf("a block has %d bytes", long.Length)
	}
	if _, ok := (MCDA{Length: 129}).Block(); ok {
		t.Error("a block of more bytes than there are is read")
	}
}

func TestMCAM(t *testing.T) {
	m := MCAM{Group: 0}
	for _, id := range []ID{IDMGIR, IDMCQS, IDMQIS, IDMFSV, IDMLOCK} {
		m.Set(id)
	}
	if want := [4]uint32{0x11, 0, 1, 0}; m.Registers != want {
		t.Errorf("mask %08x, want %08x", m.Registers, want)
	}
	for id, want := range map[ID]bool{IDMGIR: true, IDMCQS: true, IDMQIS: true, IDMCC: false, IDMFSV: false, IDMLOCK: false} {
		if m.Has(id) != want {
			t.Errorf("%v: %v, want %v", id, m.Has(id), want)
		}
	}
	m.SetFeature(FeatureChallengeTokens)
	if want := [4]uint32{0, 0, 1 << 17, 0}; m.Features != want || !m.HasFeature(FeatureChallengeTokens) || m.HasFeature(FeatureCSToken) {
		t.Errorf("features %08x, want %08x", m.Features, want)
	}
	group, ok := GroupOf(IDMFSV)
	if group != 2 || !ok {
		t.Errorf("MFSV is in group %d, %v", group, ok)
	}
	if _, ok := GroupOf(IDMLOCK); ok {
		t.Error("MLOCK is in a group")
	}
}

func TestLifeCycle(t *testing.T) {
	p := make([]byte, MGIR{}.Size())
	p[0x20+0x37] = 0x04 | 0x01 | 0x10 // secure boot, low part 1, top part 1
	m := must(Decode[MGIR](p))
	if !m.Firmware.SecureBoot || m.Firmware.LifeCycle() != 5 || m.Firmware.LifeCycleLow != GASecured {
		t.Errorf("firmware %+v", m.Firmware)
	}
	if !m.Hardware.Recovery() {
		t.Error("equal ids are no recovery mode")
	}
}

func TestSessionClean(t *testing.T) {
	for m, want := range map[MDSR]bool{
		{Status: SessionNone}:                            true,
		{Status: SessionTimedOut}:                        true,
		{Status: SessionEnded, Info: InfoNoSession}:      true,
		{Status: SessionEnded}:                           false,
		{Status: SessionEnded, Info: InfoHostForbidden}:  false,
		{Status: SessionActive}:                          false,
		{Status: SessionChallenged}:                      false,
		{Status: SessionFailed, Info: InfoHostForbidden}: false,
		{Status: 9}: false,
	} {
		if m.Clean() != want {
			t.Errorf("%+v: clean %v, want %v", m, m.Clean(), want)
		}
	}
}

func TestRPCStream(t *testing.T) {
	var b bytes.Buffer
	r := RPC{Scope: DebugReadOnly, In: Access{ID: IDMGIR, Method: Read, Data: make([]byte, 0xA0)}.Encode(), Room: 0xB0}
	for range 2 {
		must(r.WriteTo(&b))
	}
	for range 2 {
		back, err := ReadRPC(&b)
		if diff := cmp.Diff(r, back); diff != "" || err != nil {
			t.Fatalf("read back: %v\n%s", err, diff)
		}
	}
	if _, err := ReadRPC(&b); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	a := Reply{Errno: 74, Out: []byte{1}}
	must(a.WriteTo(&b))
	if back, err := ReadReply(&b); err != nil || digits(back.Out) != "01" || back.Errno != 74 {
		t.Errorf("reply %+v, %v", back, err)
	}
	for _, bad := range []string{"00000001" + "00004001" + "00000000", "00000001" + "00000000" + "00004001", "00000001" + "00000002" + "00000000" + "00", "00"} {
		if _, err := ReadRPC(bytes.NewReader(must(hex.DecodeString(bad)))); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("RPC %s: %v", bad, err)
		}
	}
	if _, err := ReadReply(strings.NewReader("\x00\x00\x00\x00\xFF\xFF\xFF\xFF")); err == nil {
		t.Error("a reply of 4 GiB is read")
	}
}

func FuzzCommands(f *testing.F) {
	f.Add(Access{ID: IDMGIR, Method: Read, Data: make([]byte, 4)}.Encode())
	f.Add(VportQuery{Opcode: QueryHCAVportPKey, Vport: Vport{Port: 1}, Index: 2}.Encode())
	f.Add(Answer{Status: Busy}.Encode())
	f.Fuzz(func(t *testing.T, p []byte) {
		if a, err := DecodeAccess(p); err == nil && len(a.Encode()) != len(p) {
			t.Errorf("access %+v has another length", a)
		}
		if q, err := DecodeVportQuery(p); err == nil {
			if back, err := DecodeVportQuery(q.Encode()); err != nil || back != q {
				t.Errorf("query %+v is read back as %+v, %v", q, back, err)
			}
		}
		if a, err := DecodeAnswer(p); err == nil && len(a.Encode()) != len(p) {
			t.Errorf("answer %+v has another length", a)
		}
		if keys, err := DecodePKeys(p); err == nil && len(EncodePKeys(keys)) != len(p) {
			t.Error("a P_Key table has another length")
		}
		if r, err := ReadRPC(bytes.NewReader(p)); err == nil && (len(r.In) > MaxRPC || r.Room > MaxRPC) {
			t.Error("an RPC has no bound")
		}
		if r, err := ReadReply(bytes.NewReader(p)); err == nil && len(r.Out) > MaxRPC {
			t.Error("a reply has no bound")
		}
	})
}

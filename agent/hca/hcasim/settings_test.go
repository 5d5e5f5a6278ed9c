package hcasim

import (
	"bytes"
	"slices"
	"testing"

	"portcullis/agent/hca/register"
	"portcullis/firmware/nvconfig"
)

// A setting takes effect at the next boot, and not before.
func TestSetting(t *testing.T) {
	l := open(t)
	l.isOn(false, false)
	if status := l.write(smConf, on); status != register.OK {
		t.Fatal(status)
	}
	l.isOn(false, true)
	i, _ := l.item(smConf, nvconfig.Next)
	if i.Priority != nvconfig.User || !i.OverrideEnabled || i.Writer != nvconfig.WriterMlxconfig || i.Locked() {
		t.Errorf("what a host wrote is %+v", i.Header)
	}
	l.card.Reset()
	l.isOn(true, true)
	if got := l.value(smConf, nvconfig.Default); !bytes.Equal(got, off) {
		t.Errorf("the factory's value is %x", got)
	}
	if i, _ := l.item(smConf, nvconfig.Default); i.Locked() {
		t.Errorf("the factory's value is locked: %+v", i.Header)
	}
}

// TestSettingLength checks that the answer to a host's query of a setting is as long as the setting. The request may have
// more room, not less.
func TestSettingLength(t *testing.T) {
	l := open(t)
	read := func(length, room int) register.Status {
		head := nvconfig.Header{Address: hostPriv}.Append(nil, length)
		return l.rpc(register.Access{ID: register.IDMNVDA, Method: register.Read, Data: append(head, make([]byte, room)...)}).Status
	}
	for _, tt := range []struct {
		length, room int
		want         register.Status
	}{
		{16, 16, register.OK},
		{256, 256, register.OK},
		{12, 12, register.BadParameter},
		{16, 12, register.BadInputLength},
		{260, 260, register.BadParameter},
	} {
		if got := read(tt.length, tt.room); got != tt.want {
			t.Errorf("length %d in %d bytes: %v, want %v", tt.length, tt.room, got, tt.want)
		}
	}
	if status := l.write(smConf, make([]byte, 8)); status != register.BadParameter {
		t.Errorf("write of 8 bytes: %v", status)
	}
}

// Settings of one port or function are separate; an address for all means each.
func TestAddresses(t *testing.T) {
	l := open(t)
	keep := nvconfig.PortItem(2, 400)
	if status := l.write(keep, []byte{0, 0, 0, 2}); status != register.OK {
		t.Fatal(status)
	}
	if got := l.value(nvconfig.PortItem(1, 400), nvconfig.Next); !bytes.Equal(got, off) {
		t.Errorf("port 1 has %x", got)
	}
	if status := l.write(nvconfig.AllPortsItem(400), []byte{0, 0, 0, 4}); status != register.OK {
		t.Fatal(status)
	}
	for port := range uint8(2) {
		if got := l.value(nvconfig.PortItem(port+1, 400), nvconfig.Next); got[3] != 4 {
			t.Errorf("port %d has %x", port+1, got)
		}
	}
	alternate := append([]byte{0x80, 0, 0, 0}, 1, 2, 3, 4, 5, 6, 7, 8)
	if status := l.write(nvconfig.AllFunctionsItem(273), alternate); status != register.OK {
		t.Fatal(status)
	}
	if got := l.value(nvconfig.FunctionItem(0, 1, 273), nvconfig.Next); !bytes.Equal(got, alternate) {
		t.Errorf("function 1 has %x", got)
	}
	for _, unknown := range []nvconfig.Address{nvconfig.PortItem(3, 400), nvconfig.GlobalItem(9999), 0xFF000001, nvconfig.FunctionItem(1, 0, 273)} {
		if _, status := l.item(unknown, nvconfig.Next); status != register.BadParameter {
			t.Errorf("read 0x%08x: %v", uint32(unknown), status)
		}
		if q := get(l, register.MNVQC{Type: uint32(unknown)}); q.CanRead || q.CanWrite {
			t.Errorf("MNVQC knows 0x%08x", uint32(unknown))
		}
	}
	if q := get(l, register.MNVQC{Type: uint32(smConf)}); !q.CanRead || !q.CanWrite {
		t.Errorf("MNVQC: %+v", q)
	}
}

// TestBurned checks that values burned in at manufacturing can be read, but not written.
func TestBurned(t *testing.T) {
	l := open(t)
	uids := nvconfig.GlobalItem(baseUIDsIndex)
	want := []byte{0, 0, 0xb8, 0x3f, 0xd2, 0x12, 0x34, 0, 0xb8, 0x3f, 0xd2, 3, 0, 0x12, 0x34, 0}
	if got := l.value(uids, nvconfig.Default); !bytes.Equal(got, want) {
		t.Errorf("base MAC and GUID %x, want %x", got, want)
	}
	if status := l.write(uids, make([]byte, 16)); status != register.BadParameter {
		t.Errorf("write: %v", status)
	}
	if q := get(l, register.MNVQC{Type: uint32(uids)}); !q.CanRead || q.CanWrite {
		t.Errorf("MNVQC: %+v", q)
	}
	if _, status := l.item(nvconfig.GlobalItem(secureHostIndex), nvconfig.Next); status != register.BadParameter {
		t.Errorf("the key of the lock is read: %v", status)
	}
}

// Cards that cannot read all values say so.
func TestUnreadable(t *testing.T) {
	l := open(t, traits(func(x *Traits) { x.NoCurrent, x.NoFactory = true, true }))
	if got := get(l, register.MNVGC{}); got != (register.MNVGC{}) {
		t.Errorf("MNVGC %+v", got)
	}
	for _, access := range []nvconfig.Access{nvconfig.Current, nvconfig.Default} {
		if _, status := l.item(smConf, access); status != register.BadSystemState {
			t.Errorf("%v: %v, want not supported", access, status)
		}
	}
	if !l.card.Forget(smConf) || l.card.Forget(smConf) {
		t.Error("the card does not forget once")
	}
	if _, status := l.item(smConf, nvconfig.Next); status != register.BadParameter {
		t.Errorf("a forgotten setting: %v", status)
	}
}

// TestPriorities checks that the host cannot write or take back a setting that a signed file set with ovr_en 0, not even by
// taking back all settings. It can do so with the settings that it may write.
func TestPriorities(t *testing.T) {
	l := open(t)
	l.write(hostPriv, make([]byte, 16))
	l.mustUpload(register.OEMNVConfig, wall().sign(l))
	if i, _ := l.item(smConf, nvconfig.Next); i.Priority != nvconfig.OEM || i.OverrideEnabled || !i.Locked() {
		t.Errorf("what a file wrote is %+v", i.Header)
	}
	gone := nvconfig.Item{Header: nvconfig.Header{Address: smConf}, Data: off}.Append(nil)
	attempts := func(smWant register.Status) {
		t.Helper()
		if status := l.write(smConf, off); status != smWant {
			t.Errorf("write: %v, want %v", status, smWant)
		}
		if got := l.rpc(register.Access{ID: register.IDMNVDI, Method: register.Write, Data: gone}).Status; got != smWant {
			t.Errorf("MNVDI: %v, want %v", got, smWant)
		}
	}
	attempts(register.BadParameter)
	if _, status := do(l, register.Write, register.MNVIA{}); status != register.OK {
		t.Errorf("MNVIA: %v", status)
	}
	if i, _ := l.item(hostPriv, nvconfig.Next); i.Writer != 0 {
		t.Errorf("MNVIA left what the host wrote: %+v", i.Header)
	}
	l.isOn(false, true)
	l.card.Reset()
	attempts(register.BadParameter)
	l.isOn(true, true)

	weak := open(t, traits(func(x *Traits) { x.IgnoresPriority = true }))
	weak.mustUpload(register.OEMNVConfig, wall().sign(weak))
	if status := weak.write(smConf, off); status != register.OK {
		t.Errorf("a card without priorities: %v", status)
	}
	forgetful := open(t, traits(func(x *Traits) { x.ForgetsOEM = true }))
	forgetful.mustUpload(register.OEMNVConfig, wall().sign(forgetful))
	do(forgetful, register.Write, register.MNVIA{})
	forgetful.isOn(false, false)
}

// MNVGN walks through what is stored, and nothing else.
func TestWalk(t *testing.T) {
	l := open(t)
	if got := get(l, register.MNVGN{}); got.Pointer != 0 || got.Header != [12]byte{} {
		t.Errorf("an empty store gives %+v", got)
	}
	want := []nvconfig.Address{smConf, hostPriv, nvconfig.PortItem(1, 400)}
	for _, a := range want {
		l.write(a, make([]byte, len(l.value(a, nvconfig.Next))))
	}
	l.card.Put(nvconfig.OEMItem(nvconfig.GlobalItem(secureHostIndex), make([]byte, secureHostLength)))
	var seen []nvconfig.Address
	m := register.MNVGN{}
	for range 10 {
		m = get(l, register.MNVGN{Pointer: m.Pointer})
		h, _, err := nvconfig.ParseHeader(m.Header[:])
		if err != nil {
			t.Fatal(err)
		}
		if seen = append(seen, h.Address); m.Pointer == 0 {
			break
		}
	}
	if !slices.Equal(seen, want) {
		t.Errorf("walked through %v, want %v", seen, want)
	}
	if _, status := do(l, register.Read, register.MNVGN{Pointer: 99}); status != register.BadParameter {
		t.Errorf("a pointer to nothing: %v", status)
	}
}

// TestPrivileges checks that a host that dropped its privileges cannot get them back by writing, where the card respects
// HOST_PRIV_*.
func TestPrivileges(t *testing.T) {
	for _, heeds := range []bool{false, true} {
		l := open(t, traits(func(x *Traits) { x.HonorsPrivileges = heeds }))
		none := append([]byte{0xAA, 0xAA, 0, 0}, make([]byte, 12)...)
		l.write(hostPriv, none)
		want := register.OK
		if heeds {
			want = register.BadParameter
		}
		for _, a := range []nvconfig.Address{hostPriv, smConf, nvconfig.PortItem(1, 400), nvconfig.HostItem(0, 128)} {
			data := l.value(a, nvconfig.Next)
			if status := l.write(a, data); status != register.OK {
				t.Errorf("%v before the boot: %v", a, status)
			}
		}
		l.card.Reset()
		for _, a := range []nvconfig.Address{hostPriv, smConf, nvconfig.PortItem(1, 400), nvconfig.HostItem(0, 128)} {
			if status := l.write(a, l.value(a, nvconfig.Next)); status != want {
				t.Errorf("heeds %v, %v: %v, want %v", heeds, a, status, want)
			}
		}
		if _, status := do(l, register.Write, register.MFRL{Trigger: register.PCIeLink}); status != want {
			t.Errorf("heeds %v, reset: %v, want %v", heeds, status, want)
		}
	}
}

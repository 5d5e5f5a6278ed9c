package hcasim

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"portcullis/agent/hca/register"
	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/nvconfigtest"
)

// vector is a file that mstconfig made.
func vector(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../../firmware/nvconfig/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Files of mstconfig are taken, and set what they say.
func TestVectors(t *testing.T) {
	for _, name := range []string{"tenant-lock.rsa2048.bin", "tenant-lock.rsa4096.bin"} {
		l := open(t)
		l.mustUpload(register.OEMNVConfig, vector(t, name))
		l.isOn(false, true)
		l.card.Reset()
		l.isOn(true, true)
		if got := l.value(hostPriv, nvconfig.Current); binary.BigEndian.Uint32(got) != 0x2AAA0000 {
			t.Errorf("%s: privileges %x", name, got)
		}
		for f := range uint8(2) {
			if i, _ := l.item(nvconfig.FunctionItem(0, f, 273), nvconfig.Current); !i.Locked() || i.Data[11] != 8 {
				t.Errorf("%s: alternate GUID of function %d: %+v", name, f, i)
			}
		}
	}
	l := open(t)
	l.refused(register.OEMNVConfig, vector(t, "tenant-lock.digest.bin"), register.RejectedUnsigned)
	weak := open(t, traits(func(x *Traits) { x.AcceptsUnsigned = true }))
	weak.mustUpload(register.OEMNVConfig, vector(t, "tenant-lock.digest.bin"))
}

// flipped returns a copy with one bit changed.
func flipped(b []byte, at int) []byte {
	b = slices.Clone(b)
	b[at] ^= 1
	return b
}

func TestFilesRefused(t *testing.T) {
	l := open(t)
	good := wall().sign(l)
	parts := wall().parts(l)
	with := func(change func(*file)) []byte {
		f := wall()
		change(&f)
		return f.sign(l)
	}
	unsigned := good[:len(good)-2*(nvconfig.HeaderSize+0x120)]
	for _, tt := range []struct {
		name string
		file []byte
		want register.MCCError
	}{
		{"a changed value", flipped(good, 16+28+44+12), register.RejectedAuthFailed},
		{"a changed signature", flipped(good, len(good)-1), register.RejectedAuthFailed},
		{"another magic", flipped(good, 0), register.RejectedBadFormat},
		{"no signature", unsigned, register.RejectedUnsigned},
		{"cut off", good[:len(good)-4], register.RejectedBadFormat},
		{"another board", with(func(f *file) { f.psid = "TST0000000002" }), register.RejectedNotApplicable},
		{"an unknown key", l.signed(parts, nvconfigtest.Key(t, 4096), nvconfig.UUID{1}), register.RejectedUnknownKey},
		{"a key for tokens", l.signed(parts, vendorKey(t), vendorUUID), register.RejectedKeyNotApplicable},
		{"a setting the card does not know", with(func(f *file) {
			f.items = append(f.items, nvconfig.OEMItem(nvconfig.GlobalItem(9999), off))
		}), register.RejectedNotApplicable},
		{"the vendor's priority", with(func(f *file) {
			f.id.PerItem = true
			f.items[0].Priority = nvconfig.MLNX
		}), register.RejectedBadFormat},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := lab{t, l.card}
			l.refused(register.OEMNVConfig, tt.file, tt.want)
			l.isOn(false, false)
		})
	}
	l.refused(register.MLNXNVConfig, good, register.RejectedNotApplicable)
	l.mustUpload(register.OEMNVConfig, good)
	old := with(func(f *file) { f.id.Version = 6 })
	l.refused(register.OEMNVConfig, old, register.RejectedForbiddenVersion)
	l.refused(register.OEMNVConfig, with(func(f *file) { f.id.DisableOverride = true }), register.RejectedNotApplicable)
	lax := open(t, traits(func(x *Traits) { x.AcceptsOldFiles = true }))
	lax.mustUpload(register.OEMNVConfig, good)
	lax.mustUpload(register.OEMNVConfig, old)
}

// TestFileFlags checks that the flags of a file decide which other settings stay.
func TestFileFlags(t *testing.T) {
	other := nvconfig.GlobalItem(21)
	for _, tt := range []struct {
		name       string
		id         nvconfig.FileID
		user, same bool // left
	}{
		{"keep the same", nvconfig.FileID{KeepSame: true, Version: 8}, true, true},
		{"keep nothing of the same", nvconfig.FileID{Version: 8}, true, false},
		{"erase later ones", nvconfig.FileID{KeepSame: true, EraseLower: true, Version: 8}, false, true},
	} {
		l := open(t)
		l.write(hostPriv, append([]byte{1}, make([]byte, 15)...))
		first := wall()
		first.items = append(first.items, nvconfig.OEMItem(other, on))
		l.mustUpload(register.OEMNVConfig, first.sign(l))
		second := wall()
		second.id = tt.id
		l.mustUpload(register.OEMNVConfig, second.sign(l))
		l.isOn(false, true)
		if got := l.value(hostPriv, nvconfig.Next)[0] == 1; got != tt.user {
			t.Errorf("%s: the host's setting is there: %v", tt.name, got)
		}
		if got := l.value(other, nvconfig.Next)[0] == 0x80; got != tt.same {
			t.Errorf("%s: the operator's other setting is there: %v", tt.name, got)
		}
	}
}

// A file of the vendor goes over one of the operator, and not the other way.
func TestVendorFile(t *testing.T) {
	l := open(t)
	parts := wall().parts(l)
	parts[0].Address = nvconfig.GlobalItem(mlnxFileIndex)
	l.mustUpload(register.OEMNVConfig, wall().sign(l))
	l.mustUpload(register.MLNXNVConfig, l.signed(parts, vendorKey(t), vendorUUID))
	if i, _ := l.item(smConf, nvconfig.Next); i.Priority != nvconfig.MLNX {
		t.Errorf("%+v", i.Header)
	}
	l.refused(register.OEMNVConfig, wall().sign(l), register.RejectedNotApplicable)
}

// A customer's key that was enrolled signs from the next boot on, where the
// card does such a thing.
func TestEnrolledKey(t *testing.T) {
	key := nvconfigtest.Key(t, 4096)
	mine := nvconfig.UUID{0xAB}
	id := make([]byte, 32)
	binary.BigEndian.PutUint32(id[12:], uint32(key.E))
	copy(id[16:], mine[:])
	modulus := key.N.FillBytes(make([]byte, 512))
	enroll := func(l lab) {
		l.Helper()
		for i, data := range [][]byte{id, modulus[:256], modulus[256:]} {
			if status := l.write(nvconfig.GlobalItem(keyIndex+uint32(i)), data); status != register.OK {
				l.Fatal(status)
			}
		}
	}
	l := open(t, func(o *Options) { o.Keys, o.Traits.EnrollsKeys = nil, true })
	signed := l.signed(wall().parts(l), key, mine)
	enroll(l)
	l.refused(register.OEMNVConfig, signed, register.RejectedUnknownKey)
	l.card.Reset()
	l.mustUpload(register.OEMNVConfig, signed)
	plain := open(t)
	if status := plain.write(nvconfig.GlobalItem(keyIndex), id); status != register.BadParameter {
		t.Errorf("a card without such items: %v", status)
	}
}

package image_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/firmware/image"
	"portcullis/firmware/imagetest"
)

func open(b []byte) (*image.Image, error) { return image.Open(bytes.NewReader(b), int64(len(b))) }

func mustOpen(t *testing.T, b []byte) *image.Image {
	t.Helper()
	m, err := open(b)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestIdentity(t *testing.T) {
	s := imagetest.New()
	s.SecurityVersion, s.BaseGUID, s.Name = 7, 0x0002C90300BB0000, "bad\x1b[31m\\name\xff"
	m := mustOpen(t, s.Build())
	want := &image.Info{
		Flags: imagetest.DefaultFlags, Version: image.Version{Major: 22, Minor: 47, Sub: 1088}, MIC: image.Version{Major: 22, Minor: 47, Sub: 1088},
		Released: "2026-01-15", PCIDevice: 0x101F, PCIVendor: 0x15B3, SubsystemID: 0x23, SubsystemVend: 0x15B3,
		PSID: "TST0000000001", Hardware: []image.HardwareID{0x218}, VSD: "synthetic", ProductVersion: "22.0047.1088",
		Name: `bad\x1b[31m\x5cname\xff`,
	}
	if d := cmp.Diff(want, m.Info, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".dtocOffset" }, cmp.Ignore())); d != "" {
		t.Errorf("IMAGE_INFO (-want +got):\n%s", d)
	}
	if m.Format != image.FS4 || m.Component || m.Opaque != "" || m.SecurityVersion != 7 || m.TOC() != imagetest.TOCAt {
		t.Errorf("image is %v %v %q %d 0x%x", m.Format, m.Component, m.Opaque, m.SecurityVersion, m.TOC())
	}
	if !m.Device.Changed() || m.Device.Manufactured.GUID != imagetest.DefaultGUID || m.Device.InForce.GUID != 0x0002C90300BB0000 || m.Device.InForce.NumGUIDs != 8 {
		t.Errorf("device data are %+v", m.Device)
	}
	if found, err := m.Check(); err != nil || len(found) > 0 {
		t.Errorf("checksums: %v %v", found, err)
	}
	if len(m.Keys) != 2 || m.Keys[0].UUID != imagetest.KeyUUID || m.Keys[0].Signs != image.SignsFirmware || m.Keys[1].Algorithm != image.RSA4096SHA512 {
		t.Errorf("keys are %+v", m.Keys)
	}
}

// TestForms opens images that are right in unusual ways, and finds the digest
// that the default one has where nothing that is covered differs.
func TestForms(t *testing.T) {
	plain, err := mustOpen(t, imagetest.New().Build()).Digest256()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		change func(s *imagetest.Spec)
		same   bool
		format image.Format
	}{
		{"in a dump of a flash", func(s *imagetest.Spec) { s.Start, s.Size = 0x40000, 0x80000 }, false, image.FS4},
		{"update component", func(s *imagetest.Spec) { s.Component = true }, true, image.FS4},
		{"other GUID", func(s *imagetest.Spec) { s.BaseGUID++ }, true, image.FS4},
		{"table one sector later", func(s *imagetest.Spec) { s.TOCShift = true }, false, image.FS4},
		{"entries not counted", func(s *imagetest.Spec) { s.TOCCount = false }, false, image.FS4},
		{"device in the first half of the file", func(s *imagetest.Spec) { s.Size, s.DTOCOffset = 0x40000, 1 }, false, image.FS4},
		{"FS3", func(s *imagetest.Spec) { s.Format = 3 }, false, image.FS3},
		{"FS3 component", func(s *imagetest.Spec) { s.Format, s.Component = 3, true }, false, image.FS3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := imagetest.New()
			tt.change(s)
			b := s.Build()
			imagetest.Digest(b)
			m := mustOpen(t, b)
			got, err := m.Digest256()
			if err != nil {
				t.Fatal(err)
			}
			stored, ok := m.Signatures[0].Digest()
			if !ok || stored != got || (got == plain) != tt.same {
				t.Errorf("digest %x, stored %x (%v), the default one's %x", got, stored, ok, plain)
			}
			if found, err := m.Check(); err != nil || len(found) > 0 || m.Format != tt.format || m.Component != s.Component || (m.Device == nil) != s.Component {
				t.Errorf("%v %v, checksums %v %v, device %v", m.Format, m.Component, found, err, m.Device)
			}
			if m.Start != int64(s.Start) || m.Info.PSID != "TST0000000001" {
				t.Errorf("it begins at 0x%x, PSID %s", m.Start, m.Info.PSID)
			}
		})
	}
}

// TestFlash finds the image at each place of a flash where one may begin.
func TestFlash(t *testing.T) {
	s := imagetest.New()
	want, err := mustOpen(t, s.Build()).Digest256()
	if err != nil {
		t.Fatal(err)
	}
	for start := 0x10000; start <= 0x2000000; start *= 2 {
		s.Start, s.Size = start, max(2*start, 0x40000)
		b := s.Build()
		// The size of the slot is part of the image, and covered.
		b[start+imagetest.ToolsAt+5] = 17
		binary.BigEndian.PutUint16(b[start+imagetest.ToolsAt+0x3E:], imagetest.Soft(b[start+imagetest.ToolsAt:][:0x3C]))
		m := mustOpen(t, b)
		got, err := m.Digest256()
		if err != nil || got != want || m.Start != int64(start) || m.Device == nil {
			t.Errorf("at 0x%x: image at 0x%x, digest %x, want %x; %v", start, m.Start, got, want, err)
		}
		if found, err := m.Check(); err != nil || len(found) > 0 {
			t.Errorf("at 0x%x: checksums %v %v", start, found, err)
		}
	}
}

// TestEarlyBoards has FS3 with data of a device in another layout, as early boards
// have: the image is good, and its addresses are not known.
func TestEarlyBoards(t *testing.T) {
	s := imagetest.New()
	s.Format, s.BaseGUID = 3, 0x0002C90300BB0000
	b := s.Build()
	_, mfg := imagetest.Find(b, 0xE0)
	mfg[0x1C] = 0
	imagetest.Mend(b, 0xE0)
	m := mustOpen(t, b)
	if m.Device == nil || m.Device.Unread == "" || m.Device.Changed() || m.Device.InForce.GUID != 0 || m.Device.PSID != "TST0000000001" {
		t.Errorf("device data are %+v", m.Device)
	}
}

// hashed is an image with a table of hashes and a section with a checksum in
// each line. How these are signed was read and not seen: the test holds the digest
// to that reading.
func hashed(hardware uint32) *imagetest.Spec {
	s := imagetest.New()
	s.Hardware = []uint32{hardware}
	s.Main = bytes.Repeat([]byte{0xAB}, 3*68+12)
	const hashesAt = 0x3000 // in the room before the table of contents
	s.Pointers = map[int]uint32{15: hashesAt}
	s.LinesOfMain, s.HashesAt = true, hashesAt
	return s
}

func TestHashedImage(t *testing.T) {
	for _, tt := range []struct {
		hardware uint32
		opaque   bool
		record   int // where the checksum after the boot record is; 0: not masked
	}{
		{0x218, false, 0}, {0x21C, false, 0x100 + 0x4D0}, {0x254, false, 0x100 + 0x660}, {0x257, true, 0},
	} {
		b := hashed(tt.hardware).Build()
		m := mustOpen(t, b)
		if found, err := m.Check(); err != nil || len(found) > 0 {
			t.Errorf("0x%x: checksums %v %v", tt.hardware, found, err)
		}
		got, err := m.Digest256()
		if tt.opaque {
			if m.Opaque == "" || !errors.Is(err, image.ErrOpaque) {
				t.Errorf("0x%x: opaque %q, %v", tt.hardware, m.Opaque, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		c := imagetest.Covered(b, 0xA0)
		if tt.record != 0 {
			copy(c[tt.record:], "\xff\xff\xff\xff")
		}
		main := c[imagetest.FirstAt:]
		short := slices.Concat(main[:64], main[68:132], main[136:200], main[204:])
		if want := sha256.Sum256(append(bytes.Clone(c[:imagetest.FirstAt]), short...)); got != want {
			t.Errorf("0x%x: digest %x, want %x", tt.hardware, got, want)
		}
	}
}

// TestOpaque checks images that cannot be judged, though some show their identity.
func TestOpaque(t *testing.T) {
	for _, tt := range []struct {
		name  string
		build func() []byte
		known bool // it shows its identity
	}{
		{"FS5", func() []byte { s := imagetest.New(); s.Format = 5; return withInfo(s) }, true},
		{"FS5 without a place of identity", func() []byte { s := imagetest.New(); s.Format = 5; return s.Build() }, false},
		{"encrypted", func() []byte {
			b := withInfo(imagetest.New())
			clear(b[imagetest.TOCAt : imagetest.TOCAt+16])
			return b
		}, true},
		{"encrypted with its identity", func() []byte {
			b := withInfo(imagetest.New())
			_, info := imagetest.Find(b, 0x10)
			copy(info, "\x93\xf2 this is not in the clear any longer")
			clear(b[imagetest.TOCAt : imagetest.TOCAt+16])
			return b
		}, false},
		{"one section encrypted", func() []byte {
			s := imagetest.New()
			s.Extra = []imagetest.Section{{Type: 0x30, Data: make([]byte, 64), Encrypted: true}}
			return s.Build()
		}, true},
		{"encrypted by its own word", func() []byte { s := imagetest.New(); s.Flags |= 1 << 3; return s.Build() }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := mustOpen(t, tt.build())
			if _, err := m.Digest256(); m.Opaque == "" || !errors.Is(err, image.ErrOpaque) {
				t.Errorf("opaque %q, digest %v", m.Opaque, err)
			}
			if (m.Info != nil) != tt.known || tt.known && m.Info.PSID != "TST0000000001" {
				t.Errorf("identity is %+v", m.Info)
			}
		})
	}
}

// withInfo builds an image of which pointer 10 names IMAGE_INFO.
func withInfo(s *imagetest.Spec) []byte {
	s.Pointers = map[int]uint32{10: uint32(imagetest.FirstAt + len(s.Main))}
	return s.Build()
}

// TestRefused has images that contradict themselves in one way each.
func TestRefused(t *testing.T) {
	extra := func(x imagetest.Section) func(*imagetest.Spec) {
		return func(s *imagetest.Spec) { s.Extra = []imagetest.Section{x} }
	}
	for _, tt := range []struct {
		name   string
		change func(s *imagetest.Spec)
		mangle func(b []byte) []byte
		want   string
	}{
		{"two IMAGE_INFO", extra(imagetest.Section{Type: 0x10, Data: imagetest.New().Info()}), nil, "IMAGE_INFO: it occurs twice"},
		{"two signatures of one kind", extra(imagetest.Section{Type: 0xA0, Data: make([]byte, 0x140), Mode: 1}), nil, "IMAGE_SIGNATURE_256: it occurs twice"},
		{"section over the table", extra(imagetest.Section{Type: 0x30, Data: make([]byte, 32), At: imagetest.TOCAt + 32 + 8*32}), nil, "overlaps ITOC"},
		{"section over BOOT2", extra(imagetest.Section{Type: 0x30, Data: make([]byte, 64), At: imagetest.Boot2At + 76}), nil, "overlaps BOOT2"},
		{"section over the tools area", extra(imagetest.Section{Type: 0x30, Data: make([]byte, 4), At: imagetest.ToolsAt + 60}), nil, "overlaps tools area"},
		{"section over the pointers", extra(imagetest.Section{Type: 0x30, Data: make([]byte, 4), At: imagetest.PointersAt}), nil, "overlaps header"},
		{"section over another", extra(imagetest.Section{Type: 0x30, Data: make([]byte, 64), At: imagetest.FirstAt + 16}), nil, "overlaps MAIN_CODE"},
		{"section over the device", extra(imagetest.Section{Type: 0x30, Data: make([]byte, 64), At: imagetest.MFGAt + 0x100}), nil, "overlaps MFG_INFO"},
		{"another IMAGE_INFO by pointer", func(s *imagetest.Spec) { s.Pointers = map[int]uint32{10: imagetest.FirstAt} }, nil, "hardware pointer 10 and the table"},
		{"no table by pointer", func(s *imagetest.Spec) { s.Pointers = map[int]uint32{2: 0} }, nil, "no table of contents"},
		{"two tables", nil, func(b []byte) []byte { copy(b[imagetest.TOCAt+0x1000:], b[imagetest.TOCAt:][:64]); return b }, "another one is at 0x4000"},
		{"another image behind", nil, func(b []byte) []byte { copy(b[0x10000:], b[:64]); return b }, "another image begins at 0x0"},
		{"two DEV_INFO in use", nil, func(b []byte) []byte {
			e, data := imagetest.Find(b, 0xE1)
			other := e[32:64]
			copy(other, e)
			copy(b[0x12000:], data)
			copy(other[0x14:], []byte{0, 1, 0x20, 0})
			imagetest.MendEntry(other)
			other = e[64:96]
			clear(other)
			other[0] = 0xFF
			return b
		}, "2 valid DEV_INFO"},
		{"no DEV_INFO in use", nil, func(b []byte) []byte { _, d := imagetest.Find(b, 0xE1); d[0] = 0; return b }, "0 valid DEV_INFO"},
		{"MFG_INFO of another layout", nil, func(b []byte) []byte { _, d := imagetest.Find(b, 0xE0); d[0x1C] = 9; return b }, "its layout is 9"},
		{"DEV_INFO of another layout", nil, func(b []byte) []byte { _, d := imagetest.Find(b, 0xE1); d[0x12] = 1; return b }, "DEV_INFO: its layout is 1"},
		{"IMAGE_INFO of another layout", nil, func(b []byte) []byte { _, d := imagetest.Find(b, 0x10); d[0] = 1; return b }, "its layout is 1.0"},
		{"no IMAGE_INFO", nil, func(b []byte) []byte { e, _ := imagetest.Find(b, 0x10); e[0] = 0x31; return b }, "it has no IMAGE_INFO"},
		{"a short signature", nil, func(b []byte) []byte { e, _ := imagetest.Find(b, 0xA0); e[3] = 0x3C; return b }, "IMAGE_SIGNATURE_256: it has 316 bytes"},
		{"short keys", nil, func(b []byte) []byte { e, _ := imagetest.Find(b, 0xA1); e[2] = 0; return b }, "PUBLIC_KEYS_2048: it has 0 bytes"},
		{"a section behind the end", nil, func(b []byte) []byte { e, _ := imagetest.Find(b, 0xA4); e[0x14] = 0x40; return b }, "run over the end"},
		{"BOOT2 of many bytes", nil, func(b []byte) []byte { b[imagetest.Boot2At+4] = 0x10; return b }, "BOOT2: it claims"},
		{"a table without end", nil, func(b []byte) []byte {
			e, _ := imagetest.Find(b, 0x03)
			for i := range 200 {
				copy(b[imagetest.TOCAt+32+32*i:], e)
			}
			return b
		}, "more than 128 entries"},
		{"a signature among the device's data", nil, func(b []byte) []byte {
			own, _ := imagetest.Find(b, 0xA0)
			own[0] = 0x31
			e, _ := imagetest.Find(b, 0xE1)
			e = e[:96]
			copy(e[32:64], e)
			e[32], e[64] = 0xA0, 0xFF
			copy(e[32+0x14:], []byte{0, 1, 0x20, 0})
			return b
		}, "among the device data"},
		{"FS3, code that says it is the device's", func(s *imagetest.Spec) { s.Format = 3 }, func(b []byte) []byte { e, _ := imagetest.Find(b, 0x03); e[0x19] |= 2; return b }, "mark and address disagree"},
		{"FS3, device data that say they are the image's", func(s *imagetest.Spec) { s.Format = 3 }, func(b []byte) []byte { e, _ := imagetest.Find(b, 0xE0); e[0x19] &^= 2; return b }, "mark and address disagree"},
		{"no device", nil, func(b []byte) []byte { return b[:0x1F000] }, "it is truncated"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := imagetest.New()
			if tt.change != nil {
				tt.change(s)
			}
			b := s.Build()
			if tt.mangle != nil {
				b = tt.mangle(b)
			}
			_, err := open(b)
			if !image.IsLayout(err) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// TestUnknown has files that are no image.
func TestUnknown(t *testing.T) {
	b := imagetest.New().Build()
	other := bytes.Clone(b)
	other[0x10] = 9
	blank := bytes.Repeat([]byte{0xFF}, 4096)
	for name, b := range map[string][]byte{"empty": nil, "text": []byte(strings.Repeat("no image\n", 99)), "one byte": {0x4D}, "another number": other, "blank flash": blank, "magic alone": b[:16]} {
		if _, err := open(b); !errors.Is(err, image.ErrUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := image.Open(bytes.NewReader(b), image.MaxSize+1); !errors.Is(err, image.ErrUnknown) {
		t.Errorf("too large: %v", err)
	}
}

// TestChecksumsFound breaks each kind of checksum.
func TestChecksumsFound(t *testing.T) {
	for _, tt := range []struct {
		object string
		mangle func(b []byte)
	}{
		{"hardware pointer 0", func(b []byte) { b[imagetest.PointersAt+7] ^= 1 }},
		{"hardware pointer 13", func(b []byte) { b[imagetest.PointersAt+13*8+3] ^= 1 }},
		{"tools area", func(b []byte) { b[imagetest.ToolsAt+8] ^= 1 }},
		{"BOOT2", func(b []byte) { b[imagetest.Boot2At+20] ^= 1 }},
		{"ITOC header", func(b []byte) { b[imagetest.TOCAt+0x10] ^= 1 }},
		{"ITOC entry 0 (MAIN_CODE)", func(b []byte) { b[imagetest.TOCAt+32+8] ^= 1 }},
		{"MAIN_CODE at 0x6000", func(b []byte) { b[imagetest.FirstAt+5] ^= 1 }},
		{"DTOC header", func(b []byte) { b[0x1F000+0x10] ^= 1 }},
		{"MFG_INFO at 0x10000", func(b []byte) { b[imagetest.MFGAt+0x50] ^= 1 }},
		{"DEV_INFO at 0x11000", func(b []byte) { b[imagetest.DevInfoAt+0x50] ^= 1 }},
		{"header of the table of hashes", func(b []byte) { b[0x3000] ^= 1 }},
		{"table of hashes", func(b []byte) { b[0x3000+100] ^= 1 }},
	} {
		t.Run(tt.object, func(t *testing.T) {
			s := imagetest.New()
			if strings.Contains(tt.object, "hashes") {
				s = hashed(0x218)
			}
			b := s.Build()
			tt.mangle(b)
			found, err := mustOpen(t, b).Check()
			if err != nil {
				t.Fatal(err)
			}
			named := false
			for _, f := range found {
				named = named || f.Object == tt.object
			}
			if !named {
				t.Errorf("found %v", found)
			}
		})
	}
}

// TestReadError checks that an error of the reader is passed on.
func TestReadError(t *testing.T) {
	b := imagetest.New().Build()
	for at := 0; at < len(b); at += 4096 {
		broken := errors.New("the disk is gone")
		m, err := image.Open(&failing{b, int64(at), broken}, int64(len(b)))
		if err == nil {
			_, err = m.Check()
		}
		if err == nil {
			_, err = m.Digest256()
		}
		if err != nil && !errors.Is(err, broken) {
			t.Errorf("at 0x%x: %v", at, err)
		}
	}
}

// failing does not read one sector.
type failing struct {
	b   []byte
	at  int64
	err error
}

func (f *failing) ReadAt(p []byte, off int64) (int, error) {
	if off < f.at+4096 && f.at < off+int64(len(p)) {
		return 0, f.err
	}
	return bytes.NewReader(f.b).ReadAt(p, off)
}

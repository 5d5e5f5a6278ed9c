package image_test

import (
	"bytes"
	"errors"
	"testing"

	"portcullis/firmware/image"
	"portcullis/firmware/imagetest"
)

// FuzzImage opens images that were changed in places, and calls every method on those that can be opened. A change is three
// bytes of place and one of value; a place beyond the end cuts the image there.
func FuzzImage(f *testing.F) {
	var bases [][]byte
	for i, s := range []*imagetest.Spec{imagetest.New(), imagetest.New(), imagetest.New(), imagetest.New(), hashed(0x218), hashed(0x21C)} {
		s.Main = s.Main[:216]
		s.Component, s.TOCShift = i == 1, i == 5
		switch i {
		case 2:
			s.Format = 3
		case 3:
			s.Format = 5
		}
		bases = append(bases, s.Build())
		f.Add(byte(i), []byte{})
		f.Add(byte(i), []byte{0, 0x40, 0x20 + 1, 0xFF, 0, 0x40, 0x54, 0x7F})
		f.Add(byte(i), []byte{0xFF, 0x60, 0x00, 0x00})
	}
	f.Fuzz(func(t *testing.T, which byte, changes []byte) {
		b := bytes.Clone(bases[int(which)%len(bases)])
		for c := changes; len(c) >= 4; c = c[4:] {
			at := int(c[0])<<16 | int(c[1])<<8 | int(c[2])
			if at < len(b) {
				b[at] = c[3]
			} else if c[0] == 0xFF {
				b = b[:min(len(b), at&0xFFFF)]
			}
		}
		m, err := open(b)
		if err != nil {
			if !image.IsLayout(err) && !errors.Is(err, image.ErrUnknown) {
				t.Errorf("an error of reading out of memory: %v", err)
			}
			return
		}
		everything(t, m)
	})
}

// FuzzBytes opens anything.
func FuzzBytes(f *testing.F) {
	b := imagetest.New().Build()
	for _, n := range []int{0, 15, 16, 0x18, 0x98, 0x540} {
		f.Add(b[:n])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := open(b); err == nil {
			everything(t, m)
		}
	})
}

// everything asks an image all there is, out of memory.
func everything(t *testing.T, m *image.Image) {
	for _, s := range m.Sections {
		if s.Size < 0 || s.Offset < 0 || s.Offset > 1<<32 {
			t.Errorf("section %+v", s)
		}
	}
	if _, err := m.Check(); err != nil && !image.IsLayout(err) {
		t.Errorf("check: %v", err)
	}
	_, err256 := m.Digest256()
	_, err512 := m.Digest512()
	for _, err := range []error{err256, err512} {
		if err != nil && !image.IsLayout(err) && !errors.Is(err, image.ErrOpaque) {
			t.Errorf("digest: %v", err)
		}
		if m.Opaque != "" && err == nil {
			t.Error("an opaque image has a digest")
		}
	}
}

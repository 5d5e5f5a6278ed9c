package mfa2_test

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"portcullis/firmware/imagetest"
	"portcullis/firmware/mfa2"
)

// read opens a package and unpacks all of it.
func read(b []byte) (images [][]byte, err error) {
	p, err := mfa2.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	err = p.Each(func(_ mfa2.Component, image []byte) error {
		images = append(images, bytes.Clone(image))
		return nil
	})
	return images, err
}

func two() *imagetest.Package {
	return &imagetest.Package{Images: [][]byte{[]byte("the first image"), bytes.Repeat([]byte("2"), 200_000)}, PSIDs: []string{"TST0000000001", "TST\x1b[2J"}}
}

func TestPackage(t *testing.T) {
	p := two()
	images, err := read(p.Build())
	if err != nil || len(images) != 2 || !bytes.Equal(images[0], p.Images[0]) || !bytes.Equal(images[1], p.Images[1]) {
		t.Fatalf("%d images, %v", len(images), err)
	}
	b := p.Build()
	opened, err := mfa2.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if got := opened.Components[1].PSIDs[0]; got != `TST\x1b[2J` {
		t.Errorf("a hostile PSID reads %q", got)
	}
}

// TestOldPackage has bytes behind the stream, inside the archive: old packages do.
func TestOldPackage(t *testing.T) {
	block := append([]byte("#BIN.COMPONENT!#"), "an image"...)
	b := (&imagetest.Package{Images: [][]byte{[]byte("an image")}, PSIDs: []string{"A"}, Archive: append(imagetest.XZ(block, 1<<16), "left over"...)}).Build()
	images, err := read(b)
	if err != nil || len(images) != 1 || string(images[0]) != "an image" {
		t.Errorf("%q, %v", images, err)
	}
}

// TestPackageRefused has packages that are wrong in one way each.
func TestPackageRefused(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(p *imagetest.Package)
		mangle func(b []byte) []byte
		want   string
	}{
		{"changed archive", nil, func(b []byte) []byte { b[len(b)-1] ^= 1; return b }, "digest of the file"},
		{"changed descriptors", nil, func(b []byte) []byte { b[200] ^= 1; return b }, "digest of its descriptors"},
		{"cut off", nil, func(b []byte) []byte { return b[:len(b)-4] }, "runs over the end"},
		{"longer", nil, func(b []byte) []byte { return append(b, 0) }, "digest of the file"},
		{"head beyond the limit", nil, func(b []byte) []byte { b[32] = 1; return b }, "its archive would begin"},
		{"unpacks to too much", func(p *imagetest.Package) { p.Unpacked = 1<<30 + 1 }, nil, "the limit is 1073741824"},
		{"component outside", func(p *imagetest.Package) { p.Offset = 1 << 20 }, nil, "run over the archive"},
		{"offset that wraps", func(p *imagetest.Package) { p.Offset = 1<<64 - 64 }, nil, "run over the archive"},
		{"component too large", func(p *imagetest.Package) { p.Size, p.Unpacked = 64<<20+1, 1<<30 }, nil, "the limit is"},
		{"components overlap", func(p *imagetest.Package) { p.Offset = 1<<64 - 8 }, nil, "overlaps component 0"},
		{"no magic before it", func(p *imagetest.Package) { p.Offset, p.Unpacked = 8, 300_000 }, nil, "does not begin with"},
		{"archive too short", func(p *imagetest.Package) { p.Size, p.Unpacked = 300_000, 400_000 }, nil, "unexpected EOF"},
		{"archive is no XZ", func(p *imagetest.Package) { p.Archive = []byte("this is not what was said") }, nil, "file format not recognized"},
		{"device of no component", func(p *imagetest.Package) { p.PSIDs = append(p.PSIDs, "C") }, nil, "names component 2"},
		{"other compression", nil, func(b []byte) []byte { b[48] = 2; imagetest.Reseal(b); return b }, "compression 2"},
		{"group of another size", nil, func(b []byte) []byte { b[16+4+3]++; imagetest.Reseal(b); return b }, "its parts have"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := two()
			if tt.change != nil {
				tt.change(p)
			}
			b := p.Build()
			if tt.mangle != nil {
				b = tt.mangle(b)
			}
			_, err := read(b)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !mfa2.IsFormat(err) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// TestPrefixes cuts a package off after each of its bytes.
func TestPrefixes(t *testing.T) {
	b := (&imagetest.Package{Images: [][]byte{[]byte("an image")}, PSIDs: []string{"A"}}).Build()
	for n := range b {
		if _, err := read(b[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are taken for a package", n, len(b))
		}
	}
}

// allocated returns how many bytes were allocated while f ran.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestBombs reads archives that want more memory than they may have. The total of all allocations, freed or not, bounds the
// memory in use at once.
func TestBombs(t *testing.T) {
	zeros, err := os.ReadFile("testdata/zeros-256MiB.xz")
	if err != nil {
		t.Fatal(err)
	}
	const small = 1 << 20
	image := [][]byte{bytes.Repeat([]byte{1}, 1<<12)}
	block := append([]byte("#BIN.COMPONENT!#"), image[0]...)
	for _, tt := range []struct {
		name  string
		p     imagetest.Package
		limit uint64
		want  string
	}{
		{"a dictionary of 4 GiB", imagetest.Package{Archive: imagetest.XZ(block, 1<<32-1)}, small, "dictionary size exceeds"},
		{"a dictionary of 128 MiB", imagetest.Package{Archive: imagetest.XZ(block, 128<<20)}, small, "dictionary size exceeds"},
		{"256 MiB of zeros that are no image", imagetest.Package{Archive: zeros, Unpacked: 256 << 20, Size: 64 << 20}, 70 << 20, "does not begin with"},
		{"256 MiB of zeros before the image", imagetest.Package{Archive: zeros, Unpacked: 512 << 20, Offset: 300 << 20}, 70 << 20, "unexpected EOF"},
		{"an image of 64 MiB that is not there", imagetest.Package{Unpacked: 1 << 30, Size: 64 << 20}, 4 << 20, "unexpected EOF"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			defer debug.SetGCPercent(debug.SetGCPercent(-1))
			tt.p.Images, tt.p.PSIDs = image, []string{"A"}
			b := tt.p.Build()
			var err error
			used := allocated(func() { _, err = read(b) })
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if used > tt.limit {
				t.Errorf("%d bytes were allocated, want at most %d", used, tt.limit)
			}
		})
	}
}

// FuzzPackage reads packages with right digests, which everything else depends on.
func FuzzPackage(f *testing.F) {
	for _, p := range []*imagetest.Package{two(), {Images: [][]byte{[]byte("x")}, PSIDs: []string{"A"}}, {}} {
		f.Add(p.Build())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = bytes.Clone(b)
		imagetest.Reseal(b)
		p, err := mfa2.Open(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		size := int64(0)
		_ = p.Each(func(c mfa2.Component, image []byte) error {
			if int64(len(image)) != c.Size {
				t.Errorf("component %d has %d bytes, and says %d", c.Index, len(image), c.Size)
			}
			size += c.Size
			return nil
		})
		if size > mfa2.MaxUnpacked {
			t.Errorf("%d bytes were unpacked", size)
		}
	})
}

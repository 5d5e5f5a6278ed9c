package webtest

import (
	"image"
	"image/color"
	"image/draw"
	"os"
	"path/filepath"
	"testing"
)

// TestPictures: each picture in the documents is small, and a comparison finds what is no such page, but not the same page
// with its text a little elsewhere.
func TestPictures(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root(t), "docs", "pictures", "*.png"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d pictures, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			if info, err := os.Stat(file); err != nil || info.Size() > largest {
				t.Fatalf("its size is %d, want %d at most; %v", info.Size(), largest, err)
			}
			is, err := read(file)
			if err != nil {
				t.Fatal(err)
			}
			changed := func(change func(*image.RGBA)) float64 {
				out := image.NewRGBA(is.Bounds())
				draw.Draw(out, out.Bounds(), is, image.Point{}, draw.Src)
				change(out)
				return differ(out, is)
			}
			if share := changed(func(*image.RGBA) {}); share != 0 {
				t.Errorf("it differs from itself by %g", share)
			}
			if share := changed(func(p *image.RGBA) { draw.Draw(p, p.Bounds(), is, image.Pt(2, 2), draw.Src) }); share > tolerance {
				t.Errorf("moved by two pixels it differs by %g, want %g at most", share, tolerance)
			}
			blank := image.NewUniform(color.White)
			if share := changed(func(p *image.RGBA) { draw.Draw(p, image.Rect(0, 100, 1280, 900), blank, image.Point{}, draw.Src) }); share <= tolerance {
				t.Errorf("without its content it differs by %g, want more than %g", share, tolerance)
			}
			if share := differ(is, is.(*image.Paletted).SubImage(image.Rect(0, 0, 640, 450))); share != 1 {
				t.Errorf("its quarter differs by %g, want 1", share)
			}
		})
	}
}

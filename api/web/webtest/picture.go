package webtest

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

var update = flag.Bool("web.update", false, "write the pictures in docs/pictures instead of comparing with them")

const (
	// largest is how many bytes a picture in the documents may have.
	largest = 100 << 10
	// colors is how many colors it has.
	colors = 96

	// block is the side of the squares whose mean colors are compared, in pixels. A line of text in another font has about the
	// same mean color.
	block = 32
	// apart is by how much the means of a square may differ, of 255.
	apart = 6
	// tolerance is the share of squares with content that may differ: times, counts and the ends of lines do.
	tolerance = 0.22
)

// Document judges the page as Look does, and compares how it looks with its picture in docs/pictures.
func (p *Page) Document(name string) { p.document(name, tolerance) }

// Illustrate does the same for a page with a list of what happened, but for the comparison: it has as many rows as there were
// events. Its picture must be there, and be one of a page of that size.
func (p *Page) Illustrate(name string) { p.document(name, 0.99) }

func (p *Page) document(name string, most float64) {
	p.t.Helper()
	p.Look(name)
	Value[bool](p, "window.scrollTo(0, 0); true")
	p.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 0, 0)) // a row below the pointer has another color
	data, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatalf("take a picture: %v", err)
	}
	got, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		p.t.Fatalf("the picture of %s: %v", name, err)
	}
	file := filepath.Join(root(p.t), "docs", "pictures", name+".png")
	if *update {
		if err := write(file, got); err != nil {
			p.t.Error(err)
		}
		return
	}
	want, err := read(file)
	if err != nil {
		p.t.Errorf("%v: go test -web.update makes it", err)
		return
	}
	if share := differ(got, want); share > most {
		p.t.Errorf("the page differs from %s in %.0f %% of its content, want %.0f %% at most: look at it (-web.pictures DIR); if it is right, -web.update writes the picture again",
			file, 100*share, 100*most)
	}
}

func read(file string) (image.Image, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	out, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("read the picture %s: %w", file, err)
	}
	return out, nil
}

// write writes a picture with few colors.
func write(file string, picture image.Image) error {
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, reduce(picture)); err != nil {
		return fmt.Errorf("write the picture %s: %w", file, err)
	}
	if b.Len() > largest {
		return fmt.Errorf("the picture %s has %d bytes, want %d at most", file, b.Len(), largest)
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}

// reduce returns a picture with the most frequent colors alone. Each other color becomes the nearest of them.
func reduce(picture image.Image) *image.Paletted {
	counts := map[color.RGBA]int{}
	each(picture.Bounds(), func(x, y int) { counts[at(picture, x, y)]++ })
	frequent := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	var palette color.Palette
	for _, c := range frequent[:min(colors, len(frequent))] {
		palette = append(palette, c)
	}
	nearest := map[color.RGBA]uint8{}
	for c := range counts {
		nearest[c] = uint8(palette.Index(c))
	}
	out := image.NewPaletted(picture.Bounds(), palette)
	each(picture.Bounds(), func(x, y int) { out.SetColorIndex(x, y, nearest[at(picture, x, y)]) })
	return out
}

func each(r image.Rectangle, visit func(x, y int)) {
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			visit(x, y)
		}
	}
}

func at(picture image.Image, x, y int) color.RGBA {
	return color.RGBAModel.Convert(picture.At(x, y)).(color.RGBA)
}

// differ returns the share of squares whose mean colors differ, of those that have more than one color in one of the pictures.
// Pictures of two sizes differ everywhere.
func differ(a, b image.Image) float64 {
	if a.Bounds() != b.Bounds() || a.Bounds().Empty() {
		return 1
	}
	all, other := 0, 0
	r := a.Bounds()
	for y := r.Min.Y; y < r.Max.Y; y += block {
		for x := r.Min.X; x < r.Max.X; x += block {
			square := image.Rect(x, y, x+block, y+block).Intersect(r)
			p, plain := mean(a, square)
			q, too := mean(b, square)
			unlike := false
			for i := range p {
				unlike = unlike || max(p[i], q[i])-min(p[i], q[i]) > apart
			}
			if unlike {
				other++
			}
			if unlike || !plain || !too {
				all++
			}
		}
	}
	return float64(other) / float64(max(all, 1))
}

// mean returns the mean color of a square, and reports whether all of it has that color.
func mean(picture image.Image, square image.Rectangle) (out [3]int, plain bool) {
	first := at(picture, square.Min.X, square.Min.Y)
	plain = true
	each(square, func(x, y int) {
		c := at(picture, x, y)
		plain = plain && c == first
		out[0], out[1], out[2] = out[0]+int(c.R), out[1]+int(c.G), out[2]+int(c.B)
	})
	for i := range out {
		out[i] /= square.Dx() * square.Dy()
	}
	return out, plain
}

package ib

import (
	"slices"
	"testing"
)

func TestSpeedMasks(t *testing.T) {
	for s := SDR; s <= XDR; s++ {
		m, e, e2 := s.Masks()
		want := s
		if s == FDR10 {
			want = QDR // has no bit in PortInfo
		}
		if got := Fastest(m, e, e2); got != want {
			t.Errorf("the fastest up to %v is %v", s, got)
		}
		if parsed, err := ParseSpeed(s.String()); err != nil || parsed != s {
			t.Errorf("ParseSpeed(%v) = %v, %v", s, parsed, err)
		}
		if s > SDR && s.LaneRate() < (s-1).LaneRate() {
			t.Errorf("%v is slower than %v", s, s-1)
		}
	}
	if m, e, e2 := Speed(0).Masks(); m != 0 || e != 0 || e2 != 0 || Fastest(m, e, e2) != 0 || Speed(99).LaneRate() != 0 || Speed(99).DataRate() != 0 {
		t.Error("no speed has masks or a rate")
	}
	for _, s := range []string{"", "none", "5", "XDRR"} {
		if got, err := ParseSpeed(s); err == nil {
			t.Errorf("ParseSpeed(%q) = %v, want an error", s, got)
		}
	}
}

func TestLinkWidths(t *testing.T) {
	for _, tt := range []struct {
		mask, widest, upTo LinkWidth
	}{
		{Width1x | Width4x, Width4x, Width1x | Width2x | Width4x},
		{Width2x | Width1x, Width2x, Width1x | Width2x},
		{31, Width12x, 31},
		{Width8x, Width8x, 31 &^ Width12x},
	} {
		if got := tt.mask.Widest(); got != tt.widest {
			t.Errorf("the widest of %v is %v, want %v", tt.mask, got, tt.widest)
		}
		if got := tt.widest.UpTo(); got != tt.upTo {
			t.Errorf("widths up to %v are %v, want %v", tt.widest, got, tt.upTo)
		}
		if w, err := ParseLinkWidth(tt.widest.String()); err != nil || w != tt.widest {
			t.Errorf("ParseLinkWidth(%v) = %v, %v", tt.widest, w, err)
		}
	}
	if w, err := ParseLinkWidth("1x|4x"); err == nil {
		t.Errorf("two widths are read as %v", w)
	}
	if LinkWidth(0).Widest() != 0 {
		t.Error("an empty mask has a widest width")
	}
}

// TestRateOfLinks: the table of the standard, and of NVIDIA's headers for XDR: rate code by speed and by 1x, 2x, 4x, 8x and
// 12x.
func TestRateOfLinks(t *testing.T) {
	widths := []LinkWidth{Width1x, Width2x, Width4x, Width8x, Width12x}
	for s, want := range map[Speed][5]Rate{
		SDR: {2, 5, 3, 6, 4}, DDR: {5, 3, 6, 7, 8}, QDR: {3, 6, 7, 9, 10}, FDR10: {3, 6, 7, 9, 10}, FDR: {11, 19, 12, 13, 14},
		EDR: {15, 20, 16, 17, 18}, HDR: {20, 16, 17, 21, 22}, NDR: {16, 17, 21, 23, 24}, XDR: {17, 21, 23, 25, 26},
	} {
		for i, w := range widths {
			if got := RateOf(w, s); got != want[i] {
				t.Errorf("%v %v is rate %d, want %d", w, s, got, want[i])
			}
		}
	}
	if r := RateOf(Width1x|Width4x, SDR); r != 0 {
		t.Errorf("two widths have rate %v", r)
	}
}

func TestRateOrder(t *testing.T) {
	var all []Rate
	for r := Rate2_5; r <= Rate2400; r++ {
		all = append(all, r)
	}
	slices.SortFunc(all, Rate.Compare)
	want := []Rate{2, 5, 3, 11, 6, 15, 19, 4, 7, 20, 12, 8, 9, 16, 13, 10, 14, 17, 18, 21, 22, 23, 24, 25, 26}
	if !slices.Equal(all, want) {
		t.Errorf("codes by rate are %v, want %v", all, want)
	}
	for _, tt := range []struct{ r, top, want Rate }{
		{Rate400, Rate300, Rate300},
		{Rate100, Rate300, Rate100},
		{Rate28, Rate300, Rate25},
		{Rate50, Rate300, Rate40},
		{Rate1600, Rate2400, Rate1600},
		{0, Rate2400, 0},
	} {
		if got := tt.r.AtMost(tt.top); got != tt.want {
			t.Errorf("%v up to code %d is %v, want %v", tt.r, tt.top, got, tt.want)
		}
	}
	for r, want := range map[Rate]string{Rate2_5: "2.5 Gb/s", Rate1200: "1200 Gb/s", 1: "Rate(1)", 99: "Rate(99)"} {
		if got := r.String(); got != want {
			t.Errorf("rate %d is called %q, want %q", uint8(r), got, want)
		}
	}
}

// What the encoding takes of a lane is no data rate.
func TestDataRates(t *testing.T) {
	for s, want := range map[Speed]int{SDR: 2000, DDR: 4000, QDR: 8000, FDR10: 10000, FDR: 13636, EDR: 25000, HDR: 50000, NDR: 100000, XDR: 200000} {
		if got := s.DataRate(); got != want {
			t.Errorf("a lane of %v carries %d Mb/s, want %d", s, got, want)
		}
	}
}

package ib

import (
	"testing"
	"time"
)

func TestMTU(t *testing.T) {
	for m, want := range map[MTU]int{0: 0, MTU256: 256, MTU512: 512, MTU1024: 1024, MTU2048: 2048, MTU4096: 4096, 6: 0} {
		if got := m.Bytes(); got != want {
			t.Errorf("code %d: %d bytes, want %d", m, got, want)
		}
		if want != 0 && MTUFromBytes(want) != m {
			t.Errorf("%d bytes: code %d, want %d", want, MTUFromBytes(want), m)
		}
	}
	for _, n := range []int{0, 128, 1500, 8192} {
		if m := MTUFromBytes(n); m != 0 {
			t.Errorf("%d bytes: code %d, want none", n, m)
		}
	}
}

func TestVLCap(t *testing.T) {
	for c, want := range map[VLCap]int{0: 0, 1: 1, 2: 2, 3: 4, 4: 8, 5: 15, 6: 0} {
		if got := c.Count(); got != want {
			t.Errorf("code %d: %d VLs, want %d", c, got, want)
		}
	}
}

func TestLinkRate(t *testing.T) {
	tests := []struct {
		name string
		w    LinkWidth
		s    LinkSpeed
		e    LinkSpeedExt
		want int
	}{
		{"1x SDR", Width1x, SpeedSDR, 0, 2500},
		{"4x DDR", Width4x, SpeedDDR, 0, 20000},
		{"12x QDR", Width12x, SpeedQDR, 0, 120000},
		{"4x FDR", Width4x, 0, SpeedFDR, 56000},
		{"extended wins", Width4x, SpeedQDR, SpeedEDR, 100000},
		{"2x HDR", Width2x, SpeedQDR, SpeedHDR, 100000},
		{"8x NDR", Width8x, 0, SpeedNDR, 800000},
		{"two widths", Width1x | Width4x, SpeedSDR, 0, 0},
		{"two speeds", Width4x, SpeedSDR | SpeedDDR, 0, 0},
		{"unknown extended speed", Width4x, SpeedQDR, 3, 0},
		{"nothing", 0, 0, 0, 0},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			if got := LinkRate(c.w, c.s, c.e); got != c.want {
				t.Errorf("%d Mb/s, want %d", got, c.want)
			}
		})
	}
}

func TestExpTime(t *testing.T) {
	for e, want := range map[ExpTime]time.Duration{
		0:  4096 * time.Nanosecond,
		18: 1073741824 * time.Nanosecond,
		31: 8796093022208 * time.Nanosecond,
		99: 8796093022208 * time.Nanosecond,
	} {
		if got := e.Duration(); got != want {
			t.Errorf("%d: %v, want %v", e, got, want)
		}
	}
}

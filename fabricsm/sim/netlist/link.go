package netlist

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"portcullis/fabricsm/ib"
)

// widths are the enabled masks that ibsim sets for a port with a cable of this width.
var widths = []struct {
	lanes int
	mask  ib.LinkWidth
}{{1, 1}, {2, 16}, {4, 3}, {8, 4}, {12, 11}}

// speeds are in the order of speed. A port can do all that is slower, too.
var speeds = []struct {
	name  string
	speed ib.LinkSpeed
	ext   ib.LinkSpeedExt
	fdr10 bool
	ext2  ib.LinkSpeedExt2
}{
	{"SDR", 1, 0, false, 0},
	{"DDR", 3, 0, false, 0},
	{"QDR", 7, 0, false, 0},
	{"FDR10", 7, 0, true, 0},
	{"FDR", 7, 1, true, 0},
	{"EDR", 7, 3, true, 0},
	{"HDR", 7, 7, true, 0},
	{"NDR", 7, 15, true, 0},
	{"XDR", 7, 15, true, ib.SpeedXDR}, // ibsim does not know it
}

// ParseLink reads the notation of ibnetdiscover, for example "4xEDR".
func ParseLink(s string) (Link, error) {
	lanes, name, ok := strings.Cut(s, "x")
	var l Link
	for _, w := range widths {
		if ok && strconv.Itoa(w.lanes) == lanes {
			l.Width = w.mask
		}
	}
	for _, v := range speeds {
		if v.name == name {
			l.Speed, l.SpeedExt, l.FDR10, l.SpeedExt2 = v.speed, v.ext, v.fdr10, v.ext2
		}
	}
	if l.Width == 0 || l.Speed == 0 {
		return Link{}, fmt.Errorf("link %q: want a width of 1x, 2x, 4x, 8x or 12x and a speed of SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR or XDR, for example 4xEDR", s)
	}
	return l, nil
}

// String returns the widest and fastest link of the port, for example "4xEDR".
func (l Link) String() string {
	lanes := 0
	for _, w := range widths {
		if highest(uint8(l.Width)) == highest(uint8(w.mask)) {
			lanes = w.lanes
		}
	}
	name := "SDR"
	for _, v := range speeds {
		if highest(uint8(l.Speed)) == highest(uint8(v.speed)) &&
			highest(uint8(l.SpeedExt)) == highest(uint8(v.ext)) && (l.FDR10 == v.fdr10 || v.ext != 0) &&
			l.SpeedExt2 == v.ext2 {
			name = v.name
		}
	}
	return fmt.Sprintf("%dx%s", lanes, name)
}

func highest(mask uint8) int { return bits.Len8(mask) }

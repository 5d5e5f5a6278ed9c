package ib

import (
	"fmt"
	"strings"
)

// LinkSpeedExt2 is a bit mask of the second set of extended link speeds
// (PortInfo of ports with IsExtendedSpeeds2Supported). Zero means that
// LinkSpeedExt counts.
type LinkSpeedExt2 uint8

// SpeedXDR is 212.5 Gb/s per lane.
const SpeedXDR LinkSpeedExt2 = 1

// String names the speeds of the mask, or "none".
func (s LinkSpeedExt2) String() string { return maskNames(uint8(s), "XDR") }

// Speed is one link speed, by any of the three fields that PortInfo has for it
// and NVIDIA's addition for FDR10. Later ones are faster. Zero means none, or
// one that is not known.
type Speed uint8

// Link speeds, slowest first.
const (
	SDR   Speed = 1 + iota // 2.5 Gb/s a lane
	DDR                    // 5
	QDR                    // 10
	FDR10                  // 10, with less overhead than QDR; NVIDIA's addition
	FDR                    // 14
	EDR                    // 25
	HDR                    // 50
	NDR                    // 100
	XDR                    // 200
)

var (
	speedNames = [...]string{"none", "SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR", "NDR", "XDR"}
	laneRates  = [...]int{0, 2500, 5000, 10000, 10000, 14000, 25000, 50000, 100000, 200000}
)

// ParseSpeed reads the name of a speed, "SDR" to "XDR", in capital or small
// letters.
func ParseSpeed(s string) (Speed, error) {
	for i, name := range speedNames[1:] {
		if strings.EqualFold(s, name) {
			return Speed(i + 1), nil
		}
	}
	return 0, fmt.Errorf("link speed %q: want one of %s", s, strings.Join(speedNames[1:], ", "))
}

// String returns the name.
func (s Speed) String() string {
	if int(s) < len(speedNames) {
		return speedNames[s]
	}
	return fmt.Sprintf("Speed(%d)", uint8(s))
}

// LaneRate returns the nominal data rate of a lane in Mb/s, as links are sold; 0 for a speed that is not known.
func (s Speed) LaneRate() int {
	if int(s) < len(laneRates) {
		return laneRates[s]
	}
	return 0
}

// DataRate returns what a lane carries of packets in Mb/s: what is left of the nominal rate where the encoding takes a part of it; 0 for
// a speed that is not known.
func (s Speed) DataRate() int {
	switch s {
	case SDR, DDR, QDR: // 8b/10b
		return s.LaneRate() / 10 * 8
	case FDR: // 14.0625 Gb/s, 64b/66b
		return 13636
	default:
		return s.LaneRate()
	}
}

// Fastest returns the fastest speed of masks, as PortInfo has them for supported, enabled or active speeds.
func Fastest(s LinkSpeed, e LinkSpeedExt, e2 LinkSpeedExt2) Speed {
	switch {
	case e2&SpeedXDR != 0:
		return XDR
	case e&SpeedNDR != 0:
		return NDR
	case e&SpeedHDR != 0:
		return HDR
	case e&SpeedEDR != 0:
		return EDR
	case e&SpeedFDR != 0:
		return FDR
	case s&SpeedQDR != 0:
		return QDR
	case s&SpeedDDR != 0:
		return DDR
	case s&SpeedSDR != 0:
		return SDR
	default:
		return 0
	}
}

// Masks returns the masks of a speed and all slower ones.
func (s Speed) Masks() (m LinkSpeed, e LinkSpeedExt, e2 LinkSpeedExt2) {
	m = SpeedQDR | SpeedDDR | SpeedSDR
	switch s {
	case SDR:
		m = SpeedSDR
	case DDR:
		m = SpeedSDR | SpeedDDR
	case QDR, FDR10:
	case FDR:
		e = SpeedFDR
	case EDR:
		e = SpeedFDR | SpeedEDR
	case HDR:
		e = SpeedFDR | SpeedEDR | SpeedHDR
	case NDR:
		e = SpeedFDR | SpeedEDR | SpeedHDR | SpeedNDR
	case XDR:
		e, e2 = SpeedFDR|SpeedEDR|SpeedHDR|SpeedNDR, SpeedXDR
	default:
		m = 0
	}
	return m, e, e2
}

// ParseLinkWidth reads the name of one width, "1x", "2x", "4x", "8x" or "12x".
func ParseLinkWidth(s string) (LinkWidth, error) {
	for _, w := range []LinkWidth{Width1x, Width2x, Width4x, Width8x, Width12x} {
		if strings.EqualFold(s, w.String()) {
			return w, nil
		}
	}
	return 0, fmt.Errorf("link width %q: want 1x, 2x, 4x, 8x or 12x", s)
}

// Widest returns the widest of a mask, 0 for an empty one.
func (w LinkWidth) Widest() LinkWidth {
	for _, one := range []LinkWidth{Width12x, Width8x, Width4x, Width2x, Width1x} {
		if w&one != 0 {
			return one
		}
	}
	return 0
}

// UpTo returns the mask of one width and all narrower ones.
func (w LinkWidth) UpTo() (mask LinkWidth) {
	for _, one := range []LinkWidth{Width1x, Width2x, Width4x, Width8x, Width12x} {
		if one.Lanes() <= w.Lanes() {
			mask |= one
		}
	}
	return mask
}

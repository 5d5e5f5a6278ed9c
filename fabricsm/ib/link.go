package ib

import (
	"fmt"
	"time"
)

// SL is a service level, 0 to 15.
type SL uint8

// VL is a virtual lane, 0 to 15; 15 carries management only, and as the target
// of a mapping it means "drop".
type VL uint8

// VL15 is the management and drop lane.
const VL15 VL = 15

// MTU is the standard's code for a maximum transfer unit, 1 (256 bytes) to 5
// (4096 bytes). Zero means "not given".
type MTU uint8

// MTU codes.
const (
	MTU256  MTU = 1
	MTU512  MTU = 2
	MTU1024 MTU = 3
	MTU2048 MTU = 4
	MTU4096 MTU = 5
)

// Bytes returns the size in bytes, 0 for an unknown code.
func (m MTU) Bytes() int {
	if m < MTU256 || m > MTU4096 {
		return 0
	}
	return 128 << m
}

// MTUFromBytes returns the code of a size in bytes, 0 if there is none.
func MTUFromBytes(n int) MTU {
	for m := MTU256; m <= MTU4096; m++ {
		if m.Bytes() == n {
			return m
		}
	}
	return 0
}

// String returns the size in bytes.
func (m MTU) String() string {
	if b := m.Bytes(); b != 0 {
		return fmt.Sprintf("%d", b)
	}
	return fmt.Sprintf("MTU(%d)", uint8(m))
}

// VLCap is the standard's code for a number of data VLs: 1: VL0, 2: VL0-1,
// 3: VL0-3, 4: VL0-7, 5: VL0-14. Zero means "no change" in a Set.
type VLCap uint8

// String names the range, "VL0-7", and unknown codes by number.
func (c VLCap) String() string {
	switch n := c.Count(); n {
	case 0:
		return fmt.Sprintf("VLCap(%d)", uint8(c))
	case 1:
		return "VL0"
	default:
		return fmt.Sprintf("VL0-%d", n-1)
	}
}

// Count returns the number of data VLs, 0 for an unknown code.
func (c VLCap) Count() int {
	switch {
	case c >= 1 && c <= 4:
		return 1 << (c - 1)
	case c == 5:
		return 15
	default:
		return 0
	}
}

// LinkWidth is a bit mask of link widths. An active width has one bit. Zero
// means "not given", in a Set "no change".
type LinkWidth uint8

// Link widths.
const (
	Width1x  LinkWidth = 1
	Width4x  LinkWidth = 2
	Width8x  LinkWidth = 4
	Width12x LinkWidth = 8
	Width2x  LinkWidth = 16
)

// Lanes returns the number of lanes of a single width, 0 for anything else.
func (w LinkWidth) Lanes() int {
	switch w {
	case Width1x:
		return 1
	case Width2x:
		return 2
	case Width4x:
		return 4
	case Width8x:
		return 8
	case Width12x:
		return 12
	default:
		return 0
	}
}

// String names the widths of the mask, "1x|4x", or "none".
func (w LinkWidth) String() string {
	return maskNames(uint8(w), "1x", "4x", "8x", "12x", "2x")
}

// LinkSpeed is a bit mask of the original link speeds. An active speed has one
// bit. Zero means "not given", in a Set "no change".
type LinkSpeed uint8

// Original link speeds.
const (
	SpeedSDR LinkSpeed = 1 // 2.5 Gb/s per lane
	SpeedDDR LinkSpeed = 2 // 5 Gb/s
	SpeedQDR LinkSpeed = 4 // 10 Gb/s
)

// String names the speeds of the mask, "SDR|DDR", or "none".
func (s LinkSpeed) String() string { return maskNames(uint8(s), "SDR", "DDR", "QDR") }

// LinkSpeedExt is a bit mask of extended link speeds. With zero there is no extended speed and LinkSpeed counts.
type LinkSpeedExt uint8

// Extended link speeds.
const (
	SpeedFDR LinkSpeedExt = 1 // 14.0625 Gb/s per lane
	SpeedEDR LinkSpeedExt = 2 // 25.78125 Gb/s
	SpeedHDR LinkSpeedExt = 4 // 53.125 Gb/s
	SpeedNDR LinkSpeedExt = 8 // 106.25 Gb/s
)

// String names the speeds of the mask, "FDR|EDR", or "none".
func (s LinkSpeedExt) String() string { return maskNames(uint8(s), "FDR", "EDR", "HDR", "NDR") }

// LinkRate returns the nominal data rate of an active link in Mb/s, as links are sold: 4x EDR is 100000. It is 0 if width
// or speed is not a single known bit.
func LinkRate(w LinkWidth, s LinkSpeed, e LinkSpeedExt) int {
	lane := 0
	switch {
	case e == SpeedFDR:
		lane = 14000
	case e == SpeedEDR:
		lane = 25000
	case e == SpeedHDR:
		lane = 50000
	case e == SpeedNDR:
		lane = 100000
	case e != 0:
	case s == SpeedSDR:
		lane = 2500
	case s == SpeedDDR:
		lane = 5000
	case s == SpeedQDR:
		lane = 10000
	}
	return w.Lanes() * lane
}

// ExpTime is a duration coded as 4.096 us * 2^value, value 0 to 31; as a packet lifetime, 20 and above mean "infinite".
type ExpTime uint8

// Duration returns the time that a value of 0 to 31 stands for; larger ones count as 31.
func (e ExpTime) Duration() time.Duration {
	return 4096 * time.Nanosecond << min(e, 31)
}

// TID is a MAD transaction identifier. On Linux the kernel owns the upper 32 bits, and ibsim the upper 16, so the lower 32
// distinguish requests.
type TID uint64

// String returns 0x and 16 digits.
func (t TID) String() string { return fmt.Sprintf("0x%016x", uint64(t)) }

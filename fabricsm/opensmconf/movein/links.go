package movein

import (
	"fmt"

	"portcullis/fabricsm/opensmconf"
	"portcullis/fabricsm/opensmconf/verdict"
)

// Values of the keys link_speed and link_width that are no speed or width.
const (
	keepLink      = "keep"
	supportedLink = "supported"
)

const (
	speedKey = "fabric.ports.link_speed"
	widthKey = "fabric.ports.link_width"
)

// masks are the values of OpenSM's options about speeds. The defaults are OpenSM's.
type masks struct{ speed, ext, fdr10 uint64 }

func (p *Plan) masks() masks {
	number := func(name string, def uint64) uint64 {
		if n, err := opensmconf.Number(p.last[name].Value, 32); err == nil {
			return n
		}
		return def
	}
	return masks{number("force_link_speed", 15), number("force_link_speed_ext", 31), number("fdr10", 1)}
}

// fastest returns the value of link_speed, and whether it enables the same speeds as the masks: OpenSM can leave out a slow
// speed below a fast one. IBA 14.2.5.6, PortInfo: 1, 2 and 4 are SDR, DDR and QDR; extended 1, 2, 4 and 8 are FDR, EDR, HDR
// and NDR; 15, and extended 31, are all that is supported, extended 30 is none.
func (m masks) fastest() (to string, same bool) {
	switch {
	case m.speed == 0 && m.ext == 0:
		return keepLink, true
	case m.ext == 31:
		return supportedLink, m.speed == 15
	case m.ext == 30 || m.ext == 0:
		switch m.speed {
		case 0:
			return keepLink, false
		case 1:
			return "SDR", m.ext == 30
		case 3:
			return "DDR", m.ext == 30
		default:
			if m.fdr10 == 1 {
				return "FDR10", m.ext == 30 && (m.speed == 7 || m.speed == 15)
			}
			return "QDR", m.ext == 30 && (m.speed == 7 || m.speed == 15)
		}
	case m.ext >= 8:
		return "NDR", m.ext == 15
	case m.ext >= 4:
		return "HDR", m.ext == 7
	case m.ext >= 2:
		return "EDR", m.ext == 3
	default:
		return "FDR", true
	}
}

// speeds decides on an option about speeds: one key stands for all of them.
func (p *Plan) speeds(s *opensmconf.Setting, it *Item, most uint64) {
	n, err := opensmconf.Number(s.Value, 32)
	if err != nil || n > most {
		it.Verdict, it.Loses, it.Text = verdict.Unknown, true, fmt.Sprintf("want 0 to %d", most)
		return
	}
	to, same := p.masks().fastest()
	it.Verdict, it.To, it.Text = verdict.Taken, to, "one name stands for the masks: that speed and slower ones"
	if !same {
		it.Verdict, it.Text = verdict.Changed, "slower speeds cannot be left out: that speed and all slower ones are enabled"
	}
	p.set(speedKey, to, it.Place()+" "+s.Name)
}

func (p *Plan) linkSpeed(s *opensmconf.Setting, it *Item)    { p.speeds(s, it, 15) }
func (p *Plan) linkSpeedExt(s *opensmconf.Setting, it *Item) { p.speeds(s, it, 31) }
func (p *Plan) fdr10(s *opensmconf.Setting, it *Item)        { p.speeds(s, it, 2) }

// linkSpeedExt2 is about speeds above NDR.
func (p *Plan) linkSpeedExt2(s *opensmconf.Setting, it *Item) {
	to, _ := p.masks().fastest()
	it.Verdict, it.To, it.Text = verdict.Changed, to, "speeds above NDR are enabled by supported, and by XDR"
	p.set(speedKey, to, it.Place()+" "+s.Name)
}

// linkWidth decides on the width. IBA 14.2.5.6: 1, 2, 4, 8 and 16 are 1x, 4x, 8x, 12x and 2x, 255 is all that is supported.
func (p *Plan) linkWidth(s *opensmconf.Setting, it *Item) {
	n, err := opensmconf.Number(s.Value, 32)
	if err != nil || n > 31 && n != 255 {
		it.Verdict, it.Loses, it.Text = verdict.Unknown, true, "want 0 to 31, or 255"
		return
	}
	it.Verdict, it.To, it.Text = verdict.Taken, supportedLink, "all widths that a port supports"
	switch n {
	case 0:
		it.To, it.Text = keepLink, "widths stay as they are found"
	case 255:
	default:
		below := uint64(0)
		for _, w := range []struct {
			bit  uint64
			name string
		}{{1, "1x"}, {16, "2x"}, {2, "4x"}, {4, "8x"}, {8, "12x"}} {
			below |= w.bit
			if n&w.bit != 0 {
				it.To, it.Text, it.Verdict = w.name, "that width and narrower ones", verdict.Taken
				if n != below {
					it.Verdict, it.Text = verdict.Changed, "narrower widths cannot be left out: that width and all narrower ones are enabled"
				}
			}
		}
	}
	p.set(widthKey, it.To, it.Place()+" "+s.Name)
}

// reregister decides on client_rereg_mode: 0 is off.
func (p *Plan) reregister(s *opensmconf.Setting, it *Item) {
	switch n, err := opensmconf.Number(s.Value, 32); {
	case err != nil || n > 2:
		it.Verdict, it.Loses, it.Text = verdict.Unknown, true, "want 0, 1 or 2"
	case n == 0:
		it.Verdict, it.To, it.Text = verdict.Taken, "false", ""
		p.set(it.Key, it.To, it.Place()+" "+s.Name)
	default:
		it.Verdict = verdict.NotNeeded
	}
}

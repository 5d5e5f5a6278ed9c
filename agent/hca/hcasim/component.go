package hcasim

import (
	"fmt"

	"portcullis/agent/hca/register"
)

// components is the table of MCQS, by index.
var components = []register.Component{
	register.BootImage, register.OEMNVConfig, register.MLNXNVConfig, register.CSToken, register.DebugToken,
	register.ToCommissioning, register.CRCSToken, register.CRDTToken,
}

// Sizes in bytes of components that can be loaded.
const (
	maxImage = 32 << 20
	maxFile  = 64 << 10
)

func maxLength(id register.Component) uint32 {
	if id == register.BootImage {
		return maxImage
	}
	return maxFile
}

// Whether a component is there (component_status).
const (
	notPresent = 0
	inUse      = 2
)

func (c *Card) readMCQS(m register.MCQS) (register.MCQS, register.Status) {
	if int(m.Index) >= len(components) || m.Device != 0 {
		return m, register.BadParameter
	}
	id := components[m.Index]
	m = register.MCQS{
		Index: m.Index, Last: int(m.Index) == len(components)-1,
		Identifier: id, State: c.update.shown[id], Status: notPresent,
	}
	if id == register.BootImage {
		m.Status = inUse
	}
	return m, register.OK
}

func (c *Card) readMCQI(m register.MCQI) (register.MCQI, register.Status) {
	if int(m.Index) >= len(components) || m.Device != 0 {
		return m, register.BadParameter
	}
	set, ok := c.properties(components[m.Index], m.Type, m.Pending)
	if !ok || m.Offset > uint32(len(set)) || m.Offset%4 != 0 {
		return m, register.BadParameter
	}
	m.InfoSize, m.Data = uint32(len(set)), [len(m.Data)]byte{}
	m.DataSize = uint16(copy(m.Data[:min(int(m.DataSize), len(m.Data))], set[m.Offset:]))
	return m, register.OK
}

// properties returns a property set of a component.
func (c *Card) properties(id register.Component, set register.PropertySet, pending bool) (p []byte, ok bool) {
	var err error
	switch set {
	case register.Capabilities:
		p, err = register.Encode(c.capabilities(id))
	case register.Version:
		fw := &c.chip.running
		if pending {
			fw = c.chip.pending
		}
		if id != register.BootImage || fw == nil {
			return nil, false
		}
		p, err = register.Encode(fw.component())
	case register.ActivationMethod:
		p, err = register.Encode(register.ComponentActivation{FWReset: true})
	default:
		return nil, false
	}
	return p, err == nil
}

func (c *Card) capabilities(id register.Component) register.ComponentCapabilities {
	const logDword = 2
	out := register.ComponentCapabilities{
		Supported: 1<<register.Capabilities | 1<<register.ActivationMethod,
		MaxLength: maxLength(id), MaxWrite: register.BlockSize, LogWordSize: logDword,
		MatchPSID: true, SignedOnly: true,
	}
	if id == register.BootImage {
		out.Supported |= 1 << register.Version
		out.SignedOnly = c.o.Security.Secured
	}
	return out
}

func (f Firmware) String() string { return fmt.Sprintf("%d.%d.%d", f.Major, f.Minor, f.SubMinor) }

// component is the property set Version of an image.
func (f Firmware) component() register.ComponentVersion {
	text := fmt.Sprintf("%d.%02d.%04d", f.Major, f.Minor, f.SubMinor)
	v := register.ComponentVersion{
		TextLength: uint8(len(text) + 1),
		Version:    f.Major<<24 | f.Minor&0xFF<<16 | f.SubMinor&0xFFFF,
	}
	copy(v.Text[:], text)
	return v
}

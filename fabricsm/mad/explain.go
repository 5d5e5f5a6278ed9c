package mad

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

// Explain writes the content of b as text: header, directed route, attribute and missing or unusual parts. b is HeaderSize
// to Size bytes of a MAD; for other lengths it returns an error and writes nothing.
func Explain(w io.Writer, b []byte, o DumpOptions) error {
	d, err := Dissect(b)
	if err != nil {
		return err
	}
	e := &explainer{w: w, o: o}
	e.header(d)
	if d.Route != nil {
		e.route(d.Route)
	}
	if d.SA != nil {
		e.sa(d)
	}
	e.attribute(d)
	e.behind(d)
	for _, n := range d.Notes {
		e.printf("Note: %s", n)
	}
	return e.err
}

// explainer writes lines until the first error.
type explainer struct {
	w   io.Writer
	o   DumpOptions
	err error
}

func (e *explainer) printf(format string, args ...any) {
	if e.err == nil {
		_, e.err = fmt.Fprintf(e.w, "%s%s\n", e.o.Indent, fmt.Sprintf(format, args...))
	}
}

func (e *explainer) header(d *Dissection) {
	h := d.Header
	e.printf("BaseVersion: %d", d.BaseVersion)
	e.printf("MgmtClass: 0x%02x (%v)", uint8(h.Class), h.Class)
	e.printf("ClassVersion: %d", h.ClassVersion)
	e.printf("Method: 0x%02x (%v)", uint8(h.Method), h.Method)
	e.printf("Status: 0x%04x (%s)", uint16(h.Status), h.StatusWords())
	e.printf("TransactionID: %v", h.TID)
	e.printf("AttributeID: 0x%04x (%s)", uint16(h.Attr), h.AttrName())
	e.printf("AttributeModifier: 0x%08x%s", h.Mod, modifierWords(h))
	if d.HasMKey {
		e.printf("M_Key: %s", keyString(d.MKey.Reveal(), d.MKey.String(), e.o.Secrets))
	}
}

func (e *explainer) route(r *RouteState) {
	direction := "outbound"
	if r.Returning {
		direction = "returning"
	}
	e.printf("Direction: %s", direction)
	e.printf("HopPointer: %d", r.HopPointer)
	e.printf("HopCount: %d", r.HopCount)
	e.printf("DrSLID: %v", r.DrSLID)
	e.printf("DrDLID: %v", r.DrDLID)
	if !r.pathsMissing {
		e.printf("InitialPath: %v", r.InitialPath)
		e.printf("ReturnPath: %v", r.ReturnPath)
	}
}

func (e *explainer) attribute(d *Dissection) {
	if d.Attribute != nil {
		e.printf("%s:", d.Layout.Name())
		e.value(d.Layout, d.Attribute)
		return
	}
	switch {
	case d.Data == nil:
	case allZero(d.Data):
		e.printf("Data: %d zero bytes", len(d.Data))
	case e.o.Secrets || !maybeSecret(d.Header):
		e.printf("Data:")
		for line := range strings.Lines(hex.Dump(d.Data)) {
			e.printf("  %s", strings.TrimRight(line, "\n"))
		}
	default:
		e.printf("Data: not shown, it may hold a key")
	}
}

// value writes a value of a layout, indented.
func (e *explainer) value(l *Layout, v any) {
	o := e.o
	o.Indent += "  "
	if e.err == nil {
		e.err = l.Dump(e.w, v, o)
	}
}

// maybeSecret reports whether data may hold a key, or contents of a sender's memory, so that they are not printed raw.
func maybeSecret(h Header) bool {
	return h.Attr == AttrPortInfo || h.Attr == AttrSMInfo || h.Attr == AttrNotice || h.Method == MethodGet
}

// modifierWords returns the meaning of the modifier, as " (port 3, block 0)".
func modifierWords(h Header) string {
	if h.Class == ClassSubnAdm && h.Attr == AttrPortInfoRecord && h.Mod&PortInfoMatchBits != 0 {
		return " (capability masks match if they have the bits)"
	}
	if h.Class != ClassSubn && h.Class != ClassSubnDR {
		return ""
	}
	m := h.Mod
	switch h.Attr {
	case AttrGUIDInfo, AttrLinearForwardingTable, AttrSwitchPortStateTable:
		return fmt.Sprintf(" (block %d)", m)
	case AttrPortInfo:
		if m&PortInfoExtSpeeds != 0 {
			return fmt.Sprintf(" (port %d, extended speeds understood)", m&0xFF)
		}
		return fmt.Sprintf(" (port %d)", m&0xFF)
	case AttrPortInfoExtended, AttrMlnxExtendedPortInfo, AttrLedInfo:
		return fmt.Sprintf(" (port %d)", m&0xFF)
	case AttrPKeyTable:
		return fmt.Sprintf(" (port %d, block %d)", m>>16, m&0xFFFF)
	case AttrSLtoVLMappingTable:
		return sltovlWords(m)
	case AttrVLArbitration:
		return fmt.Sprintf(" (%v, port %d)", VLArbHalf(m>>16), m&0xFFFF)
	case AttrMulticastForwardingTable:
		return fmt.Sprintf(" (block %d, ports %d to %d)", m&0x1FF, m>>28*16, m>>28*16+15)
	case AttrHierarchyInfo:
		return fmt.Sprintf(" (index %d, port %d)", m>>8&0xFF, m&0xFF)
	case AttrSMInfo:
		if h.Method == MethodSet {
			return fmt.Sprintf(" (%v)", SMInfoControl(m))
		}
	}
	return ""
}

func sltovlWords(m uint32) string {
	in, out := fmt.Sprintf("input port %d", m>>8&0xFF), fmt.Sprintf("output port %d", m&0xFF)
	if m&SLtoVLAllInputs != 0 {
		in = "all input ports"
	}
	if m&SLtoVLAllOutputs != 0 {
		out = "all output ports"
	}
	return " (" + in + ", " + out + ")"
}

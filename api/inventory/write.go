package inventory

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Write returns a whole inventory as a file, each kind in its order. Parse reads it back as the same inventory.
func Write(c *Contents) []byte {
	var b bytes.Buffer
	writeEquipment(&b, c)
	if len(c.Hosts) == 0 && b.Len() == 0 && len(c.Adapters) == 0 {
		return []byte("hosts: []\n")
	}
	head(&b, "hosts", len(c.Hosts))
	for i := range c.Hosts {
		writeHost(&b, &c.Hosts[i])
	}
	head(&b, "adapters", len(c.Adapters))
	for i := range c.Adapters {
		a := &c.Adapters[i]
		writeHCA(&b, "", &a.HCA)
		if a.Location != "" {
			fmt.Fprintf(&b, "  location: %s\n", quoted(a.Location))
		}
	}
	writeTrunks(&b, c)
	return b.Bytes()
}

// head begins a list, if it has entries.
func head(b *bytes.Buffer, key string, entries int) {
	if entries > 0 {
		b.WriteString(key + ":\n")
	}
}

func writeHost(b *bytes.Buffer, h *Host) {
	fmt.Fprintf(b, "- id: %s\n", strconv.Quote(h.ID)) // 007 and true are ids, and neither number nor truth
	texts(b, "  ", "ek_sha256", h.EK, "rack", h.Rack, "class", h.Class)
	writePosition(b, h.Position)
	texts(b, "  ", "role", string(h.Role))
	if h.Spare {
		b.WriteString("  spare: true\n")
	}
	b.WriteString("  hcas:\n")
	for i := range h.HCAs {
		writeHCA(b, "  ", &h.HCAs[i])
	}
}

// texts writes the fields with a value, of pairs of key and value.
func texts(b *bytes.Buffer, indent string, pairs ...string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			fmt.Fprintf(b, "%s%s: %s\n", indent, pairs[i], quoted(pairs[i+1]))
		}
	}
}

// writePosition writes where a device stands in its rack.
func writePosition(b *bytes.Buffer, p Position) {
	if p.Unit != 0 {
		fmt.Fprintf(b, "  unit: %d\n", p.Unit)
	}
	if p.Height != 0 {
		fmt.Fprintf(b, "  height: %d\n", p.Height)
	}
	texts(b, "  ", "slot", p.Slot)
}

func writeHCA(b *bytes.Buffer, indent string, a *HCA) {
	fmt.Fprintf(b, "%s- node_guid: %v\n", indent, a.NodeGUID)
	indent += "  "
	if a.SystemImageGUID != 0 {
		fmt.Fprintf(b, "%ssystem_image_guid: %v\n", indent, a.SystemImageGUID)
	}
	texts(b, indent, "model", a.Model, "serial", a.Serial, "psid", a.PSID, "pci_slot", a.PCISlot)
	if a.Rail != 0 {
		fmt.Fprintf(b, "%srail: %d\n", indent, a.Rail)
	}
	b.WriteString(indent + "ports:\n")
	for _, p := range a.Ports {
		fmt.Fprintf(b, "%s- {port: %d, guid: %v", indent, p.Num, p.GUID)
		if !p.Cable.IsZero() {
			fmt.Fprintf(b, ", cable: %v", p.Cable)
		}
		if p.Label != "" {
			fmt.Fprintf(b, ", label: %s", quoted(p.Label))
		}
		if len(p.Aliases) > 0 {
			words := make([]string, len(p.Aliases))
			for i, g := range p.Aliases {
				words[i] = g.String()
			}
			fmt.Fprintf(b, ", aliases: [%s]", strings.Join(words, ", "))
		}
		b.WriteString("}\n")
	}
}

// quoted writes a text as a double-quoted scalar of YAML, whose escapes are not quite Go's.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case strconv.IsPrint(r):
			b.WriteRune(r)
		case r <= 0xFF:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xFFFF:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

package inventory

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Write returns hosts as an inventory file, in their order. Parse reads it back as the same hosts.
func Write(hosts []Host) []byte {
	var b bytes.Buffer
	if len(hosts) == 0 {
		return []byte("hosts: []\n")
	}
	b.WriteString("hosts:\n")
	for i := range hosts {
		writeHost(&b, &hosts[i])
	}
	return b.Bytes()
}

func writeHost(b *bytes.Buffer, h *Host) {
	fmt.Fprintf(b, "- id: %s\n", strconv.Quote(h.ID)) // 007 and true are ids, and neither number nor truth
	for _, field := range [][2]string{{"ek_sha256", h.EK}, {"rack", h.Rack}, {"class", h.Class}} {
		if field[1] != "" {
			fmt.Fprintf(b, "  %s: %s\n", field[0], quoted(field[1]))
		}
	}
	b.WriteString("  hcas:\n")
	for _, a := range h.HCAs {
		fmt.Fprintf(b, "  - node_guid: %v\n", a.NodeGUID)
		if a.SystemImageGUID != 0 {
			fmt.Fprintf(b, "    system_image_guid: %v\n", a.SystemImageGUID)
		}
		b.WriteString("    ports:\n")
		for _, p := range a.Ports {
			fmt.Fprintf(b, "    - {port: %d, guid: %v", p.Num, p.GUID)
			if !p.Cable.IsZero() {
				fmt.Fprintf(b, ", cable: %v", p.Cable)
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

package attest

import (
	"fmt"
	"regexp"
	"time"

	"portcullis/fabricsm/ib"
)

// Bounds of a statement's fields.
const (
	maxHCAs  = 64  // adapters of one host
	maxPorts = 254 // ports of one adapter
	maxItems = 256 // settings of one adapter, also sources and unread facts
	maxNames = 32  // tools, attribute words, tokens
	maxText  = 128 // bytes of free text such as a serial number
)

var (
	hostPattern   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*$`)
	devicePattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)
	uuidPattern   = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
)

// CheckHostID reports whether id can name a host: 1 to 128 letters, digits,
// and any of ".", "_", ":", "-" after the first.
func CheckHostID(id string) error {
	if len(id) > maxHostID || !hostPattern.MatchString(id) {
		return fmt.Errorf("host id %q: want 1 to %d letters, digits, '.', '_', ':' or '-', beginning with a letter or digit", clip(id), maxHostID)
	}
	return nil
}

// check reports every field out of its range.
func (s *Statement) check() error {
	var p problems
	p.when(s.Version != StatementVersion, "version %d, want %d", s.Version, StatementVersion)
	if err := CheckHostID(s.Host); err != nil {
		p.add(err)
	}
	p.when(!uuidPattern.MatchString(s.BootID), "boot_id %q: want a lower-case UUID", clip(s.BootID))
	p.when(!s.CollectedAt.Equal(s.CollectedAt.Truncate(time.Second)), "collected_at: want whole seconds")
	p.when(s.Agent == "", "agent: empty")
	p.text("agent", s.Agent)
	p.text("image", s.Image)
	p.digest("event_log", s.EventLog)
	ascending(&p, "tools", s.Tools, maxNames, func(t Tool) string { return t.Name })
	for _, t := range s.Tools {
		p.text("tool", t.Name)
		p.text("version of tool", t.Version)
	}
	p.text("board vendor", s.Board.Vendor)
	p.text("board name", s.Board.Name)
	p.text("board serial", s.Board.Serial)
	p.text("product_uuid", s.Board.ProductUUID)
	p.when(len(s.HCAs) == 0 || len(s.HCAs) > maxHCAs, "%d HCAs, want 1 to %d", len(s.HCAs), maxHCAs)
	if len(s.HCAs) <= maxHCAs {
		s.checkHCAs(&p)
	}
	return p.err()
}

func (s *Statement) checkHCAs(p *problems) {
	nodes, ports := map[ib.GUID]string{}, map[ib.GUID]string{}
	for i, h := range s.HCAs {
		where := fmt.Sprintf("HCA %q", clip(h.Name))
		p.when(!devicePattern.MatchString(h.Name), "%s: not a device name", where)
		p.when(i > 0 && h.Name <= s.HCAs[i-1].Name, "%s: not in ascending order of names", where)
		p.when(!h.NodeGUID.Valid(), "%s: node GUID %v is not valid", where, h.NodeGUID)
		p.when(!h.SystemImageGUID.Valid(), "%s: system image GUID %v is not valid", where, h.SystemImageGUID)
		p.unique(nodes, h.NodeGUID, where)
		p.text(where+" psid", h.PSID)
		p.text(where+" hca_type", h.Type)
		h.checkDevice(p, where)
		h.Firmware.check(p, where)
		h.Lock.check(p, where)
		h.checkPorts(p, where, ports)
	}
}

func (h *HCA) checkPorts(p *problems, where string, seen map[ib.GUID]string) {
	p.when(len(h.Ports) > maxPorts, "%s: %d ports", where, len(h.Ports))
	infiniband := 0
	for i, port := range h.Ports[:min(len(h.Ports), maxPorts)] {
		at := fmt.Sprintf("%s port %d", where, port.Num)
		p.when(port.Num == 0 || port.Num == ib.NoPort, "%s: want port 1 to 254", at)
		p.when(i > 0 && port.Num <= h.Ports[i-1].Num, "%s: not in ascending order", at)
		switch port.LinkLayer {
		case LinkInfiniBand:
			infiniband++
			p.when(!port.GUID.Valid(), "%s: GUID %v is not valid", at, port.GUID)
			p.unique(seen, port.GUID, at)
		case LinkEthernet:
			p.when(port.GUID != 0, "%s: an Ethernet port has no GUID", at)
		default:
			p.when(true, "%s: link layer %q, want %s or %s", at, clip(port.LinkLayer), LinkInfiniBand, LinkEthernet)
		}
	}
	p.when(infiniband == 0, "%s: no InfiniBand port", where)
}

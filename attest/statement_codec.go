package attest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"portcullis/fabricsm/ib"
)

// Bounds of a statement's fields.
const (
	maxHCAs  = 64  // adapters of one host
	maxPorts = 254 // ports of one adapter
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

// Encode gives the canonical bytes of s, or every reason why s has none.
func (s *Statement) Encode() ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return s.marshal()
}

func (s *Statement) marshal() ([]byte, error) {
	c := *s
	c.CollectedAt = c.CollectedAt.UTC()
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(c); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// ParseStatement reads a statement. It accepts only the canonical bytes: what
// is parsed and encoded again must be b, so there is no room for duplicate
// keys, other letter case, white space, other number forms or trailing data.
func ParseStatement(b []byte) (*Statement, error) {
	if len(b) > MaxStatement {
		return nil, fmt.Errorf("statement of %d bytes, at most %d are read", len(b), MaxStatement)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	s := new(Statement)
	if err := dec.Decode(s); err != nil {
		return nil, fmt.Errorf("statement: %w", err)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	again, err := s.marshal()
	if err != nil {
		return nil, fmt.Errorf("statement: %w", err)
	}
	if i := firstDifference(again, b); i >= 0 {
		return nil, fmt.Errorf("statement: not canonical from byte %d on: got %q, want %q", i, window(b, i), window(again, i))
	}
	return s, nil
}

func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	if len(a) != len(b) {
		return min(len(a), len(b))
	}
	return -1
}

func window(b []byte, from int) string { return string(b[from:min(len(b), from+16)]) }

func clip(s string) string { return s[:min(len(s), 64)] }

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
		p.text(where+" firmware", h.Firmware)
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

// problems collects what is wrong with a statement.
type problems []error

func (p *problems) add(err error) { *p = append(*p, fmt.Errorf("statement: %w", err)) }

func (p *problems) when(bad bool, format string, args ...any) {
	if bad {
		p.add(fmt.Errorf(format, args...))
	}
}

// text wants printable ASCII: nothing that JSON could write in two ways or
// that could confuse a terminal.
func (p *problems) text(name, v string) {
	p.when(len(v) > maxText, "%s: %d bytes, at most %d", name, len(v), maxText)
	for i := range min(len(v), maxText) {
		if v[i] < 0x20 || v[i] > 0x7e {
			p.when(true, "%s: byte 0x%02x at %d is not printable ASCII", name, v[i], i)
			return
		}
	}
}

func (p *problems) unique(seen map[ib.GUID]string, g ib.GUID, where string) {
	if other, ok := seen[g]; ok {
		p.when(true, "%s: GUID %v is that of %s too", where, g, other)
	}
	seen[g] = where
}

// err joins at most 16 problems; a hostile statement may have thousands.
func (p problems) err() error { return errors.Join(p[:min(len(p), 16)]...) }

package qos

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"portcullis/fabricsm/ib"
)

// Kind is the kind of port that a table is for.
type Kind uint8

// Kinds of ports.
const (
	CA             Kind = iota // ports of CAs; options qos_ca_*
	SwitchPort0                // enhanced switch port 0; options qos_sw0_*
	SwitchExternal             // external ports of switches; options qos_swe_*
	Router                     // ports of routers; options qos_rtr_*
	numKinds
)

// kindNames are the parts of the names of options.
var kindNames = [numKinds]string{CA: "ca", SwitchPort0: "sw0", SwitchExternal: "swe", Router: "rtr"}

// MaxEntries is the number of entries of an arbitration table at most.
const MaxEntries = 64

// Entry is the share of a virtual lane in an arbitration table.
type Entry struct {
	VL     ib.VL
	Weight uint8 // in units of 64 bytes; 0 skips the entry
}

// Table is the content programmed on ports of one kind.
type Table struct {
	MaxVLs    uint8     // virtual lanes to be used at most, 1 to 15
	HighLimit uint8     // PortInfo.VLHighLimit, in units of 4 KB; 255: no limit
	High, Low []Entry   // at most MaxEntries each
	SLtoVL    [16]ib.VL // by service level; VL15 drops
}

// part is the part of a table that options set.
type part struct {
	maxVLs    uint8 // 0: not given
	limit     uint8
	hasLimit  bool
	high, low []Entry
	slToVL    *[16]ib.VL
}

// Options say whether quality of service is programmed, and how. The zero value
// leaves all devices alone.
type Options struct {
	// Enabled is option qos.
	Enabled bool

	base part
	of   [numKinds]part
}

// defaults are OpenSM's.
func defaults() Table {
	t := Table{MaxVLs: 15}
	for vl := range ib.VL(15) {
		high, low := Entry{VL: vl}, Entry{VL: vl, Weight: 4}
		if vl == 0 {
			high.Weight, low.Weight = 4, 0
		}
		t.High, t.Low = append(t.High, high), append(t.Low, low)
		t.SLtoVL[vl] = vl
	}
	t.SLtoVL[15] = 7
	return t
}

// Table returns the table for ports of a kind: its own options first, then those of all kinds, then the defaults.
func (o *Options) Table(k Kind) Table {
	t := defaults()
	for _, p := range [2]*part{&o.base, &o.of[k]} {
		if p.maxVLs != 0 {
			t.MaxVLs = p.maxVLs
		}
		if p.hasLimit {
			t.HighLimit = p.limit
		}
		if p.high != nil {
			t.High = p.high
		}
		if p.low != nil {
			t.Low = p.low
		}
		if p.slToVL != nil {
			t.SLtoVL = *p.slToVL
		}
	}
	return t
}

// Equal reports whether options make the same tables.
func (o Options) Equal(p Options) bool {
	if o.Enabled != p.Enabled {
		return false
	}
	for k := range numKinds {
		a, b := o.Table(k), p.Table(k)
		if a.MaxVLs != b.MaxVLs || a.HighLimit != b.HighLimit || a.SLtoVL != b.SLtoVL || !slices.Equal(a.High, b.High) || !slices.Equal(a.Low, b.Low) {
			return false
		}
	}
	return true
}

// Set takes one option of OpenSM's configuration file, "(null)" for the default. It reports whether the name is that of
// such an option; others are left to the caller. An error names the value and the valid ones.
func (o *Options) Set(name, value string) (known bool, err error) {
	if name == "qos" {
		switch strings.ToUpper(value) {
		case "TRUE":
			o.Enabled = true
		case "FALSE", "(NULL)":
			o.Enabled = false
		default:
			return true, fmt.Errorf("qos %q: want TRUE or FALSE", short(value))
		}
		return true, nil
	}
	rest, ok := strings.CutPrefix(name, "qos_")
	if !ok {
		return false, nil
	}
	p := &o.base
	for k, kind := range kindNames {
		if own, is := strings.CutPrefix(rest, kind+"_"); is {
			p, rest = &o.of[k], own
		}
	}
	take, ok := p.option(rest)
	if !ok {
		return false, nil
	}
	if err := take(value); err != nil {
		return true, fmt.Errorf("%s: %w", name, err)
	}
	return true, nil
}

// option returns the function that sets the value of an option.
func (p *part) option(name string) (func(string) error, bool) {
	switch name {
	case "max_vls":
		return p.setMaxVLs, true
	case "high_limit":
		return p.setLimit, true
	case "vlarb_high":
		return func(v string) error { return setEntries(&p.high, v) }, true
	case "vlarb_low":
		return func(v string) error { return setEntries(&p.low, v) }, true
	case "sl2vl":
		return p.setSLtoVL, true
	default:
		return nil, false
	}
}

const null = "(null)"

func (p *part) setMaxVLs(value string) error {
	if value == null || value == "0" {
		p.maxVLs = 0
		return nil
	}
	n, err := strconv.ParseUint(value, 0, 8)
	if err != nil || n > 15 {
		return fmt.Errorf("%q: want 1 to 15, or 0 for the default", short(value))
	}
	p.maxVLs = uint8(n)
	return nil
}

func (p *part) setLimit(value string) error {
	if p.hasLimit = value != null && value != "-1"; !p.hasLimit {
		p.limit = 0
		return nil
	}
	n, err := strconv.ParseUint(value, 0, 8)
	if err != nil {
		return fmt.Errorf("%q: want 0 to 255, or -1 for the default", short(value))
	}
	p.limit = uint8(n)
	return nil
}

func setEntries(to *[]Entry, value string) error {
	*to = nil
	if value == null {
		return nil
	}
	entries, err := ParseEntries(value)
	if err != nil {
		return err
	}
	*to = entries
	return nil
}

func (p *part) setSLtoVL(value string) error {
	p.slToVL = nil
	if value == null {
		return nil
	}
	t, err := ParseSLtoVL(value)
	if err != nil {
		return err
	}
	p.slToVL = &t
	return nil
}

// ParseEntries reads an arbitration table, "VL:WEIGHT,VL:WEIGHT,...": at most 64
// entries, lanes 0 to 14, weights 0 to 255.
func ParseEntries(s string) ([]Entry, error) {
	var entries []Entry
	for item := range strings.SplitSeq(s, ",") {
		vl, weight, ok := strings.Cut(strings.TrimSpace(item), ":")
		n, err := strconv.ParseUint(vl, 0, 8)
		w, err2 := strconv.ParseUint(weight, 0, 8)
		if !ok || err != nil || err2 != nil || n > 14 {
			return nil, fmt.Errorf("%q: want a virtual lane 0 to 14, a colon and a weight 0 to 255", short(item))
		}
		if len(entries) == MaxEntries {
			return nil, errors.New("more than 64 entries")
		}
		entries = append(entries, Entry{ib.VL(n), uint8(w)})
	}
	return entries, nil
}

// ParseSLtoVL reads a list of 16 virtual lanes, 0 to 15, one for each service
// level from 0 on.
func ParseSLtoVL(s string) (t [16]ib.VL, err error) {
	items := strings.Split(s, ",")
	if len(items) != len(t) {
		return t, fmt.Errorf("%q has %d items: want 16, one for each service level", short(s), len(items))
	}
	for sl, item := range items {
		n, err := strconv.ParseUint(strings.TrimSpace(item), 0, 8)
		if err != nil || n > 15 {
			return t, fmt.Errorf("%q: want a virtual lane 0 to 15", short(item))
		}
		t[sl] = ib.VL(n)
	}
	return t, nil
}

// lanes returns the number of data lanes that a table may use on a port with the given virtual lanes: 1, 2, 4, 8 or 15.
func (t *Table) lanes(vls ib.VLCap) int {
	n := 1
	for n < 8 && 2*n <= min(vls.Count(), int(t.MaxVLs)) {
		n *= 2
	}
	if n == 8 && min(vls.Count(), int(t.MaxVLs)) == 15 {
		n = 15
	}
	return n
}

// fold returns the lane that replaces one that a port with n lanes does not have: that of its lower bits. VL15 stays.
func fold(vl ib.VL, n int) ib.VL {
	if vl == ib.VL15 || n == 15 {
		return vl
	}
	return vl & ib.VL(n-1)
}

// Lanes returns the lane for each service level on a port with the given virtual lanes.
func (t *Table) Lanes(vls ib.VLCap) [16]ib.VL {
	out, n := t.SLtoVL, t.lanes(vls)
	for sl, vl := range out {
		out[sl] = fold(vl, n)
	}
	return out
}

// Half returns half of an arbitration table for a port with the given virtual lanes and room for some entries in the whole
// table: entries 0 to 31 or, if second, 32 to 63. Entries that the port has no room for are zero.
func (t *Table) Half(high, second bool, room uint8, vls ib.VLCap) (half [MaxEntries / 2]Entry) {
	entries, from := t.Low, 0
	if high {
		entries = t.High
	}
	if second {
		from = MaxEntries / 2
	}
	n := t.lanes(vls)
	for i := range half {
		if at := from + i; at < len(entries) && at < int(room) {
			half[i] = Entry{fold(entries[at].VL, n), entries[at].Weight}
		}
	}
	return half
}

// short cuts a quotation from a file.
func short(s string) string {
	if len(s) > 60 {
		return s[:60] + "..."
	}
	return s
}

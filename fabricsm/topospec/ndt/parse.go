package ndt

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"portcullis/fabricsm/topospec"
)

// Limits of a file.
const (
	maxSize    = 256 << 20
	maxColumns = 64
)

// Port is one end of a line, in the words of the plan.
type Port struct {
	Device, Label string
	Rack          string // or the location, "": not said
	U             uint8  // 0: not said
}

// IsZero reports whether it is the zero value, which means none.
func (p Port) IsZero() bool { return p.Device == "" && p.Label == "" }

func (p Port) String() string { return fmt.Sprintf("%q port %q", p.Device, p.Label) }

// Row is one line of a plan: a cable, or a port that has none.
type Row struct {
	A, B   Port // B zero: no cable
	State  topospec.LinkState
	Domain string // as written, "" where the plan has no such column
	Line   int
}

// File is one plan.
type File struct {
	Source string
	Rows   []Row
	Other  map[string]int // lines that are no InfiniBand cables, by kind
}

// column is a column that a plan may have.
type column int

const (
	startDevice column = iota
	startPort
	endDevice
	endPort
	linkType
	state
	domain
	startRack
	startU
	endU
	startLocation
	endLocation
	numColumns
)

// required are the columns without which a line is useless.
const required = endPort + 1

// headers are the names of columns, as different generators write them. A second
// "U height" is that of the end device.
var headers = [numColumns][]string{
	startDevice: {"StartDevice", "#StartDevice", "#Fields:StartDevice"}, startPort: {"StartPort"},
	endDevice: {"EndDevice"}, endPort: {"EndPort"}, linkType: {"LinkType"}, state: {"State"}, domain: {"Domain"},
	startRack: {"rack #"}, startU: {"U height"}, endU: {"U height", "U height_1"},
	startLocation: {"StartDeviceLocation"}, endLocation: {"EndDeviceLocation"},
}

// Parse reads a plan. source is what problems call it; all problems are reported
// together, up to topospec.MaxProblems. Names are not looked up, see Revision.
func Parse(source string, data []byte) (*File, error) {
	p := parser{Problems: topospec.Problems{Source: source}, f: &File{Source: source, Other: map[string]int{}}}
	switch {
	case len(data) > maxSize:
		p.Add(0, "", fmt.Sprintf("%d bytes, the most is %d", len(data), maxSize), "divide the plan")
	case len(data) == 0:
		p.Add(0, "", "empty", "check that the file is the one you meant")
	case !utf8.Valid(data):
		p.Add(0, "", "it is not UTF-8", "save it as CSV in UTF-8")
	case strings.HasPrefix(string(data[:min(3, len(data))]), "\uFEFF"):
		p.Add(1, "", "it begins with a byte order mark", "save it as plain UTF-8 without one")
	case data[len(data)-1] != '\n':
		p.Add(strings.Count(string(data), "\n")+1, "", "the last line has no end: the file is cut off", "copy it again, whole, and end it with a line break")
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	r := csv.NewReader(strings.NewReader(string(data)))
	r.FieldsPerRecord = -1 // notes beside the plan make lines of all lengths
	r.ReuseRecord = true
	if p.header(r) {
		p.rows(r)
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	return p.f, nil
}

type parser struct {
	topospec.Problems
	f  *File
	at [numColumns]int // index in a line, -1: the plan has no such column
}

// header finds the columns.
func (p *parser) header(r *csv.Reader) bool {
	names, err := r.Read()
	if err != nil {
		p.Add(1, "", err.Error(), "begin with the names of the columns")
		return false
	}
	if len(names) > maxColumns {
		p.Add(1, "", fmt.Sprintf("%d columns, the most is %d", len(names), maxColumns), "")
		return false
	}
	for c := range numColumns {
		p.at[c] = -1
		for i, name := range names {
			if !slices.Contains(headers[c], strings.TrimSpace(name)) || c == endU && i == p.at[startU] {
				continue
			}
			if p.at[c] >= 0 && c != startU {
				p.Add(1, fmt.Sprintf("column %q", headers[c][0]), "it is there twice", "remove one of the two")
			}
			if p.at[c] < 0 {
				p.at[c] = i
			}
		}
		if c < required && p.at[c] < 0 {
			p.Add(1, fmt.Sprintf("column %q", headers[c][0]), "it is not there", "want at least StartDevice, StartPort, EndDevice, EndPort in the first line")
		}
	}
	return p.Err() == nil
}

func (p *parser) rows(r *csv.Reader) {
	for !p.Full() {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			p.Add(0, "", err.Error(), "")
			return
		}
		line, _ := r.FieldPos(0)
		if len(p.f.Rows) >= 2*topospec.MaxLinks {
			p.Add(line, "", fmt.Sprintf("more than %d lines", 2*topospec.MaxLinks), "divide the plan")
			return
		}
		p.row(line, fields)
	}
}

// row takes one line.
func (p *parser) row(line int, fields []string) {
	if len(fields) > maxColumns {
		p.Add(line, "", fmt.Sprintf("%d fields, the most is %d", len(fields), maxColumns), "")
		return
	}
	var v [numColumns]string
	for c, i := range p.at {
		switch {
		case i < 0:
		case i < len(fields):
			v[c] = strings.Clone(strings.TrimSpace(fields[i]))
		case column(c) <= domain:
			p.Add(line, "", fmt.Sprintf("%d fields; %s is the %dth", len(fields), headers[c][0], i+1), "the line is cut off, or columns were moved: correct it")
			return
		}
		if why := unfit(v[c]); why != "" {
			p.Add(line, headers[c][0], why, "")
			return
		}
	}
	if v[startDevice] == "" && v[startPort] == "" && v[endDevice] == "" && v[endPort] == "" {
		return // notes
	}
	if v[linkType] != "" && v[linkType] != "Data" {
		p.f.Other[v[linkType]]++
		return
	}
	row := Row{
		A:      Port{Device: v[startDevice], Label: v[startPort], Rack: first(v[startRack], v[startLocation]), U: p.units(line, v[startU])},
		B:      Port{Device: v[endDevice], Label: v[endPort], Rack: v[endLocation], U: p.units(line, v[endU])},
		Domain: v[domain], Line: line,
	}
	if p.ends(&row) && p.state(&row, v[state]) {
		p.f.Rows = append(p.f.Rows, row)
	}
}

// unfit says why a text cannot be part of a revision, "" if it can.
func unfit(s string) string {
	if len(s) > topospec.MaxText {
		return fmt.Sprintf("%d bytes, the most is %d", len(s), topospec.MaxText)
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return fmt.Sprintf("%q holds a character that cannot be printed", s)
		}
	}
	return ""
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// units reads a height such as "U41".
func (p *parser) units(line int, s string) uint8 {
	if s == "" {
		return 0
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(s, "U"), 10, 8)
	if err != nil {
		p.Add(line, "U height", fmt.Sprintf("%q", s), "want U and a number, as U41")
	}
	return uint8(n)
}

// ends reports whether both ends of a line are complete, or the start is and the other is missing.
func (p *parser) ends(row *Row) bool {
	for _, e := range [2]Port{row.A, row.B} {
		if (e.Device == "") != (e.Label == "") {
			p.Add(row.Line, "", fmt.Sprintf("half an end: device %q, port %q", e.Device, e.Label), "write both, or neither")
			return false
		}
	}
	if row.A.IsZero() {
		p.Add(row.Line, "", fmt.Sprintf("no start device, and the end device %q", row.B.Device), "write both ends; a port without a cable is the start")
		return false
	}
	return true
}

// state takes the column State. Where there is none, a cable is active and a port
// without one is disabled.
func (p *parser) state(row *Row, word string) bool {
	none := row.B.IsZero()
	switch word {
	case "Active":
		row.State = topospec.Active
	case "Disabled":
		row.State = topospec.Disabled
	case "No-discover":
		row.State = topospec.NoDiscover
	case "":
		if none {
			row.State = topospec.Disabled
		}
	default:
		p.Add(row.Line, "State", fmt.Sprintf("%q", word), "want Active, Disabled or No-discover")
		return false
	}
	if none && row.State == topospec.Active {
		p.Add(row.Line, row.A.String(), "Active without an end device", "name the other end, or write Disabled or No-discover")
		return false
	}
	return true
}

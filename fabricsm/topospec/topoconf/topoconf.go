// Package topoconf reads and writes topoconfig.conf, the static topology file of
// OpenSM and UFM: one link end a line, six fields, no header, no quoting.
//
//	0x98039b0300867bba,1,0xb83fd2030080302e,1,Any,Active
//	0xb83fd2030080302e,40,-,-,Any,Disabled
//
// The fields are switch GUID, port, neighbour GUID, neighbour port, neighbour type
// and link state. A cable between switches is listed once from each side, a
// host's once from the switch. The package is strict: a word it does not know, a
// short GUID, a comment, a last line without its end are errors with line, cause
// and what to do; the misspelling "Activ" of a published sample is not "Active".
//
// The format has no end marker. A file cut between two lines is whole to every
// reader; that it lacks links is seen when it is compared with the revision in
// force, see package simulate, or by the digest that is handed over beside it.
package topoconf

import (
	"fmt"
	"strconv"
	"strings"

	"portcullis/fabricsm/topospec"
)

// Limits of a file.
const (
	maxSize = 256 << 20
	maxLine = 256
)

// PeerType is the type of the neighbour in a line.
type PeerType uint8

// Neighbour types. Only Any is written by generators of others; the rest is ours.
const (
	Any PeerType = iota
	CA
	Switch
	Router
	AN
)

var typeWords = []string{"Any", "Ca", "Switch", "Router", "An"}

func (t PeerType) String() string { return word(typeWords, int(t)) }

// State is the link state of a line.
type State uint8

// Link states.
const (
	Active State = iota
	Disabled
	NoDiscover
)

var stateWords = []string{"Active", "Disabled", "No-discover"}

func (s State) String() string { return word(stateWords, int(s)) }

func word(words []string, i int) string {
	if i < len(words) {
		return words[i]
	}
	return strconv.Itoa(i)
}

// Entry is one line: a switch port and the intended device behind it.
type Entry struct {
	At    topospec.End
	Peer  topospec.End // zero: "-,-"
	Type  PeerType
	State State
	Line  int
}

// File is a file, line by line.
type File []Entry

// Parse reads a file. name is what problems call it; all problems are reported
// together, up to topospec.MaxProblems.
func Parse(name string, data []byte) (File, error) {
	p := topospec.Problems{Source: name}
	switch {
	case len(data) > maxSize:
		p.Add(0, "", fmt.Sprintf("%d bytes, the most is %d", len(data), maxSize), "")
	case len(data) == 0:
		p.Add(0, "", "empty: it would disable the whole fabric", "check that the file is the one you meant")
	case strings.HasPrefix(string(data[:min(3, len(data))]), "\uFEFF"):
		p.Add(1, "", "it begins with a byte order mark", "save it as plain UTF-8 without one")
	case data[len(data)-1] != '\n':
		p.Add(strings.Count(string(data), "\n")+1, "", "the last line has no end: the file is cut off", "copy it again, whole")
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	var f File
	line := 0
	for text := range strings.Lines(string(data)) {
		line++
		e, object, cause, do := parseLine(strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r"))
		if cause != "" {
			if p.Add(line, object, cause, do); p.Full() {
				break
			}
			continue
		}
		e.Line = line
		f = append(f, e)
		if len(f) > 2*topospec.MaxLinks {
			p.Add(line, "", fmt.Sprintf("more than %d lines", 2*topospec.MaxLinks), "divide the fabric")
			break
		}
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	return f, nil
}

// parseLine reads one line; cause is empty when it is right.
func parseLine(text string) (e Entry, object, cause, do string) {
	switch {
	case len(text) > maxLine:
		return e, "", fmt.Sprintf("%d bytes, the most is %d", len(text), maxLine), "one link end a line"
	case text == "":
		return e, "", "empty line", "remove it"
	case text[0] == '#':
		return e, "", "comment", "the format has none: remove it"
	case strings.ContainsAny(text, " \t\r\"'"):
		return e, "", fmt.Sprintf("%q holds spaces or quotes", text), "write the six fields with commas between them and nothing else"
	}
	f := strings.Split(text, ",")
	if len(f) != 6 {
		return e, "", fmt.Sprintf("%d fields", len(f)), "want six: switch GUID, port, neighbour GUID, neighbour port, type, state"
	}
	var err error
	if e.At, err = topospec.ParseEnd(f[0] + "/" + f[1]); err != nil {
		return e, "switch port", err.Error(), ""
	}
	object = "switch " + e.At.GUID.String() + " port " + f[1]
	switch {
	case f[2] == "-" && f[3] == "-":
	case f[2] == "-" || f[3] == "-":
		return e, object, "neighbour " + f[2] + "," + f[3], "write both fields, or - for both"
	default:
		if e.Peer, err = topospec.ParseEnd(f[2] + "/" + f[3]); err != nil {
			return e, object, "neighbour: " + err.Error(), ""
		}
	}
	t, ok := find(typeWords, f[4])
	if !ok {
		return e, object, fmt.Sprintf("neighbour type %q", f[4]), "want " + strings.Join(typeWords, ", ")
	}
	s, ok := find(stateWords, f[5])
	if !ok {
		return e, object, fmt.Sprintf("link state %q", f[5]), "want " + strings.Join(stateWords, ", ")
	}
	e.Type, e.State = PeerType(t), State(s)
	if e.Peer.IsZero() && e.State == Active {
		return e, object, "Active without a neighbour", "name the neighbour, or make it Disabled or No-discover"
	}
	if e.At == e.Peer {
		return e, object, "cabled to itself", "correct the neighbour"
	}
	return e, object, "", ""
}

func find(words []string, s string) (int, bool) {
	for i, w := range words {
		if w == s {
			return i, true
		}
	}
	return 0, false
}

// AppendTo writes the file.
func (f File) AppendTo(b []byte) []byte {
	for _, e := range f {
		b = appendEnd(b, e.At)
		b = append(b, ',')
		if e.Peer.IsZero() {
			b = append(b, "-,-"...)
		} else {
			b = appendEnd(b, e.Peer)
		}
		b = append(b, ',')
		b = append(b, e.Type.String()...)
		b = append(b, ',')
		b = append(b, e.State.String()...)
		b = append(b, '\n')
	}
	return b
}

func appendEnd(b []byte, e topospec.End) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '0', 'x')
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, digits[e.GUID>>shift&15])
	}
	b = append(b, ',')
	return strconv.AppendUint(b, uint64(e.Port), 10)
}

// kindOf returns the kind of device that a type stands for.
func kindOf(t PeerType) topospec.Kind {
	return [...]topospec.Kind{topospec.KindAny, topospec.KindHCA, topospec.KindSwitch, topospec.KindRouter, topospec.KindAN}[t]
}

func typeOf(k topospec.Kind) PeerType {
	return [...]PeerType{Any, Switch, CA, Router, AN}[k]
}

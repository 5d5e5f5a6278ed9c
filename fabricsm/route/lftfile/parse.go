package lftfile

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"portcullis/fabricsm/ib"
)

const (
	// MaxSize is how long a file may be, in bytes: room for four hundred switches
	// of 40,000 LIDs.
	MaxSize = 1 << 30
	// maxErrors is how many problems of one file are reported.
	maxErrors = 20
)

// Parse reads a file. name is what errors call it. The first lines that are
// wrong are reported, with their numbers; a file without tables is an error.
func Parse(name string, data []byte) (*Tables, error) {
	p := &parser{t: &Tables{Switches: make(map[ib.GUID][]Entry), Owner: make(map[ib.LID]ib.GUID)}}
	number := 0
	var errs []error
	for line := range bytes.Lines(data) {
		number++
		if err := p.line(string(bytes.TrimSpace(line))); err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", name, number, err))
			if len(errs) == maxErrors {
				return nil, errors.Join(append(errs, fmt.Errorf("%s: what follows was not read", name))...)
			}
		}
	}
	if len(p.t.Switches) == 0 && len(errs) == 0 {
		return nil, fmt.Errorf("%s: holds no forwarding tables", name)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return p.t, nil
}

type parser struct {
	t    *Tables
	at   ib.GUID // the switch of the table in hand, 0 before the first
	seen [1 << 16]ib.GUID
}

// line reads one line: the head of a table, an entry, or what says how many
// there were, which is not needed.
func (p *parser) line(line string) error {
	switch {
	case line == "" || strings.HasPrefix(line, "#") || strings.HasSuffix(line, " lids dumped"):
		return nil
	case strings.HasPrefix(line, "Unicast lids "):
		return p.head(line)
	case p.at == 0:
		return errors.New("an entry before the first \"Unicast lids\" line")
	default:
		return p.entry(line)
	}
}

func (p *parser) head(line string) error {
	_, rest, ok := strings.Cut(line, " guid ")
	words := strings.Fields(rest)
	if !ok || len(words) == 0 {
		return errors.New("want \"Unicast lids [0-N] of switch Lid L guid GUID ('DESCRIPTION'):\"")
	}
	g, err := ib.ParseGUID(words[0])
	if err != nil {
		return err
	}
	if _, twice := p.t.Switches[g]; twice || !g.Valid() {
		return fmt.Errorf("switch %v has a table already, or is none", g)
	}
	p.at, p.t.Switches[g] = g, []Entry{}
	return nil
}

// entry reads "0x0001 003 # Switch portguid 0x0010000100000001: 'leaf1'".
func (p *parser) entry(line string) error {
	text, comment, _ := strings.Cut(line, "#")
	words := strings.Fields(text)
	if len(words) < 2 || !strings.HasPrefix(words[0], "0x") {
		return errors.New("want a LID and a port, as in 0x0001 003")
	}
	lid, err := strconv.ParseUint(words[0][2:], 16, 16)
	if err != nil || lid == 0 || lid > uint64(ib.MaxUnicastLID) {
		return fmt.Errorf("%q: want a unicast LID", words[0])
	}
	port, err := strconv.ParseUint(words[1], 10, 8)
	if err != nil {
		return fmt.Errorf("%q: want a port number from 0 to 255", words[1])
	}
	if p.seen[lid] == p.at {
		return fmt.Errorf("LID %d is in this table already", lid)
	}
	p.seen[lid] = p.at
	p.t.Switches[p.at] = append(p.t.Switches[p.at], Entry{LID: ib.LID(lid), Port: ib.PortNum(port)})
	return p.owner(ib.LID(lid), comment)
}

// owner notes whose LID it is, if the comment says so.
func (p *parser) owner(lid ib.LID, comment string) error {
	_, rest, ok := strings.Cut(comment, " portguid ")
	if !ok {
		return nil
	}
	word, _, _ := strings.Cut(rest, ":")
	g, err := ib.ParseGUID(strings.TrimSpace(word))
	if err != nil {
		return nil //nolint:nilerr // a comment that we do not understand is a comment
	}
	if was, known := p.t.Owner[lid]; known && was != g {
		return fmt.Errorf("LID %d belongs to port %v here, and to %v above", lid, g, was)
	}
	p.t.Owner[lid] = g
	return nil
}

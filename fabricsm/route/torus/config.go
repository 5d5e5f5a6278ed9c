package torus

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"portcullis/fabricsm/ib"
)

const (
	// MaxSize is how long a configuration may be, in bytes.
	MaxSize = 1 << 20
	// maxRadix is how many switches a ring may have.
	maxRadix = 1024
	// maxErrors is how many problems of one file are reported.
	maxErrors = 20
	// maxSeeds is how many seeds a file may have.
	maxSeeds = 256
)

// Config defines the shape of a torus and its place of origin.
type Config struct {
	Radix [3]int  // switches along x, y and z, at least 1
	Wrap  [3]bool // the dimension is a ring, not a row
	Seeds []Seed  // tried in this order
}

// Seed is a switch and some of its neighbours.
type Seed struct {
	From ib.GUID    // node GUID
	To   [6]ib.GUID // in the directions +x, -x, +y, -y, +z, -z; 0: not given
	// Dateline is how far along each dimension the first switch of the ring is
	// from From.
	Dateline [3]int
}

// Parse reads a file in the format of torus-2QoS.conf(5). Errors use name for the file. All wrong lines are reported, with
// their numbers. It reads, but does not use, settings that concern only OpenSM's implementation: portgroup_max_ports,
// port_order, max_changes.
func Parse(name string, data []byte) (*Config, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("%s: more than %d bytes", name, MaxSize)
	}
	p := &parser{c: &Config{Seeds: make([]Seed, 1)}}
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if err := p.line(words[0], words[1:]); err != nil {
			p.errs = append(p.errs, fmt.Errorf("%s:%d: %w", name, number, err))
		}
	}
	if len(p.errs) == 0 {
		if err := p.c.check(); err != nil {
			p.errs = append(p.errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	if more := len(p.errs) - maxErrors; more > 0 {
		p.errs = append(p.errs[:maxErrors], fmt.Errorf("%s: and %d more lines are wrong", name, more))
	}
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return p.c, nil
}

type parser struct {
	c    *Config
	errs []error
}

// line reads one line. Words after those that belong to the keyword are
// ignored.
func (p *parser) line(keyword string, words []string) error {
	first := p.c.Radix[0] == 0
	switch keyword {
	case "torus", "mesh":
		if !first {
			return errors.New("the size is given twice")
		}
		return p.size(keyword == "torus", words)
	case "portgroup_max_ports", "max_changes":
		_, err := number(words, 1, 1<<16)
		return err
	case "port_order":
		return portOrder(words)
	case "next_seed":
		if len(p.c.Seeds) == maxSeeds {
			return fmt.Errorf("there are more than %d seeds", maxSeeds)
		}
		p.c.Seeds = append(p.c.Seeds, Seed{})
		return nil
	}
	if first {
		return fmt.Errorf("%q stands before the size: begin with \"torus\" or \"mesh\" and three numbers", keyword)
	}
	seed := &p.c.Seeds[len(p.c.Seeds)-1]
	for dim, axis := range []string{"x", "y", "z"} {
		switch keyword {
		case axis + "p_link":
			return seed.link(2*dim, words)
		case axis + "m_link":
			return seed.link(2*dim+1, words)
		case axis + "_dateline":
			n, err := number(words, -maxRadix, maxRadix)
			seed.Dateline[dim] = n
			return err
		}
	}
	return fmt.Errorf("%q is no keyword of torus-2QoS.conf", keyword)
}

func (p *parser) size(wrap bool, words []string) error {
	if len(words) < 3 {
		return errors.New("want three numbers, 1 for a dimension that is not there")
	}
	for dim := range 3 {
		text, ring := words[dim], wrap
		switch text[len(text)-1] {
		case 'm', 'M':
			text, ring = text[:len(text)-1], false
		case 't', 'T':
			text, ring = text[:len(text)-1], true
		}
		n, err := number([]string{text}, 1, maxRadix)
		if err != nil {
			p.c.Radix[0] = 0
			return err
		}
		p.c.Radix[dim], p.c.Wrap[dim] = n, ring && n > 2 // a ring of two is a row
	}
	return nil
}

func number(words []string, least, most int) (int, error) {
	if len(words) == 0 {
		return 0, errors.New("a number is missing")
	}
	n, err := strconv.Atoi(words[0])
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%q: want a number from %d to %d", words[0], least, most)
	}
	return n, nil
}

func portOrder(words []string) error {
	for i := range words {
		if strings.HasPrefix(words[i], "#") {
			return nil
		}
		if _, err := number(words[i:], 0, 254); err != nil {
			return err
		}
	}
	return nil
}

// link notes a neighbour in a direction.
func (s *Seed) link(dir int, words []string) error {
	if len(words) < 2 {
		return errors.New("want two node GUIDs")
	}
	var guid [2]ib.GUID
	for i := range guid {
		g, err := ib.ParseGUID(words[i])
		if err != nil {
			return err
		}
		if !g.Valid() {
			return fmt.Errorf("%v is no GUID that a switch can have", g)
		}
		guid[i] = g
	}
	switch {
	case guid[0] == guid[1]:
		return fmt.Errorf("%v is cabled to itself", guid[0])
	case s.From != 0 && s.From != guid[0]:
		return fmt.Errorf("the links of a seed begin at one switch, here at %v and at %v; put \"next_seed\" between them", s.From, guid[0])
	case s.To[dir] != 0:
		return errors.New("this direction is given twice for one seed")
	}
	s.From, s.To[dir] = guid[0], guid[1]
	return nil
}

// Switches returns the switches that seeds begin at, none for a nil Config.
func (c *Config) Switches() []ib.GUID {
	if c == nil {
		return nil
	}
	var guids []ib.GUID
	for _, s := range c.Seeds {
		guids = append(guids, s.From)
	}
	return guids
}

// check finds errors that no single line shows.
func (c *Config) check() error {
	if c.Radix[0] == 0 {
		return errors.New("it has no size: begin with \"torus\" or \"mesh\" and three numbers")
	}
	if n := c.Radix[0] * c.Radix[1] * c.Radix[2]; n > int(ib.MaxUnicastLID) {
		return fmt.Errorf("%d switches are more than a fabric can have", n)
	}
	for i, s := range c.Seeds {
		for dim := range 3 {
			switch {
			case s.Dateline[dim] != 0 && !c.Wrap[dim]:
				return fmt.Errorf("seed %d moves the dateline of dimension %s, which is no ring", i+1, axis(dim))
			case c.Radix[dim] == 1 && (s.To[2*dim] != 0 || s.To[2*dim+1] != 0):
				return fmt.Errorf("seed %d has a link along dimension %s, which has one switch", i+1, axis(dim))
			case c.Radix[dim] > 1 && s.From != 0 && s.To[2*dim] == 0 && s.To[2*dim+1] == 0:
				return fmt.Errorf("seed %d has no link along dimension %s", i+1, axis(dim))
			case c.Wrap[dim] && c.Radix[dim] == 4 && s.From != 0 && (s.To[2*dim] == 0 || s.To[2*dim+1] == 0):
				return fmt.Errorf("seed %d has one link along dimension %s, a ring of 4: write both directions", i+1, axis(dim))
			}
		}
		if s.From == 0 && (i > 0 || s.Dateline != [3]int{}) {
			return fmt.Errorf("seed %d has no links", i+1)
		}
	}
	if len(c.Seeds) == 1 && c.Seeds[0].From == 0 {
		c.Seeds = nil
	}
	return nil
}

func axis(dim int) string { return "xyz"[dim : dim+1] }

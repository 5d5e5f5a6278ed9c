package alias

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"portcullis/fabricsm/ib"
)

// List is an Inventory: the aliases that each port may have, by port GUID, in the order
// in which they are chosen.
type List map[ib.GUID][]ib.GUID

// Allows implements Inventory.
func (l List) Allows(port, alias ib.GUID) bool { return slices.Contains(l[port], alias) }

// Choose implements Inventory. It returns the first alias that is not taken.
func (l List) Choose(port ib.GUID, taken func(ib.GUID) bool) ib.GUID {
	for _, g := range l[port] {
		if !taken(g) {
			return g
		}
	}
	return 0
}

// With returns a list of the aliases that either list allows. Neither list changes.
func (l List) With(o List) List {
	if len(o) == 0 {
		return l
	}
	sum := maps.Clone(l)
	if sum == nil {
		sum = make(List, len(o))
	}
	for port, guids := range o {
		all := slices.Clone(sum[port])
		for _, g := range guids {
			if !slices.Contains(all, g) {
				all = append(all, g)
			}
		}
		sum[port] = all
	}
	return sum
}

const (
	// MaxListSize bounds a file, in bytes: 10,000 ports with 126 aliases each.
	MaxListSize = 32 << 20
	// MaxPerPort is how many aliases GUIDInfo has room for beside the port's own GUID.
	MaxPerPort = maxAliases
	// maxListErrors is the maximum number of problems reported for one file.
	maxListErrors = 20
)

// ParseList reads a file of aliases: on each line the GUID of a port, and the aliases that it may have. Several lines of a
// port add up; "#" begins a comment. name is the name of the file in errors. A GUID that appears twice, as a port or as an
// alias, is refused, because it would belong to two ports.
func ParseList(name string, data []byte) (List, error) {
	if len(data) > MaxListSize {
		return nil, fmt.Errorf("%s: more than %d bytes", name, MaxListSize)
	}
	p := listReader{list: make(List), ports: make(map[ib.GUID]int), aliases: make(map[ib.GUID]int)}
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		text, _, _ := strings.Cut(line, "#")
		if words := strings.Fields(text); len(words) > 0 {
			if err := p.line(number, words); err != nil {
				p.wrong(fmt.Errorf("%s:%d: %w", name, number, err))
			}
		}
	}
	for _, alias := range slices.Sorted(maps.Keys(p.aliases)) {
		if at := p.ports[alias]; at != 0 {
			p.wrong(fmt.Errorf("%s:%d: alias %v is the GUID of the port of line %d", name, p.aliases[alias], alias, at))
		}
	}
	if more := p.problems - len(p.errs); more > 0 {
		p.errs = append(p.errs, fmt.Errorf("%s: and %d more problems", name, more))
	}
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return p.list, nil
}

// listReader is a file that is being read.
type listReader struct {
	list     List
	ports    map[ib.GUID]int // line of each
	aliases  map[ib.GUID]int // likewise
	errs     []error
	problems int
}

func (p *listReader) wrong(err error) {
	if p.problems++; len(p.errs) < maxListErrors {
		p.errs = append(p.errs, err)
	}
}

// line reads a port and its aliases.
func (p *listReader) line(number int, words []string) error {
	port, err := device(words[0])
	if err != nil {
		return fmt.Errorf("port: %w", err)
	}
	if len(words) == 1 {
		return fmt.Errorf("port %v has no aliases; leave it out, or write them behind it", port)
	}
	p.ports[port] = number
	for _, word := range words[1:] {
		alias, err := device(word)
		switch at := p.aliases[alias]; {
		case err != nil:
			return fmt.Errorf("alias: %w", err)
		case at != 0:
			return fmt.Errorf("alias %v is on line %d already", alias, at)
		case len(p.list[port]) == MaxPerPort:
			return fmt.Errorf("port %v has more than %d aliases", port, MaxPerPort)
		}
		p.aliases[alias] = number
		p.list[port] = append(p.list[port], alias)
	}
	return nil
}

// device reads a GUID that a device may have.
func device(text string) (ib.GUID, error) {
	g, err := ib.ParseGUID(text)
	if err == nil && !g.Valid() {
		err = fmt.Errorf("%v is no GUID that a device can have", g)
	}
	return g, err
}

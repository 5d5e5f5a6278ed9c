package keyfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"portcullis/fabricsm/ib"
)

// Port is one end of a link as the file neighbors names it: a switch by the
// GUID of its port 0, a host by that of its port.
type Port struct {
	GUID ib.GUID
	Num  ib.PortNum
}

// String returns "0x...guid:port".
func (p Port) String() string { return fmt.Sprintf("0x%016x:%d", uint64(p.GUID), p.Num) }

// Link is a line of neighbors: what From is cabled to. Each cable has two.
type Link struct{ From, To Port }

// ParseNeighbors reads the file neighbors.
func ParseNeighbors(name string, data []byte) ([]Link, error) {
	var out []Link
	lines := make(map[Port]int)
	err := eachLine(name, data, func(number int, fields []string) error {
		if len(fields) != 2 {
			return errors.New("want GUID:PORT and its neighbour's")
		}
		var l Link
		for i, p := range []*Port{&l.From, &l.To} {
			if err := p.parse(fields[i]); err != nil {
				return err
			}
		}
		if at, twice := lines[l.From]; twice {
			return fmt.Errorf("%v has a neighbour in line %d already", l.From, at)
		}
		lines[l.From] = number
		out = append(out, l)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (p *Port) parse(s string) error {
	guid, num, _ := strings.Cut(s, ":")
	g, err := hexNumber(guid)
	n, numErr := strconv.ParseUint(num, 10, 8)
	*p = Port{ib.GUID(g), ib.PortNum(n)}
	if err != nil || numErr != nil || !p.GUID.Valid() || n > 254 {
		return fmt.Errorf("%.40q: want GUID:PORT, as 0x0002c90300a1b2c3:1", s)
	}
	return nil
}

// FormatNeighbors writes the file neighbors as OpenSM does, by port.
func FormatNeighbors(links []Link) []byte {
	sorted := slices.Clone(links)
	slices.SortFunc(sorted, func(a, b Link) int {
		return cmp.Or(cmp.Compare(a.From.GUID, b.From.GUID), cmp.Compare(a.From.Num, b.From.Num))
	})
	var b bytes.Buffer
	for _, l := range sorted {
		fmt.Fprintf(&b, "%v %v\n\n", l.From, l.To)
	}
	return b.Bytes()
}

package enginelist

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/dfp"
	"portcullis/fabricsm/route/dfsssp"
	"portcullis/fabricsm/route/dnup"
	"portcullis/fabricsm/route/dor"
	"portcullis/fabricsm/route/ftree"
	"portcullis/fabricsm/route/guidfile"
	"portcullis/fabricsm/route/lftfile"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/route/nexthop"
	"portcullis/fabricsm/route/torus"
	"portcullis/fabricsm/route/updn"
	"portcullis/fabricsm/topo"
)

// maxSize is how long a list may be, in bytes.
const maxSize = 16 << 20

// Files are the names of the files that engines read; empty: none.
type Files struct {
	Roots        string // node GUIDs of switches, one a line
	ComputeNodes string // port GUIDs, one a line
	IONodes      string // port GUIDs, one a line
	IDs          string // node GUIDs of switches, with a number, one a line
	Torus        string // in the format of torus-2QoS.conf(5)
	Groups       string // node GUIDs of switches, with the number of the group, one a line
	LFTs         string // in the format of opensm-lfts.dump
	PortOrder    string // node GUIDs of switches, with ports in the order of dimensions
	Order        string // port GUIDs that are routed first, one a line
	Weights      string // node GUIDs of switches, with a port and its weight, one a line
	Ignored      string // node GUIDs, with a port that is left out of the load of links, one a line
}

// Read adds the content of files to the settings. read returns the content of a file, at most one byte more than most; its
// errors name the file. The errors of all files are reported.
func (s *Settings) Read(f Files, read func(name string, most int) ([]byte, error)) error {
	r := reader{read: read}
	s.Roots = r.guids(f.Roots)
	s.ComputeNodes = r.guids(f.ComputeNodes)
	s.IONodes = r.guids(f.IONodes)
	into(&r, f.IDs, maxSize, &s.IDs, guidfile.ParseNumbers)
	into(&r, f.Torus, maxSize, &s.Torus, torus.Parse)
	into(&r, f.Groups, maxSize, &s.Groups, guidfile.ParseNumbers)
	into(&r, f.PortOrder, maxSize, &s.PortOrder, guidfile.ParsePorts)
	into(&r, f.LFTs, lftfile.MaxSize, &s.LFTs, lftfile.Parse)
	s.Share.First = r.guids(f.Order)
	into(&r, f.Ignored, maxSize, &s.Share.Ignored, parseIgnored)
	into(&r, f.Weights, maxSize, &s.Weights, parseWeights)
	return errors.Join(r.errs...)
}

type reader struct {
	read func(name string, most int) ([]byte, error)
	errs []error
}

func (r *reader) guids(name string) (guids []ib.GUID) {
	into(r, name, maxSize, &guids, guidfile.Parse)
	return guids
}

// into parses a file, if it is named.
func into[T any](r *reader, name string, most int, v *T, parse func(name string, data []byte) (T, error)) {
	if name == "" {
		return
	}
	data, err := r.read(name, most)
	if err == nil && len(data) > most {
		err = fmt.Errorf("%s: more than %d bytes", name, most)
	}
	if err == nil {
		*v, err = parse(name, data)
	}
	if err != nil {
		r.errs = append(r.errs, err)
	}
}

func parseIgnored(name string, data []byte) (ports []nexthop.Port, err error) {
	lines, err := guidfile.ParsePortList(name, data)
	for _, l := range lines {
		ports = append(ports, nexthop.Port{Node: l.Node, Num: l.Port})
	}
	return ports, err
}

func parseWeights(name string, data []byte) (weights []minhop.Weight, err error) {
	lines, err := guidfile.ParseWeights(name, data, minhop.MaxWeight)
	for _, l := range lines {
		weights = append(weights, minhop.Weight{Switch: l.Node, Port: l.Port, Hops: l.Number})
	}
	return weights, err
}

// maxMissing is how many GUIDs of one list are reported.
const maxMissing = 10

// Missing returns a sentence for each GUID in the settings of engines that is not in the fabric.
func Missing(engines []route.Engine, f *topo.Fabric) []string {
	m := &missing{f: f, said: make(map[string]bool)}
	for _, e := range engines {
		switch e := e.(type) {
		case minhop.Engine:
			m.share(&e.Share)
			m.list("switch with a weight of a port", weighted(e.Weights), m.isSwitch)
		case dnup.Engine:
			m.share(&e.Share)
		case dfsssp.Engine:
			m.share(&e.Share)
		case updn.Engine:
			m.share(&e.Share)
			m.list("root switch", e.Roots, m.isSwitch)
			m.list("switch with an id", slices.Sorted(maps.Keys(e.IDs)), m.isSwitch)
		case ftree.Engine:
			m.share(&e.Share)
			m.list("root switch", e.Roots, m.isSwitch)
			m.list("compute node port", e.ComputeNodes, m.isPort)
			m.list("I/O node port", e.IONodes, m.isPort)
		case dor.Engine:
			m.list("switch with an order of ports", slices.Sorted(maps.Keys(e.Ports)), m.isSwitch)
		case dfp.Engine:
			m.list("switch of a group", slices.Sorted(maps.Keys(e.Groups)), m.isSwitch)
		case torus.Engine:
			m.list("seed switch", e.Config.Switches(), m.isSwitch)
		}
	}
	return m.out
}

type missing struct {
	f    *topo.Fabric
	said map[string]bool // engines share lists
	out  []string
}

func (m *missing) list(what string, guids []ib.GUID, there func(ib.GUID) bool) {
	if m.said[what] {
		return
	}
	m.said[what] = true
	gone := 0
	for _, g := range guids {
		if there(g) {
			continue
		}
		if gone++; gone <= maxMissing {
			m.out = append(m.out, fmt.Sprintf("%s %v is not in the fabric", what, g))
		}
	}
	if gone > maxMissing {
		m.out = append(m.out, fmt.Sprintf("and %d more of the list: %s", gone-maxMissing, what))
	}
}

func weighted(weights []minhop.Weight) (guids []ib.GUID) {
	for _, w := range weights {
		guids = append(guids, w.Switch)
	}
	slices.Sort(guids)
	return slices.Compact(guids)
}

// share says which ports of a share are not there, or are none that it is about.
func (m *missing) share(s *nexthop.Share) {
	m.list("port to be routed first", s.First, m.isPort)
	const what = "ignored"
	if m.said[what] {
		return
	}
	m.said[what] = true
	none := 0
	for _, p := range s.Ignored {
		if p.End(m.f) != topo.None {
			continue
		}
		if none++; none <= maxMissing {
			m.out = append(m.out, fmt.Sprintf("node %v port %d is to be ignored, but there is no end port there: the load of links between switches is always counted", p.Node, p.Num))
		}
	}
	if none > maxMissing {
		m.out = append(m.out, fmt.Sprintf("and %d more ports that are to be ignored", none-maxMissing))
	}
}

func (m *missing) isSwitch(g ib.GUID) bool {
	id := m.f.NodeByGUID(g)
	return id != topo.None && m.f.Node(id).Type == ib.NodeSwitch
}

func (m *missing) isPort(g ib.GUID) bool { return m.f.PortByGUID(g) != topo.None }

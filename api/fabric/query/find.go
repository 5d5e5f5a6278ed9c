package query

import (
	"fmt"
	"slices"
	"strings"

	"portcullis/api/refusal"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

func unknown(what, word, hint string) error {
	return &refusal.Error{
		Code: what + "_unknown", Status: refusal.NotFound,
		Detail: fmt.Sprintf("the fabric shows no %s %q", what, word), Hint: hint,
	}
}

// maxNamed bounds how many candidates an error names.
const maxNamed = 8

func ambiguous(x *index, word string, ids []topo.NodeID) error {
	words := make([]string, 0, maxNamed+1)
	for i, id := range ids {
		if i == maxNamed {
			words = append(words, fmt.Sprintf("and %d more", len(ids)-i))
			break
		}
		words = append(words, x.Fabric.Node(id).GUID.String())
	}
	return &refusal.Error{
		Code: "name_ambiguous", Status: refusal.Invalid,
		Detail: fmt.Sprintf("%d nodes are called %q: %s", len(ids), word, strings.Join(words, ", ")), Hint: "name one by its GUID or LID",
	}
}

// node finds a node by GUID, host, description or LID.
func (x *index) node(word string) (topo.NodeID, error) {
	ids := x.nodes(word)
	switch len(ids) {
	case 0:
		if err := x.unseenHost(word); err != nil {
			return topo.None, err
		}
		return topo.None, unknown("node", word, "portcullis fabric nodes lists them; a node is named by GUID, host, description or LID")
	case 1:
		return ids[0], nil
	default:
		return topo.None, ambiguous(x, word, ids)
	}
}

// unseenHost returns an error for a host of the inventory of which nothing is seen.
func (x *index) unseenHost(word string) error {
	for _, host := range x.hostOf {
		if host == word {
			return &refusal.Error{
				Code: "host_unseen", Status: refusal.NotFound,
				Detail: "host " + word + " is in the inventory, and the fabric shows none of its adapters",
				Hint:   "is it powered, and its cable in? portcullis fabric ports --problem lists links behind which nothing answers",
			}
		}
	}
	return nil
}

// nodes returns every node that a word may mean. GUIDs come before host names, as no host can choose the GUIDs of others
// here to be taken for them. Descriptions, which a host writes itself, come last.
func (x *index) nodes(word string) []topo.NodeID {
	f := x.Fabric
	if g, err := ib.ParseGUID(word); err == nil {
		var ids []topo.NodeID
		for _, id := range from(f, position{guid: g, set: true}) {
			if f.Node(id).GUID != g {
				break
			}
			ids = append(ids, id)
		}
		for _, p := range f.PortsByGUID(g) {
			ids = append(ids, f.Port(p).Node)
		}
		slices.Sort(ids)
		return slices.Compact(ids)
	}
	if lid, err := ib.ParseLID(word); err == nil {
		if p := x.byLID(lid); p != topo.None {
			return []topo.NodeID{f.Port(p).Node}
		}
		return nil
	}
	if ids := x.ofHost[word]; len(ids) > 0 {
		return ids
	}
	return x.names[word]
}

// byLID returns the end port that has a LID.
func (x *index) byLID(lid ib.LID) topo.PortID {
	for _, id := range x.Fabric.EndPorts() {
		if p := x.Fabric.Port(id); p.LID != 0 && lid >= p.LID && lid < p.LID+1<<p.LMC {
			return id
		}
	}
	return topo.None
}

// end finds an end port: by port GUID, by LID, or as NODE or NODE/PORT. If a node has several ports, the first that has a
// LID is meant.
func (x *index) end(word string) (topo.PortID, error) {
	f := x.Fabric
	if g, err := ib.ParseGUID(word); err == nil {
		switch all := f.PortsByGUID(g); len(all) {
		case 0:
		case 1:
			return all[0], nil
		default:
			return topo.None, ambiguous(x, word, []topo.NodeID{f.Port(all[0]).Node, f.Port(all[1]).Node})
		}
	}
	if lid, err := ib.ParseLID(word); err == nil {
		if p := x.byLID(lid); p != topo.None {
			return p, nil
		}
		return topo.None, unknown("LID", word, "portcullis fabric ports lists them")
	}
	name, num := word, ib.PortNum(0)
	if i := strings.LastIndexByte(word, '/'); i >= 0 && len(x.names[word]) == 0 {
		n, err := ib.ParsePortNum(word[i+1:])
		if err != nil {
			return topo.None, unknown("port", word, "want NODE/PORT, for example compute-1/1")
		}
		name, num = word[:i], n
	}
	id, err := x.someNode(name)
	if err != nil {
		return topo.None, err
	}
	return x.endOf(id, word, num)
}

// someNode is node, but of the several adapters of a host it takes the first.
func (x *index) someNode(word string) (topo.NodeID, error) {
	if ids := x.ofHost[word]; len(ids) > 0 {
		return ids[0], nil
	}
	return x.node(word)
}

func (x *index) endOf(id topo.NodeID, word string, num ib.PortNum) (topo.PortID, error) {
	f := x.Fabric
	n := f.Node(id)
	if n.Type == ib.NodeSwitch {
		return n.FirstPort, nil
	}
	if num != 0 {
		if p := f.PortOf(id, num); p != topo.None && f.Port(p).GUID != 0 {
			return p, nil
		}
		return topo.None, unknown("port", word, fmt.Sprintf("node %v has %d ports; those without a cable are not seen", n.GUID, n.NumPorts))
	}
	first := topo.PortID(topo.None)
	for i := 1; i <= int(n.NumPorts); i++ {
		p := n.FirstPort + topo.PortID(i)
		if f.Port(p).LID != 0 {
			return p, nil
		}
		if first == topo.None && f.Port(p).GUID != 0 {
			first = p
		}
	}
	if first == topo.None {
		return topo.None, unknown("port", word, "no port of that node is seen")
	}
	return first, nil
}

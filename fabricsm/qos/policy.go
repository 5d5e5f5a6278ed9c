package qos

import (
	"slices"

	"portcullis/fabricsm/ib"
)

// Policy says which level of service a path gets, as a file in the grammar of
// OpenSM's qos-policy.conf has it: the level of the first rule that matches, or
// else the default level. It is immutable.
type Policy struct {
	// Notices are remarks on the file, such as settings without effect, a sentence each with file and line, in the
	// order of the file.
	Notices []string

	levels []Level // those that rules name; the first is the default
	groups []group
	rules  []rule
	keys   []keyUser // P_Keys that groups name
}

// keyUser is a range of P_Keys that makes a port a member of a group.
type keyUser struct {
	keys  Range
	group int
}

// Level is a level of service. Zero limits are none.
type Level struct {
	Name string
	// SL is the service level of paths, if HasSL.
	SL         ib.SL
	HasSL      bool
	MTULimit   ib.MTU
	RateLimit  ib.Rate
	PacketLife uint8 // code of the packet lifetime, if HasLife
	HasLife    bool
	PKeys      Ranges // of which a path must have one; empty: any
}

// Range is a range of numbers, both ends included.
type Range struct{ From, To uint64 }

// Ranges is a set of numbers: ranges in rising order that do not touch.
type Ranges []Range

// Has reports whether a number is in the set.
func (r Ranges) Has(n uint64) bool {
	i, found := slices.BinarySearchFunc(r, n, func(a Range, n uint64) int {
		switch {
		case a.To < n:
			return -1
		case a.From > n:
			return 1
		default:
			return 0
		}
	})
	return found && i < len(r)
}

// normal sorts ranges and joins those that overlap or touch.
func normal(r []Range) Ranges {
	slices.SortFunc(r, func(a, b Range) int {
		switch {
		case a.From < b.From:
			return -1
		case a.From > b.From:
			return 1
		default:
			return 0
		}
	})
	var out Ranges
	for _, x := range r {
		if n := len(out); n > 0 && (x.From <= out[n-1].To || out[n-1].To+1 == x.From) {
			out[n-1].To = max(out[n-1].To, x.To)
			continue
		}
		out = append(out, x)
	}
	return out
}

// group is a group of ports.
type group struct {
	name  string
	guids Ranges
	names map[string]bool // "node description/P1"
	parts []string        // names of partitions
	types uint8           // bits by ib.NodeType
	self  bool
	all   bool
}

// rule is a match rule. Empty sets match anything.
type rule struct {
	from, to []int // groups, of which one must have the source, or destination
	classes  Ranges
	services Ranges
	pkeys    Ranges // without the membership bit
	level    int
}

// Port has the data of an end port that a policy needs.
type Port struct {
	GUID ib.GUID
	Type ib.NodeType
	Name string // description of its node, a slash, P and its number: "h1 HCA-1/P1"
	Self bool   // it is the Subnet Manager's
	// Partitions are the names of its partitions, PKeys their P_Keys.
	Partitions []string
	PKeys      []ib.PKey
}

// Groups is the set of a policy's port groups that a port is in, to be computed
// once for each port: see [Policy.GroupsOf].
type Groups []uint64

func (g Groups) has(i int) bool { return i/64 < len(g) && g[i/64]&(1<<(i%64)) != 0 }

// any reports whether one of some groups is in the set.
func (g Groups) any(groups []int) bool {
	for _, i := range groups {
		if g.has(i) {
			return true
		}
	}
	return false
}

// GroupsOf returns the groups of a port.
func (p *Policy) GroupsOf(port *Port) Groups {
	out := make(Groups, (len(p.groups)+63)/64)
	for i := range p.groups {
		g := &p.groups[i]
		if g.all || g.self && port.Self || g.types&(1<<port.Type) != 0 || g.guids.Has(uint64(port.GUID)) || g.names[port.Name] ||
			slices.ContainsFunc(g.parts, func(name string) bool { return slices.Contains(port.Partitions, name) }) {
			out[i/64] |= 1 << (i % 64)
		}
	}
	for _, u := range p.keys {
		if slices.ContainsFunc(port.PKeys, func(k ib.PKey) bool { return Ranges{u.keys}.Has(uint64(k.Base())) }) {
			out[u.group/64] |= 1 << (u.group % 64)
		}
	}
	return out
}

// Query is a request for the level of a path. A rule with a condition on a value that the request does not have does not
// match.
type Query struct {
	From, To   Groups
	Class      uint16 // QoSClass
	HasClass   bool
	Service    uint64 // ServiceID
	HasService bool
	PKey       ib.PKey // the membership bit does not matter
	HasPKey    bool
}

// Level returns the level of a path. It does not allocate.
func (p *Policy) Level(q *Query) *Level {
	for i := range p.rules {
		if r := &p.rules[i]; r.matches(q) {
			return &p.levels[r.level]
		}
	}
	return &p.levels[0]
}

func (r *rule) matches(q *Query) bool {
	switch {
	case len(r.from) > 0 && !q.From.any(r.from):
	case len(r.to) > 0 && !q.To.any(r.to):
	case len(r.classes) > 0 && (!q.HasClass || !r.classes.Has(uint64(q.Class))):
	case len(r.services) > 0 && (!q.HasService || !r.services.Has(q.Service)):
	case len(r.pkeys) > 0 && (!q.HasPKey || !r.pkeys.Has(uint64(q.PKey.Base()))):
	default:
		return true
	}
	return false
}

// Allows reports whether paths of a level may have a P_Key.
func (l *Level) Allows(k ib.PKey) bool { return len(l.PKeys) == 0 || l.PKeys.Has(uint64(k.Base())) }

// Levels returns all levels, the default first.
func (p *Policy) Levels() []Level { return slices.Clone(p.levels) }

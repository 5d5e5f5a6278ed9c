package group

import (
	"math/bits"
	"slices"

	"portcullis/fabricsm/ib"
)

// alike has the common parameters of groups that share a multicast LID.
type alike struct {
	pkey ib.PKey // base
	sl   ib.SL
	mtu  ib.MTU
	rate ib.Rate
}

func likeness(p *Params) alike { return alike{p.PKey.Base(), p.SL, p.MTU, p.Rate} }

// snm names the solicited-node groups that share a multicast LID.
type snm struct {
	alike
	scope uint8
}

// mlids is which multicast LIDs are used by how many groups.
type mlids struct {
	bits  [256]uint64 // of used LIDs, from MinMulticastLID on
	used  map[ib.LID]*mlid
	alike map[alike][]ib.LID // by the parameters of groups that may share them, ascending
	snm   map[snm]ib.LID
	of    map[ib.PKey]int // how many a partition uses, by base
}

// mlid is a used multicast LID.
type mlid struct {
	groups int
	alike  alike
	snm    snm // of solicited-node groups that share it; zero: there are none
}

func newMLIDs() mlids {
	return mlids{used: make(map[ib.LID]*mlid), alike: make(map[alike][]ib.LID), snm: make(map[snm]ib.LID), of: make(map[ib.PKey]int)}
}

// lowest returns the lowest free multicast LID below a ceiling, or 0 if there is none.
func (m *mlids) lowest(ceiling ib.LID) ib.LID {
	for i, w := range m.bits {
		if w != ^uint64(0) {
			lid := ib.MinMulticastLID + ib.LID(i*64+bits.TrailingZeros64(^w))
			if lid < ceiling && lid.IsMulticast() {
				return lid
			}
			return 0
		}
	}
	return 0
}

// least returns the multicast LID with the fewest groups among those that a group may share, or 0 if there is none.
func (m *mlids) least(a alike) (best ib.LID) {
	for _, lid := range m.alike[a] {
		if best == 0 || m.used[lid].groups < m.used[best].groups {
			best = lid
		}
	}
	return best
}

// fits reports whether a group may use its multicast LID: it is free, or its groups have the same parameters.
func (m *mlids) fits(g *Group) bool {
	u := m.used[g.MLID]
	return g.MLID.IsMulticast() && (u == nil || u.alike == likeness(&g.Params))
}

// take has a group use its own, and reports whether it is the first.
func (m *mlids) take(g *Group) bool {
	u := m.used[g.MLID]
	first := u == nil
	if first {
		u = &mlid{alike: likeness(&g.Params)}
		m.used[g.MLID] = u
		m.of[u.alike.pkey]++
		i := g.MLID - ib.MinMulticastLID
		m.bits[i/64] |= 1 << (i % 64)
		at, _ := slices.BinarySearch(m.alike[u.alike], g.MLID)
		m.alike[u.alike] = slices.Insert(m.alike[u.alike], at, g.MLID)
	}
	u.groups++
	if s, ok := solicited(g); ok && u.snm == (snm{}) && m.snm[s] == 0 {
		m.snm[s], u.snm = g.MLID, s
	}
	return first
}

// release has a group use its own no longer, and reports whether it was the last.
func (m *mlids) release(g *Group) bool {
	u := m.used[g.MLID]
	if u.groups--; u.groups > 0 {
		return false
	}
	delete(m.used, g.MLID)
	if m.of[u.alike.pkey]--; m.of[u.alike.pkey] == 0 {
		delete(m.of, u.alike.pkey)
	}
	i := g.MLID - ib.MinMulticastLID
	m.bits[i/64] &^= 1 << (i % 64)
	m.alike[u.alike] = slices.DeleteFunc(m.alike[u.alike], func(l ib.LID) bool { return l == g.MLID })
	if len(m.alike[u.alike]) == 0 {
		delete(m.alike, u.alike)
	}
	if u.snm != (snm{}) {
		delete(m.snm, u.snm)
	}
	return true
}

// choose returns the multicast LID of a new group, or 0 if there is none for it. asked is the requested LID, or 0. With
// fair, its partition gets no more LIDs than are left for others.
func (r *Registry) choose(g *Group, asked ib.LID, fair bool) ib.LID {
	m, top := &r.mlids, r.fabric.Ceiling()
	if s, ok := solicited(g); ok && r.cfg.ShareSNM {
		if lid := m.snm[s]; lid != 0 {
			return lid
		}
	}
	room := int(top) - int(ib.MinMulticastLID)
	free := room - len(m.used)
	if !g.Fixed {
		free -= min(r.cfg.Reserve, room/8)
	}
	if free <= 0 || fair && m.of[g.PKey.Base()] >= free {
		return m.least(likeness(&g.Params))
	}
	if asked.IsMulticast() && asked < top && m.used[asked] == nil {
		return asked
	}
	return m.lowest(top)
}

package query

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"

	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mcast"
	"portcullis/fabricsm/sa/group"
)

// Groups lists multicast groups by MGID.
func (o *Observer) Groups(_ context.Context, q v1.GroupQuery) (*v1.Page[v1.FabricGroup], error) {
	l, err := o.listing(&q.RegisteredQuery)
	if err != nil {
		return nil, err
	}
	partition, err := pkeyAsked(q.PKey)
	if err != nil {
		return nil, err
	}
	after, err := mgidAfter(q.After)
	if err != nil {
		return nil, err
	}
	all := groupsAbove(l.Registered.Groups, after)
	if q.MGID != "" {
		g, err := l.group(q.MGID)
		if err != nil {
			return nil, err
		}
		all = func(yield func(*group.Group) bool) { yield(g) }
	}
	row := func(g *group.Group) (v1.FabricGroup, bool) {
		if partition != 0 && g.PKey.Base() != partition || !l.isAny() && !l.hasMember(g) {
			return v1.FabricGroup{}, false
		}
		return l.groupRow(g), true
	}
	return registeredPage(l, all, q.Limit, row, func(g *group.Group) string { return hex.EncodeToString(g.MGID[:]) }), nil
}

func groupsAbove(s group.Snapshot, after ib.GID) iter.Seq[*group.Group] {
	return func(yield func(*group.Group) bool) {
		for _, g := range s.Above(after) {
			if !yield(g) {
				return
			}
		}
	}
}

func mgidAfter(cursor string) (g ib.GID, err error) {
	b, err := hex.DecodeString(cursor)
	if err != nil || len(b) != len(g) && cursor != "" {
		return g, badCursor()
	}
	copy(g[:], b)
	return g, nil
}

// group finds the group of an MGID.
func (l *listing) group(mgid string) (*group.Group, error) {
	gid, err := ib.ParseGID(mgid)
	if err != nil {
		return nil, invalid("mgid", err)
	}
	if g := l.Registered.Groups.Group(gid); g != nil {
		return g, nil
	}
	return nil, &refusal.Error{
		Code: "group_unknown", Status: refusal.NotFound,
		Detail: fmt.Sprintf("there is no multicast group %v", gid), Hint: "portcullis fabric groups lists them",
	}
}

// hasMember reports whether a port that is asked for is a member.
func (l *listing) hasMember(g *group.Group) bool {
	for _, m := range g.Members {
		if l.wants(m.Port) {
			return true
		}
	}
	return false
}

func (l *listing) groupRow(g *group.Group) v1.FabricGroup {
	row := v1.FabricGroup{
		MGID: g.MGID, MLID: g.MLID, PKey: g.PKey, QKey: fmt.Sprintf("0x%08x", g.QKey), MTU: g.MTU.Bytes(), Rate: g.Rate.Mbps(),
		LifeTime: uint8(g.PacketLifeTime), SL: g.SL, TClass: g.TClass, FlowLabel: g.FlowLabel, HopLimit: g.HopLimit,
		Configured: g.Fixed, Members: g.Len(), Roots: []string{},
	}
	if m := l.View.Multicast; m != nil {
		if i, ok := slices.BinarySearchFunc(m.Trees, g.MLID, func(t mcast.Tree, lid ib.LID) int { return cmp.Compare(t.MLID, lid) }); ok {
			row.Switches = len(m.Trees[i].Branches)
			for _, id := range m.Trees[i].Roots {
				row.Roots = append(row.Roots, l.name(id))
			}
		}
	}
	return row
}

// Members lists the members of a multicast group by GUID.
func (o *Observer) Members(_ context.Context, mgid string, q v1.RegisteredQuery) (*v1.Page[v1.FabricMember], error) {
	l, err := o.listing(&q)
	if err != nil {
		return nil, err
	}
	g, err := l.group(mgid)
	if err != nil {
		return nil, err
	}
	var after ib.GUID
	if q.After != "" {
		if after, err = ib.ParseGUID(q.After); err != nil {
			return nil, badCursor()
		}
	}
	all := func(yield func(group.Member) bool) {
		for _, m := range g.MembersAbove(after) {
			if !yield(m) {
				return
			}
		}
	}
	row := func(m group.Member) (v1.FabricMember, bool) {
		out := v1.FabricMember{JoinState: m.State.String(), Proxy: m.Proxy}
		if !l.wants(m.Port) {
			return out, false
		}
		if out.Registrant = l.shown(m.Port, m.GUID); m.By != m.Port {
			out.By = m.By
		}
		return out, true
	}
	return registeredPage(l, all, q.Limit, row, func(m group.Member) string { return m.GUID.String() }), nil
}

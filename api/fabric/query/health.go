package query

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/topo"
)

// Health lists places that are unhealthy or marked, by switch GUID and port.
func (o *Observer) Health(_ context.Context, q v1.PageQuery) (*v1.Page[v1.FabricHealth], error) {
	x, at, err := o.asked(q.After)
	if err != nil {
		return nil, err
	}
	page, limit := pageOf[v1.FabricHealth](x), pageSize(q.Limit)
	first := 0
	if at.set {
		first = sort.Search(len(x.View.Health), func(i int) bool { return behind(x.View.Health[i].Place, at) })
	}
	for i, s := range x.View.Health[first:] {
		if i == limit {
			last := page.Items[i-1].Place
			page.Next = position{guid: last.Switch, port: last.Port}.String()
			break
		}
		page.Items = append(page.Items, x.healthRow(&s))
	}
	return page, nil
}

// behind reports a place that comes after a position.
func behind(pl ib.Place, at position) bool {
	return pl.Switch > at.guid || pl.Switch == at.guid && pl.Port > at.port
}

func (x *index) healthRow(s *health.State) v1.FabricHealth {
	row := v1.FabricHealth{
		At: x.placeName(s.Place), Place: s.Place, Node: s.GUID, Unhealthy: s.Unhealthy,
		Mark: s.Mark.String(), Reason: s.Reason, Since: s.Since, Until: s.Until,
	}
	if s.Unhealthy {
		row.Condition, row.Action = s.Condition.String(), s.Action.String()
	}
	return row
}

// placeName names a place, port 0 of which is the switch itself.
func (x *index) placeName(pl ib.Place) string {
	name := pl.Switch.String()
	if id := x.Fabric.NodeByGUID(pl.Switch); id != topo.None {
		name = x.name(id)
	}
	if pl.Port == 0 {
		return name
	}
	return fmt.Sprintf("%s/%d", name, pl.Port)
}

// HealthAt returns the mark in force at a place; ok is false if there is none.
func (o *Observer) HealthAt(pl ib.Place) (row v1.FabricHealth, ok bool, err error) {
	x, err := o.seen()
	if err != nil {
		return row, false, err
	}
	x.ready()
	row = v1.FabricHealth{At: x.placeName(pl), Place: pl}
	i := slices.IndexFunc(x.View.Health, func(s health.State) bool { return s.Place == pl })
	if i < 0 {
		return row, false, nil
	}
	return x.healthRow(&x.View.Health[i]), true, nil
}

// PlaceOf finds the place that a word means: SWITCH/PORT, SWITCH for the switch itself, or NODE/PORT of a host for the
// switch port it is cabled to. A place in quarantine need not be seen.
func (o *Observer) PlaceOf(word string) (ib.Place, error) {
	x, err := o.seen()
	if err != nil {
		return ib.Place{}, err
	}
	x.ready()
	if pl, ok := x.illAt(word); ok {
		return pl, nil
	}
	name, num := word, ib.PortNum(0)
	if i := strings.LastIndexByte(word, '/'); i >= 0 && len(x.nodes(word)) == 0 {
		n, err := ib.ParsePortNum(word[i+1:])
		if err != nil {
			return ib.Place{}, unknown("port", word, "want SWITCH/PORT, for example leaf1/7")
		}
		name, num = word[:i], n
	}
	id, err := x.node(name)
	if err != nil {
		return ib.Place{}, err
	}
	n := x.Fabric.Node(id)
	if int(num) > int(n.NumPorts) {
		return ib.Place{}, unknown("port", word, fmt.Sprintf("node %v has %d ports", n.GUID, n.NumPorts))
	}
	if n.Type == ib.NodeSwitch {
		return ib.Place{Switch: n.GUID, Port: num}, nil
	}
	return x.inFront(id, word, num)
}

// illAt finds a place of the list by its GUIDs.
func (x *index) illAt(word string) (ib.Place, bool) {
	pl, err := ib.ParsePlace(word)
	if err != nil {
		g, err := ib.ParseGUID(word)
		if err != nil {
			return pl, false
		}
		pl = ib.Place{Switch: g}
	}
	return pl, slices.ContainsFunc(x.View.Health, func(s health.State) bool { return s.Place == pl })
}

// inFront returns the switch port that a port of a host is cabled to; port 0 is the only one that has a cable.
func (x *index) inFront(id topo.NodeID, word string, num ib.PortNum) (ib.Place, error) {
	f, found := x.Fabric, []ib.Place{}
	for i := 1; i <= int(f.Node(id).NumPorts); i++ {
		p := f.Port(f.PortOf(id, ib.PortNum(i)))
		if p.Peer == topo.None || num != 0 && num != ib.PortNum(i) {
			continue
		}
		if peer := f.Port(p.Peer); f.Node(peer.Node).Type == ib.NodeSwitch {
			found = append(found, ib.Place{Switch: f.Node(peer.Node).GUID, Port: peer.Num})
		}
	}
	switch len(found) {
	case 0:
		return ib.Place{}, unknown("switch port in front of", word, "no cable of it to a switch is seen")
	case 1:
		return found[0], nil
	default:
		return ib.Place{}, unknown("single switch port in front of", word, "it has several cables: name NODE/PORT")
	}
}

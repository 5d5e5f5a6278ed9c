package fabric

import (
	"context"
	"slices"

	"portcullis/api/review"
	"portcullis/api/store"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// loadReview reads whether the state is in review, and which hosts were approved.
func (b *book) loadReview(ctx context.Context, r store.Reader) (err error) {
	if b.mark, err = review.Current(ctx, r); err != nil {
		return err
	}
	decisions, _, err := review.Decisions().List(ctx, r, "")
	b.approved = make(map[string]bool, len(decisions))
	for _, d := range decisions {
		b.approved[d.Key] = d.Value.Approved
	}
	return err
}

// changeReview takes a change of these records, and reports whether it was one.
func (b *book) changeReview(ch store.Change) (bool, error) {
	if _, ok := review.Marks().KeyOf(ch.Key); ok {
		if ch.Value == nil {
			b.mark = nil
			return true, nil
		}
		rec, err := review.Marks().Decode(ch)
		b.mark = &rec.Value
		return true, err
	}
	host, ok := review.Decisions().KeyOf(ch.Key)
	if !ok {
		return false, nil
	}
	if ch.Value == nil {
		delete(b.approved, host)
		return true, nil
	}
	rec, err := review.Decisions().Decode(ch)
	b.approved[host] = rec.Value.Approved
	return true, err
}

// holds reports whether the grants of a host are honoured only where switch ports have them already.
func (b *book) holds(host string) bool {
	return b.mark != nil && !b.approved[host] && !b.trustsState
}

// find records, during a review, which P_Keys of tenants switch ports have. Tables that were not read whole say nothing:
// earlier findings there stay.
func (b *book) find() {
	if b.mark == nil {
		for _, key := range b.tables.keys() {
			b.tables.drop(key)
		}
		return
	}
	f := b.seen.fabric
	for _, id := range f.ByGUID() {
		n := f.Node(id)
		if n.Type != ib.NodeSwitch {
			continue
		}
		for num := 1; num <= int(n.NumPorts); num++ {
			if p := f.PortOf(id, ib.PortNum(num)); p != topo.None {
				b.findPort(p, ib.Place{Switch: n.GUID, Port: ib.PortNum(num)}, n.Description)
			}
		}
	}
}

func (b *book) findPort(id topo.PortID, place ib.Place, name string) {
	keys, proven := b.seen.pkeys(id)
	if !proven {
		return
	}
	keys = slices.DeleteFunc(slices.Clone(keys), func(k ib.PKey) bool { return k.Base() == ib.DefaultPKeyLimited })
	if len(keys) == 0 {
		b.tables.drop(place.String())
		return
	}
	f := b.seen.fabric
	is := review.Found{Place: place, Switch: name, PKeys: keys, Time: b.clock()}
	if peer := f.Port(id).Peer; peer != topo.None && f.NodeOf(peer).Type != ib.NodeSwitch {
		is.GUID, is.Node = f.Port(peer).GUID, f.NodeOf(peer).Description
	}
	if was, known := b.tables.get(place.String()); known {
		at := was.Time
		if was.Time = is.Time; same(&was, &is) {
			is.Time = at
		}
	}
	b.tables.set(place.String(), is)
}

func same(a, b *review.Found) bool {
	return a.Place == b.Place && a.Switch == b.Switch && a.GUID == b.GUID && a.Node == b.Node && slices.Equal(a.PKeys, b.PKeys)
}

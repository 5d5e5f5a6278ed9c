package query

import (
	"context"
	"fmt"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa/alias"
	"portcullis/fabricsm/sa/inform"
	"portcullis/fabricsm/sa/service"
	"portcullis/fabricsm/topo"
)

// Services lists services by ServiceID, GUID and P_Key.
func (o *Observer) Services(_ context.Context, q v1.ServiceQuery) (*v1.Page[v1.FabricService], error) {
	l, err := o.listing(&q.RegisteredQuery)
	if err != nil {
		return nil, err
	}
	partition, err := pkeyAsked(q.PKey)
	if err != nil {
		return nil, err
	}
	var id ib.ServiceID
	if q.ID != "" {
		if id, err = ib.ParseServiceID(q.ID); err != nil {
			return nil, invalid("service_id", err)
		}
	}
	after := service.RID{ID: id} // no record has GUID 0
	if q.After != "" {
		const form = "%016x.%016x.%04x"
		if n, err := fmt.Sscanf(q.After, form, &after.ID, &after.GUID, &after.PKey); n != 3 || err != nil {
			return nil, badCursor()
		}
	}
	all := func(yield func(*service.Record) bool) {
		for rid, r := range l.Registered.Services.Above(after) {
			if q.ID != "" && rid.ID != id || !yield(r) {
				return
			}
		}
	}
	row := func(r *service.Record) (v1.FabricService, bool) {
		port := l.portOf(r.GUID)
		if partition != 0 && (r.Open || r.PKey.Base() != partition) || q.Name != "" && r.Record.Name() != q.Name || !l.wants(port) {
			return v1.FabricService{}, false
		}
		out := v1.FabricService{
			ID: r.ID, Name: r.Record.Name(), GID: r.Record.ServiceGID, Registrant: l.shown(port, r.GUID),
			Expires: r.Expires.UTC(), Keyed: !r.Record.ServiceKey.IsZero(),
		}
		if !r.Open {
			out.PKey = r.PKey
		}
		return out, true
	}
	cursor := func(r *service.Record) string {
		return fmt.Sprintf("%016x.%016x.%04x", uint64(r.ID), uint64(r.GUID), uint16(r.PKey))
	}
	return registeredPage(l, all, q.Limit, row, cursor), nil
}

// Subscriptions lists subscriptions to notices by GUID and number.
func (o *Observer) Subscriptions(_ context.Context, q v1.RegisteredQuery) (*v1.Page[v1.FabricSubscription], error) {
	l, err := o.listing(&q)
	if err != nil {
		return nil, err
	}
	as, number, err := numberedAfter(q.After)
	if err != nil {
		return nil, err
	}
	row := func(s *inform.Subscription) (v1.FabricSubscription, bool) {
		out := v1.FabricSubscription{
			Enum: s.Enum, What: s.What(), About: s.About(), QPN: fmt.Sprintf("0x%06x", s.Address.QP), Trusted: s.Trusted,
		}
		if !l.wants(s.Port) {
			return out, false
		}
		out.Registrant = l.shown(s.Port, s.As)
		return out, true
	}
	cursor := func(s *inform.Subscription) string { return numbered(s.As, s.Enum) }
	return registeredPage(l, l.Registered.Subscriptions.Above(as, number), q.Limit, row, cursor), nil
}

// numbered returns a cursor of rows that are distinguished by a GUID and a number.
func numbered(g ib.GUID, number uint16) string { return fmt.Sprintf("%016x.%04x", uint64(g), number) }

func numberedAfter(cursor string) (g ib.GUID, number uint16, err error) {
	if cursor == "" {
		return 0, 0, nil
	}
	var v uint64
	if n, err := fmt.Sscanf(cursor, "%16x.%4x", &v, &number); n != 2 || err != nil || numbered(ib.GUID(v), number) != cursor {
		return 0, 0, badCursor()
	}
	return ib.GUID(v), number, nil
}

// aliasEntry is one alias that a port was given.
type aliasEntry struct {
	alias.Given
	at int // of Aliases
}

// entry is the number of the entry of the GUID table.
func (e *aliasEntry) entry() int { return e.at + 1 }

// Aliases lists alias GUIDs by port and entry.
func (o *Observer) Aliases(_ context.Context, q v1.RegisteredQuery) (*v1.Page[v1.FabricAlias], error) {
	l, err := o.listing(&q)
	if err != nil {
		return nil, err
	}
	port, number, err := numberedAfter(q.After)
	if err != nil {
		return nil, err
	}
	all := func(yield func(aliasEntry) bool) {
		for g := range l.Registered.Aliases.Above(max(port, 1) - 1) {
			for i, a := range g.Aliases {
				if a == 0 || g.Port == port && i+1 <= int(number) {
					continue
				}
				if !yield(aliasEntry{g, i}) {
					return
				}
			}
		}
	}
	row := func(e aliasEntry) (v1.FabricAlias, bool) {
		if !l.wants(e.Port) {
			return v1.FabricAlias{}, false
		}
		return v1.FabricAlias{Registrant: l.shown(e.Port, e.Aliases[e.at]), Entry: e.entry(), Proven: l.holds(&e)}, true
	}
	return registeredPage(l, all, q.Limit, row, func(e aliasEntry) string { return numbered(e.Port, uint16(e.entry())) }), nil
}

// holds reports whether an alias was read back from its port.
func (l *listing) holds(e *aliasEntry) bool {
	id := l.Fabric.PortByGUID(e.Port)
	if id == topo.None {
		return false
	}
	have := l.View.Aliases(id)
	return e.at < len(have) && have[e.at] == e.Aliases[e.at]
}

package leadership

import (
	"context"
	"log/slog"
	"time"

	"portcullis/api/instances"
	"portcullis/api/store"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
)

// Place records by which port this instance manages the fabric, in one term.
type Place struct {
	Store *store.Store
	Name  string // of this instance
	Log   *slog.Logger

	port  ib.GUID
	place ib.Place
}

// OnView takes a view of the subnet manager. One goroutine calls it; it does not block. What it records ends with ctx.
func (p *Place) OnView(ctx context.Context, v *sm.View) {
	if v.State != ib.SMMaster || !v.Settled {
		return
	}
	id := v.Fabric.PortByGUID(v.GUID)
	if id == topo.None || v.GUID == p.port && v.Fabric.PlaceOf(id) == p.place {
		return
	}
	p.port, p.place = v.GUID, v.Fabric.PlaceOf(id)
	at, by := p.place, p.port
	go func() {
		err := instances.Update(ctx, p.Store, p.Name, time.Now().UTC().Round(0), func(i *instances.Instance) { i.Port, i.Place = by, at })
		if err != nil && ctx.Err() == nil {
			p.Log.Warn("where this instance is attached was not recorded; another one takes its port for a host's", "error", err)
		}
	}()
}

// Siblings returns where the instances that share the fabric are attached.
func Siblings(ctx context.Context, st *store.Store) ([]sm.Sibling, error) {
	all, err := instances.List(ctx, st, time.Now())
	if err != nil {
		return nil, err
	}
	var out []sm.Sibling
	for _, i := range all {
		if i.Port.Valid() && !i.Place.IsZero() {
			out = append(out, sm.Sibling{GUID: i.Port, Place: i.Place})
		}
	}
	return out, nil
}

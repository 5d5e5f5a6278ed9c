package layout

import (
	"context"
	"slices"
	"strings"

	"portcullis/api/inventory"
	"portcullis/api/page"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// Service answers questions about the inventory in a store. Methods are safe for concurrent use. Refusals are
// *refusal.Error.
type Service struct{ store *store.Store }

// New returns a Service of a store.
func New(s *store.Store) *Service { return &Service{s} }

// load reads the inventory as of now.
func (s *Service) load(ctx context.Context) (*view, error) {
	snap, err := s.store.Snapshot(ctx)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	c, err := inventory.Load(ctx, snap)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	return newView(c), nil
}

// Racks lists racks by id.
func (s *Service) Racks(ctx context.Context, q v1.RackQuery) (*v1.List[v1.Rack], error) {
	v, err := s.load(ctx)
	if err != nil {
		return nil, err
	}
	out := []v1.Rack{}
	for i := range v.c.Racks {
		if r := &v.c.Racks[i]; q.Site == "" || r.Site == q.Site {
			out = append(out, v.rack(r))
		}
	}
	return page.Cut("racks", q.PageQuery, out, func(r *v1.Rack) string { return r.ID })
}

// Rack returns a rack with what stands in it.
func (s *Service) Rack(ctx context.Context, id string) (*v1.RackView, error) {
	v, err := s.load(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(v.c.Racks, func(r inventory.Rack) bool { return r.ID == id })
	if i < 0 {
		return nil, refusal.New(refusal.NotFound, "rack_unknown", "portcullis inventory show racks", "no rack %q in inventory", refusal.Clip(id))
	}
	return &v1.RackView{Rack: v.rack(&v.c.Racks[i]), Devices: v.devices(id)}, nil
}

// Switches lists switches by name.
func (s *Service) Switches(ctx context.Context, q v1.SwitchQuery) (*v1.List[v1.Switch], error) {
	v, err := s.load(ctx)
	if err != nil {
		return nil, err
	}
	out := []v1.Switch{}
	for i := range v.c.Switches {
		if w := &v.c.Switches[i]; (q.Rack == "" || w.Rack == q.Rack) && (q.Role == "" || string(w.Role) == q.Role) {
			out = append(out, v.device(w))
		}
	}
	return page.Cut("switches", q.PageQuery, out, func(w *v1.Switch) string { return w.ID })
}

// Switch returns a switch, named by id or GUID, with its cables.
func (s *Service) Switch(ctx context.Context, id string) (*v1.SwitchView, error) {
	v, err := s.load(ctx)
	if err != nil {
		return nil, err
	}
	w, err := v.find(id)
	if err != nil {
		return nil, err
	}
	out := &v1.SwitchView{Switch: v.device(w), Cabled: []v1.InventoryCable{}}
	for _, c := range v.cables() {
		switch w.GUID {
		case c.PlaceA.Switch:
			out.Cabled = append(out.Cabled, c)
		case c.PlaceB.Switch:
			c.PlaceA, c.PlaceB, c.A, c.B = c.PlaceB, c.PlaceA, c.B, c.A
			out.Cabled = append(out.Cabled, c)
		}
	}
	slices.SortFunc(out.Cabled, func(a, b v1.InventoryCable) int { return int(a.PlaceA.Port) - int(b.PlaceA.Port) })
	return out, nil
}

// Cables lists cables by their ends A.
func (s *Service) Cables(ctx context.Context, q v1.CableQuery) (*v1.List[v1.InventoryCable], error) {
	v, err := s.load(ctx)
	if err != nil {
		return nil, err
	}
	var at ib.GUID
	if q.Switch != "" {
		w, err := v.find(q.Switch)
		if err != nil {
			return nil, err
		}
		at = w.GUID
	}
	out := slices.DeleteFunc(v.cables(), func(c v1.InventoryCable) bool {
		return q.Host != "" && c.Host != q.Host || at != 0 && c.PlaceA.Switch != at && c.PlaceB.Switch != at || q.Rack != "" && !v.within(&c, q.Rack)
	})
	return page.Cut("cables", q.PageQuery, out, cableKey)
}

// Spares lists devices in stock, by kind and name.
func (s *Service) Spares(ctx context.Context, q v1.PageQuery) (*v1.List[v1.Spare], error) {
	v, err := s.load(ctx)
	if err != nil {
		return nil, err
	}
	out := v.spares()
	slices.SortFunc(out, func(a, b v1.Spare) int { return strings.Compare(spareKey(&a), spareKey(&b)) })
	return page.Cut("spares", q, out, spareKey)
}

func spareKey(s *v1.Spare) string { return s.Kind + "/" + s.ID }

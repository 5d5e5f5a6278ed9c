package query

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/topo"
)

// Keys says how the M_Keys of devices stand. No key is in a view.
func (o *Observer) Keys(context.Context) (*v1.FabricKeys, error) {
	x, err := o.seen()
	if err != nil {
		return nil, err
	}
	out := x.keys()
	addClasses(out, o.classes.Load(), o.now())
	return out, nil
}

func (x *index) keys() *v1.FabricKeys {
	out := &v1.FabricKeys{Devices: map[string]int{}, Old: map[string]int{}}
	v := x.MKeys
	if v == nil {
		return out
	}
	out.Managed, out.Releasing, out.Released, out.Places = true, v.Releasing, v.Released, v.Places.String()
	out.Rotation = v1.KeyRotation{
		Period: v.Period.Seconds(), Epoch: uint32(v.Cycle.Epoch), Turning: v.Turning,
		Began: v.Cycle.Began, Changed: v.Cycle.Changed, Ended: v.Cycle.Ended,
	}
	now := time.Now() // ages grow while nothing happens
	var ages []time.Duration
	for i := range x.Fabric.Ports() {
		s := x.MKey(i)
		if s == nil {
			continue
		}
		out.Devices[s.Standing.String()]++
		if why := s.Why(v, now); why != "" {
			out.Old[string(why)]++
		}
		if s.Origin != "" {
			ages = append(ages, now.Sub(s.Since))
		}
	}
	if slices.Sort(ages); len(ages) > 0 {
		out.Oldest, out.Median = ages[len(ages)-1].Seconds(), ages[len(ages)/2].Seconds()
	}
	return out
}

// DeviceKeys lists the end ports of which there is something to say about keys.
func (o *Observer) DeviceKeys(_ context.Context, q v1.PageQuery) (*v1.Page[v1.FabricKey], error) {
	x, at, err := o.asked(q.After)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	wanted := func(p topo.PortID) bool { return x.MKey(p) != nil }
	row := func(p topo.PortID) v1.FabricKey { return x.keyRow(p, now) }
	return portPage(x, from(x.Fabric, at), at, q.Limit, wanted, row), nil
}

func (x *index) keyRow(p topo.PortID, now time.Time) v1.FabricKey {
	s, port := x.MKey(p), x.Fabric.Port(p)
	at := x.name(port.Node)
	if port.Num != 0 {
		at = fmt.Sprintf("%s/%d", at, port.Num)
	}
	row := v1.FabricKey{
		GUID: s.GUID, At: at, Kind: keys.MKey.String(), Place: s.Place, State: s.Standing.String(), Epoch: uint32(s.Epoch),
		Origin: string(s.Origin), Old: string(s.Why(x.MKeys, now)), Dual: s.Dual, Exposed: s.Exposed, Lent: s.Lent,
	}
	if s.Origin != "" {
		row.Since, row.Age = s.Since.UTC(), max(0, now.Sub(s.Since).Seconds())
	}
	return row
}

// KeyOf returns the key of an end port, except for the key itself; ok is false if there is nothing to say of it.
func (o *Observer) KeyOf(guid ib.GUID) (row v1.FabricKey, ok bool, err error) {
	x, err := o.seen()
	if err != nil {
		return row, false, err
	}
	x.ready()
	p := x.Fabric.PortByGUID(guid)
	if p == topo.None || x.MKey(p) == nil {
		return row, false, nil
	}
	return x.keyRow(p, time.Now()), true, nil
}

// Retired reports whether the key of a device, which left permanently, was destroyed since the subnet manager started.
func (o *Observer) Retired(guid ib.GUID) (bool, error) {
	x, err := o.seen()
	if err != nil || x.MKeys == nil {
		return false, err
	}
	return slices.Contains(x.MKeys.Retired, guid), nil
}

// standings are the ways in which a device may stand to its key, for metrics: those that no device is in count 0.
func standings() (all []string) {
	for s := mkeys.KeyNone; s <= mkeys.KeyReturned; s++ {
		all = append(all, s.String())
	}
	return all
}

// keys sends the metrics of keys.
func (g *gauges) keys(x *index) {
	if x.MKeys == nil {
		return
	}
	const class = "m_key"
	k, d := x.keys(), g.d
	for _, s := range standings() {
		g.gauge(d.keyDevices, float64(k.Devices[s]), class, s)
	}
	g.gauge(d.keyAge, k.Oldest, class, "max")
	g.gauge(d.keyAge, k.Median, class, "p50")
	g.gauge(d.keyPending, float64(k.Rotation.Turning), class)
	g.gauge(d.keyUnsupported, float64(k.Old[string(keys.WhySingle)]), class)
	g.gauge(d.keyFailed, float64(k.Old[string(keys.WhyUnknown)]+k.Old[string(keys.WhyOverdue)]), class)
	g.gauge(d.keysReleased, truth(k.Releasing))
}

package path_test

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/qos"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/route/updn"
	"portcullis/fabricsm/sa/path"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/multicast"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// Questions that tests ask again and again.
const (
	byGID    = mad.PathComponentSGID | mad.PathComponentDGID
	mtu      = mad.PathComponentMTU | mad.PathComponentMTUSelector
	rate     = mad.PathComponentRate | mad.PathComponentRateSelector
	lifetime = mad.PathComponentPacketLifeTime | mad.PathComponentPacketLifeTimeSelector
	service  = mad.PathComponentServiceID8MSB | mad.PathComponentServiceID56LSB
)

// lab is a small fabric to ask in: hosts 0 and 1 on one leaf, 2 and 3 on another. The
// partitions are 1 (0 full, 1 limited, 2 full), 2 (2 full, 3 full), and the default one,
// in which all are limited.
type lab struct {
	t     testing.TB
	k     *topotest.Kit
	s     sm.Sketch
	rules portindex.Rules
	cfg   path.Config
	sl    ib.SL // of multicast

	engines []route.Engine
	groups  groups
	v       *sm.View
	b       *portindex.Book
	e       *path.Engine
}

type groups map[ib.GID]path.Group

func (g groups) PathGroup(mgid ib.GID) (path.Group, bool) { x, ok := g[mgid]; return x, ok }

func newLab(t testing.TB) *lab {
	l := &lab{t: t, k: topotest.Chain(2, 2), engines: []route.Engine{minhop.Engine{}, updn.Engine{}}, groups: make(groups)}
	f := l.k.Fabric()
	for id := range topo.PortID(f.NumPorts()) {
		l.link(id, ib.HDR, ib.MTU4096)
	}
	for i, keys := range [][]ib.PKey{{0x7fff, 0x8001}, {0x7fff, 0x0001}, {0x7fff, 0x8001, 0x8002}, {0x7fff, 0x8002}} {
		l.keys(i, keys...)
	}
	return l
}

// link sets the speed and MTU of a port.
func (l *lab) link(id topo.PortID, s ib.Speed, m ib.MTU) {
	p := l.k.Port(id)
	p.Width, p.Speed, p.MTUCap, p.NeighborMTU = ib.Width4x, s, m, m
	l.k.SetPort(id, p)
}

// port is port 1 of a host.
func (l *lab) port(host int) topo.PortID { return l.k.PortOf(l.k.Hosts[host], 1) }

func (l *lab) gid(host int) ib.GID {
	return ib.MakeGID(ib.DefaultPrefix, l.k.Port(l.port(host)).GUID)
}

func (l *lab) lid(host int) ib.LID { return l.k.Fabric().Port(l.port(host)).LID }

func (l *lab) keys(host int, keys ...ib.PKey) {
	p := l.port(host)
	l.s.SetPKeys(p, keys...)
	l.s.SetPKeys(l.k.Port(p).Peer, keys...)
}

// open makes view, book and engine.
func (l *lab) open() *lab {
	l.t.Helper()
	f := l.k.Fabric()
	c, err := route.First(f, nil, l.engines...)
	if err != nil {
		l.t.Fatal(err)
	}
	return l.openWith(c.Tables)
}

// openWith makes them with some tables.
func (l *lab) openWith(tables *route.Tables) *lab {
	l.t.Helper()
	l.v = l.s.View(l.k.Fabric(), tables)
	if l.sl != 0 {
		l.v.Multicast = &multicast.View{SL: l.sl}
	}
	l.rules.Policy = l.cfg.Policy
	l.b = portindex.New(portindex.Empty(l.rules), l.v)
	var err error
	if l.e, err = path.New(l.cfg); err != nil {
		l.t.Fatal(err)
	}
	return l
}

func (l *lab) asker(host int, trusted bool) *portindex.Asker {
	if host < 0 {
		return &portindex.Asker{Port: topo.None, Trusted: trusted}
	}
	return &portindex.Asker{Port: l.port(host), LID: l.lid(host), Trusted: trusted}
}

// get asks for one path.
func (l *lab) get(a *portindex.Asker, r mad.PathRecord, mask mad.ComponentMask) (mad.PathRecord, mad.Status) {
	l.t.Helper()
	m := request(&r, mask)
	status, _ := l.e.Get(l.b, l.groups, a, m)
	var out mad.PathRecord
	if err := mad.Decode(m.SAData(), &out); err != nil {
		l.t.Fatal(err)
	}
	return out, status
}

// list reads a table.
func list(t testing.TB, c *path.Cursor) (all []mad.PathRecord) {
	t.Helper()
	rec := make([]byte, c.RecordSize())
	for {
		n, ok := c.Next(rec)
		if !ok {
			return all
		}
		var r mad.PathRecord
		if err := mad.Decode(rec[:n], &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
}

// policy parses a QoS policy.
func policy(t testing.TB, text string) *qos.Policy {
	t.Helper()
	p, err := qos.ParsePolicy("policy", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

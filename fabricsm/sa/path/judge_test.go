package path_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/dfsssp"
	"portcullis/fabricsm/route/dor"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/route/torus"
	"portcullis/fabricsm/route/updn"
	"portcullis/fabricsm/sa/path"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// judge finds paths the long way: from the view alone, link by link, P_Key by P_Key.
type judge struct {
	v    *sm.View
	cfg  path.Config
	held map[topo.PortID][]ib.PKey // results of keys
}

// keys returns the P_Keys that an end port may use.
func (j *judge) keys(id topo.PortID) []ib.PKey {
	if all, ok := j.held[id]; ok {
		return all
	}
	f := j.v.Fabric
	own, _ := j.v.PKeys(id)
	at := f.SwitchPortOf(id)
	best := make(map[ib.PKey]ib.PKey)
	for _, k := range own {
		ok := f.Port(id).Num == 0
		switch {
		case ok:
		case at == topo.None || f.NodeOf(at).PartitionEnforcementCap == 0:
			ok = k.Base() == 0x7fff
		default:
			held, _ := j.v.PKeys(at)
			ok = slices.Contains(held, k)
		}
		if ok {
			best[k.Base()] |= k
		}
	}
	var all []ib.PKey
	for base := ib.PKey(1); base <= 0x7fff; base++ {
		if k, ok := best[base]; ok {
			all = append(all, k)
		}
	}
	j.held[id] = all
	return all
}

// common returns the P_Keys of x with which x and y can communicate.
func (j *judge) common(x, y topo.PortID) (all []ib.PKey) {
	for _, k := range j.keys(x) {
		if slices.ContainsFunc(j.keys(y), k.Matches) {
			all = append(all, k)
		}
	}
	return all
}

func (j *judge) sees(a *portindex.Asker, x topo.PortID) bool {
	if a.Trusted {
		return true
	}
	return a.Port != topo.None && j.v.Fabric.Port(a.Port).LID != 0 && (a.Port == x || len(j.common(a.Port, x)) > 0)
}

// carries is the capacity of a route: bytes and Mb/s.
type carries struct{ mtu, rate int }

func (c *carries) port(p *topo.Port) {
	mtu, rate := max(p.MTUCap.Bytes(), 256), p.Rate()
	if rate == 0 {
		rate = 2500
	}
	c.mtu, c.rate = min(c.mtu, mtu), min(c.rate, rate)
}

func (c *carries) cable(f *topo.Fabric, p topo.PortID) {
	for _, id := range []topo.PortID{p, f.Port(p).Peer} {
		c.port(f.Port(id))
		if n := f.Port(id).NeighborMTU.Bytes(); n != 0 {
			c.mtu = min(c.mtu, n)
		}
	}
}

// walk follows packets from one end port to a LID of another, and the lanes they use.
func (j *judge) walk(t testing.TB, x, y topo.PortID, slid, dlid ib.LID) (c carries, ok bool) {
	f, tables := j.v.Fabric, j.v.Tables
	c = carries{4096, 1 << 30}
	c.port(f.Port(x))
	if x == y {
		return c, true
	}
	sl := tables.SL(slid, dlid)
	sw, in := f.Port(x).Node, ib.PortNum(0)
	if f.Port(x).Num != 0 || f.Node(sw).Type != ib.NodeSwitch {
		out := f.LinkUp(x)
		if out == topo.None {
			return c, false
		}
		c.cable(f, x)
		if out == y {
			return c, true
		}
		sw, in = f.Port(out).Node, f.Port(out).Num
		if tables.Layers() > 1 && tables.SLtoVL()[sl] == ib.VL15 {
			t.Errorf("service level %v is dropped by the source", sl)
		}
	}
	for range 1000 {
		if f.Node(sw).Type != ib.NodeSwitch {
			return c, false
		}
		lft := tables.LFT(sw)
		if int(dlid) >= len(lft) || lft[dlid] == ib.NoPort {
			return c, false
		}
		if lft[dlid] == 0 {
			c.port(f.Port(y))
			return c, f.PortOf(sw, 0) == y
		}
		out := f.PortOf(sw, lft[dlid])
		if out == topo.None || f.LinkUp(out) == topo.None {
			return c, false
		}
		if tables.Layers() > 1 && tables.SwitchLanes(sw, in, lft[dlid])[sl] == ib.VL15 {
			t.Errorf("service level %v is dropped on the way from LID %v to %v", sl, slid, dlid)
		}
		c.cable(f, out)
		peer := f.LinkUp(out)
		if peer == y {
			return c, true
		}
		sw, in = f.Port(peer).Node, f.Port(peer).Num
	}
	return c, false
}

// one returns the path between two LIDs, if it matches the query.
func (j *judge) one(t testing.TB, r *mad.PathRecord, mask mad.ComponentMask, x, y topo.PortID, slid, dlid ib.LID) (out mad.PathRecord, ok bool) {
	given := func(c ...mad.ComponentMask) bool {
		return !slices.ContainsFunc(c, func(c mad.ComponentMask) bool { return !mask.Has(c) })
	}
	raw := given(mad.PathComponentRawTraffic) && r.RawTraffic
	keys := j.common(x, y)
	if given(mad.PathComponentPKey) && !raw {
		keys = slices.DeleteFunc(keys, func(k ib.PKey) bool { return k.Base() != r.PKey.Base() })
	}
	there, ok := j.walk(t, x, y, slid, dlid)
	if !ok || len(keys) == 0 {
		return out, false
	}
	back, reversible := j.walk(t, y, x, dlid, slid)
	if given(mad.PathComponentReversible) && r.Reversible && !reversible {
		return out, false
	}
	sl := ib.SL(0)
	if given(mad.PathComponentSL) {
		sl = r.SL
	} else if s, ok := j.cfg.Partitions[keys[0].Base()]; ok {
		sl = s
	}
	if j.v.Tables.Layers() > 1 {
		if engine := j.v.Tables.SL(slid, dlid); engine != sl && given(mad.PathComponentSL) {
			return out, false
		} else {
			sl = engine
		}
	}
	out = mad.PathRecord{
		DLID: dlid, SLID: slid, RawTraffic: raw, PKey: keys[0], SL: sl,
		MTUSelector: mad.SelectExactly, RateSelector: mad.SelectExactly, PacketLifeTimeSelector: mad.SelectExactly,
	}
	if raw {
		out.PKey = 0
	}
	both := carries{min(there.mtu, back.mtu), min(there.rate, back.rate)}
	if reversible && j.choose(r, mask, both, x == y, &out) {
		out.Reversible = true
	} else if reversible && given(mad.PathComponentReversible) && r.Reversible || !j.choose(r, mask, there, x == y, &out) {
		return out, false
	}
	return out, true
}

// choose applies the selectors.
func (j *judge) choose(r *mad.PathRecord, mask mad.ComponentMask, c carries, loop bool, out *mad.PathRecord) bool {
	var rates []ib.Rate // that may be given, slowest first
	for code := ib.Rate(1); code < 64; code++ {
		if code.Mbps() > 0 && (j.cfg.MaxRate == 0 || code <= j.cfg.MaxRate) {
			rates = append(rates, code)
		}
	}
	slices.SortFunc(rates, ib.Rate.Compare)
	rates = slices.DeleteFunc(rates, func(x ib.Rate) bool { return x.Mbps() > c.rate })
	mtus := []ib.MTU{1, 2, 3, 4, 5}
	mtus = slices.DeleteFunc(mtus, func(m ib.MTU) bool { return m.Bytes() > c.mtu })
	lives := make([]ib.ExpTime, 19)
	for i := range lives {
		lives[i] = ib.ExpTime(i)
	}
	if loop {
		lives = lives[:1]
	}
	ok := true
	out.MTU = pick(mtus, mask.Has(mad.PathComponentMTU|mad.PathComponentMTUSelector), r.MTUSelector, func(m ib.MTU) int { return int(m) - int(r.MTU) }, &ok)
	out.PacketLifeTime = pick(lives, mask.Has(mad.PathComponentPacketLifeTime|mad.PathComponentPacketLifeTimeSelector), r.PacketLifeTimeSelector,
		func(l ib.ExpTime) int { return int(l) - int(r.PacketLifeTime) }, &ok)
	if out.PacketLifeTime == 0 && !loop && r.PacketLifeTimeSelector == mad.SelectLess && mask.Has(mad.PathComponentPacketLifeTime|mad.PathComponentPacketLifeTimeSelector) {
		ok = false // 0 is for loops
	}
	if asked := mask.Has(mad.PathComponentRate | mad.PathComponentRateSelector); asked && r.RateSelector == mad.SelectExactly {
		out.Rate = rates[len(rates)-1]
		ok = ok && out.Rate == r.Rate
	} else {
		out.Rate = pick(rates, asked, r.RateSelector, func(x ib.Rate) int { return x.Compare(r.Rate) }, &ok)
	}
	return ok
}

// pick returns the largest available value that matches the query.
func pick[T any](have []T, asked bool, sel mad.Selector, order func(T) int, ok *bool) (v T) {
	for _, x := range slices.Backward(have) {
		switch o := order(x); {
		case !asked, sel == mad.SelectBest, sel == mad.SelectGreater && o > 0, sel == mad.SelectLess && o < 0, sel == mad.SelectExactly && o == 0:
			return x
		case sel == mad.SelectGreater:
			*ok = false
			return x
		}
	}
	*ok = false
	return v
}

// all returns the answer to a GetTable, and the status.
func (j *judge) all(t testing.TB, a *portindex.Asker, r *mad.PathRecord, mask mad.ComponentMask) (list []mad.PathRecord, status mad.Status) {
	const service = mad.PathComponentServiceID8MSB | mad.PathComponentServiceID56LSB
	switch {
	case mask.Has(mtu) && r.MTU.Bytes() == 0, mask.Has(rate) && r.Rate.Mbps() == 0:
		return nil, mad.StatusInvalidRequest
	case mask&service != 0 && !mask.Has(service):
		return nil, mad.StatusInsufficientComponents
	case mask&anyEnd == 0 && !j.cfg.FullWorld:
		return nil, mad.StatusDenied
	}
	src, status := j.ends(a, mask.Has(mad.PathComponentSGID), r.SGID, mask.Has(mad.PathComponentSLID), r.SLID)
	if status != mad.StatusOK {
		return nil, status
	}
	dst, status := j.ends(a, mask.Has(mad.PathComponentDGID), r.DGID, mask.Has(mad.PathComponentDLID), r.DLID)
	if status != mad.StatusOK {
		return nil, status
	}
	for _, s := range src {
		for _, d := range dst {
			list = append(list, j.between(t, r, mask, s, d)...)
		}
	}
	return list, mad.StatusOK
}

const anyEnd = mad.PathComponentSGID | mad.PathComponentSLID | mad.PathComponentDGID | mad.PathComponentDLID

// some returns the paths of which a Get returns the first.
func (j *judge) some(t testing.TB, b *portindex.Book, a *portindex.Asker, r *mad.PathRecord, mask mad.ComponentMask) ([]mad.PathRecord, mad.Status) {
	me := b.EndPort(a.Port)
	const from, to = mad.PathComponentSGID | mad.PathComponentSLID, mad.PathComponentDGID | mad.PathComponentDLID
	if list, status := j.all(t, a, r, mask); !a.Trusted && mask&to == 0 {
		if mask&from != 0 && status != mad.StatusOK {
			return list, status // of the source
		}
		if invalid := status == mad.StatusInvalidRequest || status == mad.StatusInsufficientComponents; invalid {
			return nil, status
		}
		return nil, mad.StatusInsufficientComponents
	}
	if !a.Trusted && mask&from == 0 && me == nil {
		if _, status := j.all(t, a, r, mask); status == mad.StatusOK {
			return nil, mad.StatusNoRecords
		}
	}
	if me != nil && mask&(mad.PathComponentSGID|mad.PathComponentSLID) == 0 {
		from := *r
		from.SGID = ib.MakeGID(ib.DefaultPrefix, me.GUID)
		if own, status := j.all(t, a, &from, mask|mad.PathComponentSGID); !a.Trusted || len(own) > 0 || status != mad.StatusOK && status != mad.StatusNoRecords {
			return own, status
		}
	}
	return j.all(t, a, r, mask)
}

// place is a side of paths.
type place struct {
	port topo.PortID
	gid  ib.GID
	lids []ib.LID
}

func (j *judge) between(t testing.TB, r *mad.PathRecord, mask mad.ComponentMask, s, d place) (list []mad.PathRecord) {
	for _, same := range []bool{true, false} {
		for i, slid := range s.lids {
			for k, dlid := range d.lids {
				if (i == k) != same {
					continue
				}
				p, ok := j.one(t, r, mask, s.port, d.port, slid, dlid)
				if !ok || mask.Has(mad.PathComponentNumbPath) && len(list) >= int(r.NumbPath) {
					continue
				}
				if p.SGID, p.DGID = s.gid, d.gid; !same {
					p.Preference = 2
				}
				list = append(list, p)
			}
		}
	}
	return list
}

// ends returns the ports that GID, LID or neither refer to.
func (j *judge) ends(a *portindex.Asker, hasGID bool, gid ib.GID, hasLID bool, lid ib.LID) (all []place, status mad.Status) {
	f := j.v.Fabric
	for id, p := range f.Ports() {
		if p.LID == 0 || p.GUID == 0 || !f.IsEndPort(id) || !j.sees(a, id) {
			continue
		}
		guids := []ib.GUID{p.GUID}
		if !hasLID || hasGID {
			guids = append(guids, j.v.Aliases(id)...)
		}
		for _, g := range guids {
			if g == 0 {
				continue
			}
			x := place{port: id, gid: ib.MakeGID(ib.DefaultPrefix, g)}
			for i := range ib.LID(1) << p.LMC {
				x.lids = append(x.lids, p.LID+i)
			}
			all = append(all, x)
		}
	}
	slices.SortStableFunc(all, func(a, b place) int { return int(a.lids[0]) - int(b.lids[0]) })
	if hasGID {
		if gid.Prefix() != ib.DefaultPrefix {
			return nil, mad.StatusInvalidGID
		}
		all = slices.DeleteFunc(all, func(x place) bool { return x.gid != gid })
	}
	if hasLID {
		known := slices.ContainsFunc(f.EndPorts(), func(id topo.PortID) bool {
			p := f.Port(id)
			return p.LID != 0 && lid >= p.LID && lid < p.LID+1<<p.LMC && j.sees(a, id)
		})
		had := len(all)
		all = slices.DeleteFunc(all, func(x place) bool { return !slices.Contains(x.lids, lid) })
		if hasGID && had > 0 && len(all) == 0 && known {
			return nil, mad.StatusInvalidRequest
		}
		for i := range all {
			all[i].lids = []ib.LID{lid}
		}
	}
	if len(all) == 0 {
		return nil, mad.StatusNoRecords
	}
	return all, mad.StatusOK
}

// shapes are the fabrics that are drawn from.
func shape(rng *rand.Rand) (*topotest.Kit, []route.Engine) {
	draw := func(most int) int { return rng.IntN(most + 1) }
	usual := []route.Engine{minhop.Engine{}, updn.Engine{}}
	switch rng.IntN(9) {
	case 0:
		return topotest.Torus(4, 4, 1), []route.Engine{torus.Engine{Lanes: 8}}
	case 1:
		return topotest.Torus(5, 1, 2), []route.Engine{dfsssp.Engine{Lanes: 8}}
	case 2:
		return topotest.Torus(4, 3, 1), []route.Engine{dor.Engine{Lanes: 8}, dfsssp.Engine{Lanes: 8}}
	case 3:
		return topotest.FatTree2(12, 8), usual
	case 4:
		return topotest.Islands(4), usual
	case 5:
		return topotest.DualPort(), usual
	case 6:
		return topotest.Chain(4, 2), usual
	default:
		return topotest.Random(6, draw), append([]route.Engine{dfsssp.Engine{Lanes: 8}}, usual...)
	}
}

// drawn returns a fabric whose variable properties are all chosen at random.
func drawn(t *testing.T, rng *rand.Rand) (*topotest.Kit, *sm.View) {
	k, engines := shape(rng)
	for _, h := range k.Hosts {
		if rng.IntN(4) == 0 {
			k.SetLMC(h, 1, ib.LMC(rng.IntN(3)))
		}
	}
	f := k.Fabric()
	links(k, f, rng)
	if rng.IntN(3) == 0 {
		sw := f.Switches()[rng.IntN(len(f.Switches()))]
		n := k.Node(sw)
		n.PartitionEnforcementCap = 0
		k.SetNode(sw, n)
	}
	f = k.Fabric()
	var s sm.Sketch
	key := func() ib.PKey { return []ib.PKey{0x8001, 0x8001, 1, 0x8002, 2, 0x7fff, 0xffff}[rng.IntN(7)] }
	for _, p := range f.EndPorts() {
		keys := []ib.PKey{key(), key(), key()}
		s.SetPKeys(p, keys...)
		if at := f.SwitchPortOf(p); at != topo.None {
			if rng.IntN(6) == 0 {
				keys = keys[1:]
			}
			s.SetPKeys(at, keys...)
		}
		if rng.IntN(5) == 0 {
			s.SetAliases(p, ib.GUID(0xA000+int(p)), 0, ib.GUID(0xB000+int(p)))
		}
	}
	c, err := route.First(f, nil, engines...)
	if err != nil {
		return drawn(t, rng) // a fabric for another engine
	}
	tables := c.Tables
	switch rng.IntN(6) {
	case 0: // links are lost, and hosts moved, after the tables were made
		for range 1 + rng.IntN(3) {
			k.Disconnect(topo.PortID(rng.IntN(k.NumPorts())))
		}
		if len(k.Hosts) > 0 {
			h := k.PortOf(k.Hosts[rng.IntN(len(k.Hosts))], 1)
			k.Disconnect(h)
			k.Connect(h, k.PortOf(f.Switches()[0], 1))
		}
	case 1: // tables that no checker has seen, with entries missing or wrong
		t2, err := minhop.Engine{}.Route(f, nil)
		if err != nil {
			break
		}
		for range 20 {
			lft := t2.Writable(nil, f.Switches()[rng.IntN(len(f.Switches()))])
			lft[rng.IntN(len(lft))] = []ib.PortNum{ib.NoPort, 0, 1, 2}[rng.IntN(4)]
		}
		tables = t2
	}
	return k, s.View(k.Freeze(), tables)
}

// links sets MTUs and rates of ports: all the same, a few lower, or random ones.
func links(k *topotest.Kit, f *topo.Fabric, rng *rand.Rand) {
	mode := rng.IntN(4)
	for id := range topo.PortID(f.NumPorts()) {
		p := k.Port(id)
		p.Width, p.Speed, p.MTUCap, p.NeighborMTU = ib.Width4x, ib.HDR, ib.MTU4096, ib.MTU4096
		between := p.Peer != topo.None && f.NodeOf(id).Type == ib.NodeSwitch && f.NodeOf(p.Peer).Type == ib.NodeSwitch
		switch {
		case mode == 1 && rng.IntN(12) == 0, mode == 2:
			p.Width, p.Speed = ib.LinkWidth(1<<rng.IntN(5)), ib.Speed(rng.IntN(10))
			p.MTUCap, p.NeighborMTU = ib.MTU(rng.IntN(6)), ib.MTU(rng.IntN(6))
		case mode == 3 && between:
			p.Speed, p.MTUCap = ib.EDR, ib.MTU2048
		}
		k.SetPort(id, p)
	}
}

// ask returns a random query.
func ask(f *topo.Fabric, v *sm.View, rng *rand.Rand) (r mad.PathRecord, mask mad.ComponentMask) {
	ends := f.EndPorts()
	gid := func() (g ib.GID) {
		p := ends[rng.IntN(len(ends))]
		guid := f.Port(p).GUID
		switch rng.IntN(12) {
		case 0:
			guid++
		case 1:
			if a := v.Aliases(p); len(a) > 0 {
				guid = a[0]
			}
		}
		if g = ib.MakeGID(ib.DefaultPrefix, guid); rng.IntN(30) == 0 {
			g[0] = 0xfd
		}
		return g
	}
	lid := func() ib.LID { return f.Port(ends[rng.IntN(len(ends))]).LID + ib.LID(rng.IntN(2)) }
	r = mad.PathRecord{
		ServiceID: 5, SGID: gid(), DGID: gid(), SLID: lid(), DLID: lid(), RawTraffic: rng.IntN(2) == 0,
		Reversible: rng.IntN(3) > 0, NumbPath: uint8(rng.IntN(5)), PKey: []ib.PKey{0x8001, 1, 0x8002, 0xffff, 0x7fff, 0x8009, 0}[rng.IntN(7)], SL: ib.SL(rng.IntN(3)),
		MTUSelector: mad.Selector(rng.IntN(4)), MTU: ib.MTU(rng.IntN(40) % 7), RateSelector: mad.Selector(rng.IntN(4)), Rate: ib.Rate(1 + rng.IntN(27)),
		PacketLifeTimeSelector: mad.Selector(rng.IntN(4)), PacketLifeTime: ib.ExpTime(rng.IntN(24)),
	}
	maybe := func(c mad.ComponentMask, of int) {
		if rng.IntN(of) == 0 {
			mask |= c
		}
	}
	mask = mad.PathComponentSGID | mad.PathComponentDGID
	switch rng.IntN(16) {
	case 0:
		mask = mad.PathComponentSLID | mad.PathComponentDLID
	case 1:
		mask |= mad.PathComponentSLID
	case 2:
		mask |= mad.PathComponentDLID
	case 3:
		mask = mad.PathComponentSGID
	case 4:
		mask = mad.PathComponentDLID
	case 5:
		if len(ends) < 25 {
			mask = 0
		}
	}
	for _, c := range []mad.ComponentMask{
		mad.PathComponentRawTraffic, mad.PathComponentPKey, mad.PathComponentSL, mad.PathComponentMTU | mad.PathComponentMTUSelector,
		mad.PathComponentRate | mad.PathComponentRateSelector, mad.PathComponentPacketLifeTime | mad.PathComponentPacketLifeTimeSelector,
		mad.PathComponentMTU, mad.PathComponentRateSelector, mad.PathComponentTClass | mad.PathComponentQoSClass,
	} {
		maybe(c, 6)
	}
	maybe(mad.PathComponentReversible, 2)
	maybe(mad.PathComponentNumbPath, 3)
	maybe(mad.PathComponentServiceID8MSB|mad.PathComponentServiceID56LSB, 8)
	maybe(mad.PathComponentServiceID8MSB, 30)
	return r, mask
}

// TestAgainstSlowJudge compares answers on random fabrics with the results of the judge.
func TestAgainstSlowJudge(t *testing.T) {
	found, walked, known := 0, 0, 0
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 3))
		_, v := drawn(t, rng)
		cfg := path.Config{FullWorld: rng.IntN(2) == 0}
		if rng.IntN(2) == 0 {
			cfg.MaxRate = ib.Rate300
		}
		if rng.IntN(2) == 0 {
			cfg.Partitions = map[ib.PKey]ib.SL{1: 1, 2: 2}
		}
		e, err := path.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		b := portindex.New(nil, v)
		j := &judge{v, cfg, make(map[topo.PortID][]ib.PKey)}
		for range 60 {
			r, mask := ask(v.Fabric, v, rng)
			ends := v.Fabric.EndPorts()
			a := &portindex.Asker{Port: ends[rng.IntN(len(ends))], Trusted: rng.IntN(2) == 0}
			want, status := j.all(t, a, &r, mask)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
			where := fmt.Sprintf("seed %d, %+v, mask %x, question %+v", seed, *a, mask, r)
			compareTable(t, where, e, b, a, &r, mask, want, status)
			want, status = j.some(t, b, a, &r, mask&^mad.PathComponentNumbPath) // a Get is for one path, with any NumbPath
			w, steps := compareGet(t, where, e, b, a, &r, mask, want, status)
			if found += w; steps > 0 {
				walked++
			} else {
				known++
			}
		}
	}
	if found < 1000 || walked < 500 || known < 500 {
		t.Errorf("%d paths were found, %d questions had their ways followed, %d not: that tests little", found, walked, known)
	}
}

func request(r *mad.PathRecord, mask mad.ComponentMask) *mad.MAD {
	m := &mad.MAD{}
	m.SetComponentMask(mask)
	if err := mad.Encode(m.SAData(), r); err != nil {
		panic(err)
	}
	return m
}

func compareGet(t *testing.T, where string, e *path.Engine, b *portindex.Book, a *portindex.Asker, r *mad.PathRecord, mask mad.ComponentMask, want []mad.PathRecord, status mad.Status) (found, steps int) {
	t.Helper()
	m := request(r, mask)
	got, steps := e.Get(b, nil, a, m)
	switch {
	case status != mad.StatusOK:
	case len(want) == 0:
		status = mad.StatusNoRecords
	}
	if got != status {
		t.Fatalf("%s: status %v, want %v", where, got, status)
	}
	compareSearch(t, where, e, b, a, request(r, mask), got, m)
	if status == mad.StatusOK {
		var out mad.PathRecord
		if err := mad.Decode(m.SAData(), &out); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want[0], out, cmp.AllowUnexported(mad.PathRecord{})); d != "" {
			t.Fatalf("%s: (-want +got):\n%s", where, d)
		}
		return 1, steps
	}
	return 0, steps
}

// compareSearch checks that a search step by step finds the same as a Get.
func compareSearch(t *testing.T, where string, e *path.Engine, b *portindex.Book, a *portindex.Asker, m *mad.MAD, want mad.Status, record *mad.MAD) {
	t.Helper()
	if !path.Searches(a, m.ComponentMask()) {
		return
	}
	s, status, ok := e.Search(b, a, m)
	if !ok {
		return // a group
	}
	rec, n := make([]byte, path.RecordSize), 0
	for done := status != mad.StatusOK; !done && n == 0; {
		n, done = s.Step(rec, 3)
	}
	if status == mad.StatusOK && n == 0 {
		status = s.Status()
	}
	if status != want || n > 0 && !bytes.Equal(rec, record.SAData()[:path.RecordSize]) {
		t.Fatalf("%s: a search finds %x, status %v, want %v", where, rec, status, want)
	}
}

func compareTable(t *testing.T, where string, e *path.Engine, b *portindex.Book, a *portindex.Asker, r *mad.PathRecord, mask mad.ComponentMask, want []mad.PathRecord, status mad.Status) {
	t.Helper()
	c, got := e.GetTable(b, nil, a, request(r, mask))
	if status == mad.StatusNoRecords {
		status = mad.StatusOK // an empty table
	}
	if got != status {
		t.Fatalf("%s: table: status %v, want %v", where, got, status)
	}
	if status != mad.StatusOK {
		return
	}
	var list [][]byte
	for {
		rec := bytes.Repeat([]byte{0xFF}, path.RecordSize)
		n, ok := c.Next(rec)
		if !ok {
			break
		}
		list = append(list, rec[:n])
	}
	if len(list) != len(want) {
		t.Fatalf("%s: %d records, want %d", where, len(list), len(want))
	}
	for i := range want {
		rec := make([]byte, path.RecordSize)
		if err := mad.Encode(rec, &want[i]); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(rec, list[i]) {
			t.Fatalf("%s: record %d is\n% x, want\n% x", where, i, list[i], rec)
		}
	}
}

package inform

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry"
)

// announced is the state of a port that subscribers know: it is in service in these partitions, with these GUIDs. It is
// kept after the port disappears, until that is reported.
type announced struct {
	pkeys   []ib.PKey
	aliases []ib.GUID
}

// Follow updates the view of the fabric. It returns the notices of ports that appeared and disappeared (traps 64 and 65),
// which it has already reported. A subscriber that shares only some partitions with a port gets a notice when the port
// joins the first of these and leaves the last. The first call reports nothing.
func (r *Registry) Follow(now time.Time, f registry.Fabric) (notices []registry.Notice, e Effects) {
	r.eff = &e
	was := r.fabric
	r.fabric = f
	for _, guid := range slices.Compact(slices.Sorted(f.Changed(was))) {
		port := r.at(guid)
		if was == nil {
			r.told[guid] = announcementOf(port)
			continue
		}
		notices = r.announce(notices, guid, port)
		if p := r.ports[guid]; p != nil {
			r.seek(now, p)
		}
	}
	r.unsure = r.unsure || was == nil
	if f.Settled() {
		for _, guid := range slices.Sorted(maps.Keys(r.doubt)) {
			notices = r.announce(notices, guid, r.at(guid))
		}
		clear(r.doubt)
		if r.unsure {
			for _, guid := range slices.Sorted(maps.Keys(r.ports)) {
				r.seek(now, r.ports[guid])
			}
			r.unsure = false
		}
	}
	for i := range notices {
		n := notices[i]
		r.post(&n)
	}
	r.spread(now)
	r.pump(now)
	return notices, e
}

// at returns the end port with a port GUID, or nil if there is none.
func (r *Registry) at(guid ib.GUID) *portindex.EndPort {
	if e := r.fabric.ByGUID(guid); e != nil && e.GUID == guid {
		return e
	}
	return nil
}

func announcementOf(port *portindex.EndPort) announced {
	if port == nil {
		return announced{}
	}
	return announced{port.PKeys, port.Aliases}
}

// announce compares a port with its announced state.
func (r *Registry) announce(to []registry.Notice, guid ib.GUID, port *portindex.EndPort) []registry.Notice {
	old, is := r.told[guid], announcementOf(port)
	// P_Keys that are not seen because tables are being read are not gone.
	kept := slices.DeleteFunc(slices.Clone(old.pkeys), func(k ib.PKey) bool {
		return port == nil || holds(is.pkeys, k) || r.fabric.Settled() || r.fabric.Lacks(port, k)
	})
	if len(kept) > 0 {
		r.doubt[guid] = true
	}
	now := slices.Concat(is.pkeys, kept)
	gained := slices.DeleteFunc(slices.Clone(now), func(k ib.PKey) bool { return slices.Contains(old.pkeys, k) })
	lost := slices.DeleteFunc(slices.Clone(old.pkeys), func(k ib.PKey) bool { return slices.Contains(now, k) })
	guids := func(aliases []ib.GUID) []ib.GUID {
		return slices.DeleteFunc(append([]ib.GUID{guid}, aliases...), func(g ib.GUID) bool { return g == 0 })
	}
	before, after := guids(old.aliases), guids(is.aliases)
	for _, g := range before {
		if port == nil || !slices.Contains(after, g) {
			to = r.tell(to, mad.TrapGIDOutOfService, g, old.pkeys, nil)
		} else {
			to = r.tell(to, mad.TrapGIDOutOfService, g, lost, now)
		}
	}
	for _, g := range after {
		switch {
		case port == nil:
		case slices.Contains(before, g):
			to = r.tell(to, mad.TrapGIDInService, g, gained, old.pkeys)
		default:
			to = r.tell(to, mad.TrapGIDInService, g, now, nil)
		}
	}
	if port == nil {
		delete(r.told, guid)
	} else {
		r.told[guid] = announced{now, is.aliases}
	}
	return to
}

func holds(keys []ib.PKey, k ib.PKey) bool {
	return slices.ContainsFunc(keys, func(o ib.PKey) bool { return o.Base() == k.Base() })
}

// tell adds a notice of a GUID for subscribers that can communicate with its port by one of pkeys. It excludes those that
// can by one of but.
func (r *Registry) tell(to []registry.Notice, trap mad.TrapNum, g ib.GUID, pkeys, but []ib.PKey) []registry.Notice {
	if len(pkeys) == 0 {
		return to
	}
	lid, sm := r.fabric.Issuer()
	n := registry.AboutGID(trap, ib.MakeGID(r.cfg.Prefix, g), lid, ib.MakeGID(r.cfg.Prefix, sm), pkeys...)
	n.But = slices.Clone(but)
	return append(to, n)
}

// seek looks whether the port of subscribers is there.
func (r *Registry) seek(now time.Time, p *party) {
	if r.at(p.port) != nil {
		r.here(p)
	} else if p.until == 0 {
		r.away(now, p)
	}
}

// away has a port given up some time from now.
func (r *Registry) away(now time.Time, p *party) {
	for _, s := range p.inOrder() {
		r.quiet(s)
	}
	if r.cfg.Linger < 0 {
		r.dismiss(p)
		return
	}
	p.until = now.Add(r.cfg.Linger).UnixNano()
	r.gone = r.gone.With(departure{p.until, p.port}, p)
}

// here takes that a port is there.
func (r *Registry) here(p *party) {
	if p.until != 0 {
		r.gone = r.gone.Without(departure{p.until, p.port})
		p.until = 0
	}
}

// dismiss ends all subscriptions of a port.
func (r *Registry) dismiss(p *party) {
	r.here(p)
	for _, s := range p.inOrder() {
		r.remove(s, Event{Kind: Dropped, Reason: PortGone})
	}
}

// inOrder returns the subscriptions of a port, oldest first.
func (p *party) inOrder() []*sub {
	return slices.SortedFunc(maps.Keys(p.subs), func(a, b *sub) int { return cmp.Compare(a.id, b.id) })
}

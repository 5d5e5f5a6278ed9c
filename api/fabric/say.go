package fabric

import (
	"cmp"
	"slices"

	"portcullis/api/inventory"
	"portcullis/fabricsm/sm"
)

// wanted is an intent as the store has it, and whose its grants are.
type wanted struct {
	intent  sm.Intent
	granted []holder // of intent.Grants
	held    []holder // of intent.Held
	known   bool     // there is one
}

// holder is the host of a grant.
type holder struct {
	host    string
	adopted bool // nothing is proven of it
}

// without returns the intent with the grants of some hosts as ones whose absence is to be
// proven.
func (w *wanted) without(removed map[string]bool) sm.Intent {
	in := w.intent
	if len(removed) == 0 {
		return in
	}
	absent := slices.Clone(in.Absent)
	take := func(from []sm.Grant, of []holder) []sm.Grant {
		kept := make([]sm.Grant, 0, len(from))
		for i, g := range from {
			if removed[of[i].host] {
				absent = append(absent, g)
			} else {
				kept = append(kept, g)
			}
		}
		return kept
	}
	in.Grants, in.Held = take(in.Grants, w.granted), take(in.Held, w.held)
	slices.SortFunc(absent, func(x, y sm.Grant) int {
		return cmp.Or(cmp.Compare(x.PKey, y.PKey), cmp.Compare(x.GUID, y.GUID),
			cmp.Compare(x.Place.Switch, y.Place.Switch), cmp.Compare(x.Place.Port, y.Place.Port))
	})
	in.Absent = absent
	return in
}

// publish replaces the intent that waits to be taken. A book that was never loaded wants
// nothing of the fabric.
func (l *Link) publish(b *book) { l.say(b.wanted()) }

// Removed has removals that operators ordered meanwhile take effect: grants of these hosts
// are not in force, whatever the store says.
func (l *Link) Removed() { l.say(l.lastSaid()) }

func (l *Link) lastSaid() wanted {
	l.saying.Lock()
	defer l.saying.Unlock()
	return l.said
}

func (l *Link) say(w wanted) {
	if !w.known {
		return
	}
	l.saying.Lock()
	defer l.saying.Unlock()
	l.said = w
	in := w.without(l.owed.Removed(w.intent.Revision))
	for {
		select {
		case l.intents <- in:
			return
		default:
		}
		select {
		case <-l.intents:
		default:
		}
	}
}

// Holding is what a host holds, as the store said last.
type Holding struct {
	Host    string
	Cluster string // of which it is a member in full; empty: none
	Epoch   int64  // of the assignment to it; 0: not known
	Tenant  string
	HCAs    []inventory.HCA
	Grants  []sm.Grant // that are not withdrawn
	Adopted []sm.Grant // of its ports, that are not withdrawn: nothing is proven of the host
	Removed bool       // an operator removed it, and the store does not have that yet
}

// Holding returns what a host holds, and false if neither inventory nor a grant names it.
func (l *Link) Holding(host string) (Holding, bool) {
	said, names := l.lastSaid(), l.naming()
	h := Holding{
		Host: host, Tenant: names.tenants[host], HCAs: names.hcas[host],
		Cluster: names.clusters[host].cluster, Epoch: names.clusters[host].epoch,
		Removed: l.owed.Removed(said.intent.Revision)[host],
	}
	take := func(from []sm.Grant, of []holder) {
		for i, g := range from {
			switch {
			case of[i].host != host:
			case of[i].adopted:
				h.Adopted = append(h.Adopted, g)
			default:
				h.Grants = append(h.Grants, g)
			}
		}
	}
	take(said.intent.Grants, said.granted)
	take(said.intent.Held, said.held)
	return h, len(h.Grants)+len(h.Adopted)+len(h.HCAs) > 0
}

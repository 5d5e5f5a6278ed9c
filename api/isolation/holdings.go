package isolation

import (
	"cmp"
	"maps"
	"slices"

	"portcullis/api/fabric/records"
	"portcullis/api/store"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
)

// holdings is what follows from grants.
type holdings struct {
	of      map[ib.GUID][]holding  // by port, in the order of their names
	at      map[ib.Place][]holding // by switch port
	tenants map[ib.GUID]string     // of ports

	granted map[seat][]ib.PKey // P_Keys with their membership, sorted; those that are being withdrawn are not among them
	members map[member]bool    // what any grant explains
	leaving map[member]bool    // of these, what is being withdrawn

	shares map[share]int      // how many grants are of it
	owns   map[ib.PKey]string // tenant by base of a P_Key; of several, the one with the least name
}

// holding is a grant.
type holding struct {
	name string // of its record
	key  records.Key
	records.Grant
}

// share is a P_Key of a tenant.
type share struct {
	base   ib.PKey
	tenant string
}

func newHoldings(grants []store.Record[records.Grant]) (holdings, error) {
	hs := holdings{
		of: map[ib.GUID][]holding{}, at: map[ib.Place][]holding{}, tenants: map[ib.GUID]string{},
		granted: map[seat][]ib.PKey{}, members: map[member]bool{}, leaving: map[member]bool{}, shares: map[share]int{}, owns: map[ib.PKey]string{},
	}
	for i := range grants {
		k, err := records.ParseKey(grants[i].Key)
		if err != nil {
			return hs, err
		}
		h := holding{grants[i].Key, k, grants[i].Value}
		hs.of[k.GUID], hs.at[k.Place] = append(hs.of[k.GUID], h), append(hs.at[k.Place], h)
		hs.share(&h, 1)
		hs.explain(&h)
	}
	for guid, list := range hs.of {
		slices.SortFunc(list, byName)
		hs.find(guid)
	}
	for s := range hs.shares {
		hs.own(s.base, s.tenant)
	}
	for _, list := range hs.at {
		slices.SortFunc(list, byName)
	}
	return hs, nil
}

func byName(a, b holding) int { return cmp.Compare(a.name, b.name) }

// owner returns the tenant that a grant makes the owner of a port; empty: it is of a partition that tenants share, or of a host that is not
// proven.
func (h *holding) owner() string {
	if h.Limited || h.Adopted != "" {
		return ""
	}
	return cmp.Or(h.Tenant, "cluster "+h.Cluster)
}

// find finds the tenant of a port. A port that is being taken from one tenant and given to another belongs to the other; one that is only
// being taken still belongs to its tenant.
func (hs *holdings) find(guid ib.GUID) {
	var best *holding
	list := hs.of[guid]
	for i := range list {
		now := &list[i]
		if now.owner() == "" {
			continue
		}
		if best == nil || best.Withdrawn && !now.Withdrawn || best.Withdrawn == now.Withdrawn && best.Since.UnixNano() < now.Since.UnixNano() {
			best = now
		}
	}
	if delete(hs.tenants, guid); best != nil {
		hs.tenants[guid] = best.owner()
	}
}

// ownerOf returns the owner of a port, which is another one without a grant.
func (hs *holdings) ownerOf(guid ib.GUID, idle proof.Owner) proof.Owner {
	if tenant := hs.tenants[guid]; tenant != "" {
		return proof.Owner{Kind: proof.Tenant, Name: tenant}
	}
	return idle
}

// share adds n to how many grants are of a P_Key of a tenant.
func (hs *holdings) share(h *holding, n int) {
	s := share{h.key.PKey.Base(), h.owner()}
	if s.tenant == "" {
		return
	}
	if hs.shares[s] += n; hs.shares[s] == 0 {
		delete(hs.shares, s)
	}
}

// own notes a tenant of a P_Key.
func (hs *holdings) own(base ib.PKey, tenant string) {
	if was, known := hs.owns[base]; !known || tenant < was {
		hs.owns[base] = tenant
	}
}

// explain keeps what a grant explains, also while it is being withdrawn: its P_Key is in the tables until it is gone.
func (hs *holdings) explain(h *holding) {
	at, base := seat{h.key.GUID, h.key.Place}, h.key.PKey.Base()
	front := seat{at: h.key.Place}
	hs.members[member{at, base}] = true
	hs.members[member{front, base}] = true
	switch {
	case h.Withdrawn:
		hs.leaving[member{at, base}] = true
		hs.leaving[member{front, base}] = true
		return
	case h.Adopted != "":
		return // it explains nothing else: a port that shares a partition with a tenant shows as a leak
	}
	key := base.Full()
	if h.Limited {
		key = base.Limited()
	}
	if i, there := slices.BinarySearch(hs.granted[at], key); !there {
		hs.granted[at] = slices.Insert(slices.Clip(hs.granted[at]), i, key)
	}
}

// forget is the opposite of explain, of all grants at a switch port.
func (hs *holdings) forget(place ib.Place) {
	for _, h := range hs.at[place] {
		base := h.key.PKey.Base()
		for _, at := range [...]seat{{h.key.GUID, place}, {at: place}} {
			delete(hs.members, member{at, base})
			delete(hs.leaving, member{at, base})
			delete(hs.granted, at)
		}
	}
}

// clone returns a copy of which nothing is shared that changes.
func (hs *holdings) clone() holdings {
	return holdings{
		of: maps.Clone(hs.of), at: maps.Clone(hs.at), tenants: maps.Clone(hs.tenants), granted: maps.Clone(hs.granted),
		members: maps.Clone(hs.members), leaving: maps.Clone(hs.leaving), shares: maps.Clone(hs.shares), owns: maps.Clone(hs.owns),
	}
}

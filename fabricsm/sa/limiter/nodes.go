package limiter

import (
	"fmt"

	"portcullis/fabricsm/ib"
)

// Tenant is the number of a tenant that shares a lane: 0 is the fabric itself, its switches and ports of no tenant. The
// owner numbers tenants densely and keeps the number of a tenant.
type Tenant uint16

const (
	lids = 0xC000 // unicast LIDs, and 0
	// noNode is the node of LIDs that no port has. Directed routes of unknown senders have the nodes from routed on.
	noNode, routed = 0, lids
	slots          = lids + NumRoutes
)

// NumRoutes is how many ways of directed routes of unknown senders are distinguished.
const NumRoutes = 64

type place struct {
	node   uint16 // base LID; 0 (noNode) if no port has it
	tenant Tenant
}

// Nodes records the node and the tenant of each LID. The zero value knows none. After a change, pass it to the Limiter by
// SetNodes.
type Nodes struct {
	at      [lids]place
	tenants int // the highest number and one
}

// Add assigns the LIDs of an end port, base and all others of its LMC, to a tenant. A LID that is taken moves to the new
// one.
func (n *Nodes) Add(base ib.LID, lmc ib.LMC, t Tenant) error {
	last := int(base) + 1<<lmc - 1
	switch {
	case base == 0 || last >= lids || lmc > 7:
		return fmt.Errorf("limiter: LID %v with LMC %d: want unicast LIDs", base, lmc)
	case t >= MaxTenants:
		return fmt.Errorf("limiter: tenant %d of LID %v: want less than %d; let small tenants share a number", t, base, MaxTenants)
	}
	for lid := int(base); lid <= last; lid++ {
		n.at[lid] = place{uint16(base), t}
	}
	n.tenants = max(n.tenants, int(t)+1)
	return nil
}

// Remove takes the LIDs of an end port out.
func (n *Nodes) Remove(base ib.LID, lmc ib.LMC) {
	for lid := int(base); lid < min(int(base)+1<<min(lmc, 7), lids); lid++ {
		n.at[lid] = place{}
	}
}

// EachLID knows of no fabric: each LID is a node by itself, and all are one tenant.
func EachLID() *Nodes {
	n := &Nodes{tenants: 1}
	for lid := 1; lid < lids; lid++ {
		n.at[lid] = place{node: uint16(lid)}
	}
	return n
}

// find returns the slot of a source and its tenant. Sources that are no port of the fabric belong to the tenant others.
func (n *Nodes) find(lid ib.LID, route uint8, others int) (slot uint16, tenant int) {
	switch {
	case lid == ib.PermissiveLID:
		return routed + uint16(route%NumRoutes), others
	case lid >= lids || n.at[lid].node == noNode:
		return noNode, others
	default:
		return n.at[lid].node, min(int(n.at[lid].tenant), others)
	}
}

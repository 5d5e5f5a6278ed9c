package attest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"portcullis/fabricsm/ib"
)

// compareInventory wants the statement's HCAs to be exactly those of
// inventory, and names every difference.
func compareInventory(s *Statement, exp Expected) *Refusal {
	wanted := make(map[ib.GUID]ExpectedHCA, len(exp.HCAs))
	for _, e := range exp.HCAs {
		wanted[e.NodeGUID] = e
	}
	var diffs []string
	for _, h := range s.HCAs {
		e, ok := wanted[h.NodeGUID]
		if !ok {
			diffs = append(diffs, fmt.Sprintf("HCA %s with node GUID %v is not in inventory", h.Name, h.NodeGUID))
			continue
		}
		delete(wanted, h.NodeGUID)
		diffs = append(diffs, compareHCA(h, e)...)
	}
	for _, e := range slices.SortedFunc(maps.Values(wanted), byNodeGUID) {
		diffs = append(diffs, fmt.Sprintf("the host does not show the HCA with node GUID %v", e.NodeGUID))
	}
	if len(diffs) > 0 {
		return refuse(ReasonGUIDMismatch, "%s", strings.Join(diffs, "; "))
	}
	return nil
}

func byNodeGUID(a, b ExpectedHCA) int { return cmp.Compare(a.NodeGUID, b.NodeGUID) }

func compareHCA(h HCA, e ExpectedHCA) (diffs []string) {
	if e.SystemImageGUID != 0 && h.SystemImageGUID != e.SystemImageGUID {
		diffs = append(diffs, fmt.Sprintf("HCA %s: system image GUID %v, inventory has %v", h.Name, h.SystemImageGUID, e.SystemImageGUID))
	}
	wanted := make(map[ib.PortNum]ib.GUID, len(e.Ports))
	for _, p := range e.Ports {
		wanted[p.Num] = p.GUID
	}
	for _, p := range h.Ports {
		if p.LinkLayer != LinkInfiniBand {
			continue
		}
		guid, ok := wanted[p.Num]
		delete(wanted, p.Num)
		switch {
		case !ok:
			diffs = append(diffs, fmt.Sprintf("HCA %s port %d with GUID %v is not in inventory", h.Name, p.Num, p.GUID))
		case guid != p.GUID:
			diffs = append(diffs, fmt.Sprintf("HCA %s port %d: GUID %v, inventory has %v", h.Name, p.Num, p.GUID, guid))
		}
	}
	for _, p := range e.Ports {
		if _, missing := wanted[p.Num]; missing {
			diffs = append(diffs, fmt.Sprintf("HCA %s: the host does not show InfiniBand port %d with GUID %v", h.Name, p.Num, p.GUID))
		}
	}
	return diffs
}

// check wants a usable record: at least one HCA, each with ports, valid
// GUIDs, none twice.
func (e Expected) check() *Refusal {
	if len(e.HCAs) == 0 {
		return refuse(ReasonInventory, "inventory declares no HCA for host %q", e.Host)
	}
	nodes, ports := map[ib.GUID]bool{}, map[ib.GUID]bool{}
	for _, h := range e.HCAs {
		if !h.NodeGUID.Valid() || nodes[h.NodeGUID] || len(h.Ports) == 0 {
			return refuse(ReasonInventory, "host %q: HCA %v has no valid node GUID, is there twice, or has no port", e.Host, h.NodeGUID)
		}
		nodes[h.NodeGUID] = true
		nums := map[ib.PortNum]bool{}
		for _, p := range h.Ports {
			if !p.GUID.Valid() || ports[p.GUID] || nums[p.Num] {
				return refuse(ReasonInventory, "host %q: HCA %v port %d has no valid GUID or is there twice", e.Host, h.NodeGUID, p.Num)
			}
			ports[p.GUID], nums[p.Num] = true, true
		}
	}
	return nil
}

package fabric

import (
	"portcullis/api/inventory"
	"portcullis/fabricsm/ib"
)

// owners are inventory's names of nodes.
type owners struct {
	names   map[ib.GUID]string   // hosts by node GUID
	nodes   map[string][]ib.GUID // node GUIDs by host
	renamed bool                 // since the names were last told
}

func newOwners() owners {
	return owners{names: map[ib.GUID]string{}, nodes: map[string][]ib.GUID{}, renamed: true}
}

// host takes note of an inventory record; nil: it is gone.
func (o *owners) host(id string, h *inventory.Host) {
	for _, g := range o.nodes[id] {
		delete(o.names, g)
	}
	delete(o.nodes, id)
	o.renamed = true
	if h == nil {
		return
	}
	for _, a := range h.HCAs {
		o.names[a.NodeGUID] = id
		o.nodes[id] = append(o.nodes[id], a.NodeGUID)
	}
}

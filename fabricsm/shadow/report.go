package shadow

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// Kind is what a change is about.
type Kind string

// Kinds of changes.
const (
	KindLID         Kind = "lid"
	KindLMC         Kind = "lmc"
	KindPrefix      Kind = "gid-prefix"
	KindLink        Kind = "link-down"    // a link goes down, if only for a moment
	KindState       Kind = "port-state"   // of a port that did not carry data
	KindSM          Kind = "sm"           // where ports find the Subnet Manager, and how fast they may send traps
	KindMKey        Kind = "m-key"        // key, level and lease
	KindEnforcement Kind = "enforcement"  // of P_Keys and raw packets, by a switch port
	KindMTU         Kind = "mtu"          // of a link
	KindLanes       Kind = "lanes"        // how many lanes a link uses
	KindSpeed       Kind = "link-speed"   // speeds and widths that are enabled, which count when the link trains
	KindPort        Kind = "port"         // other settings of a port
	KindPKeyLost    Kind = "p-key-lost"   // of a host
	KindPKeyGained  Kind = "p-key-gained" // of a host
	KindPKeyMoved   Kind = "p-key-moved"  // to another index of the table of a host
	KindPKeySwitch  Kind = "p-key-switch" // in a table of a switch
	KindRouteLost   Kind = "route-lost"   // of a LID in use
	KindRouteMoved  Kind = "route-moved"  // of a LID in use
	KindRouteGained Kind = "route-gained" // of a LID in use
	KindRouteUnused Kind = "route-unused" // of a LID that no port has
	KindMulticast   Kind = "multicast"
	KindSLtoVL      Kind = "sl-to-vl"
	KindArbitration Kind = "vl-arbitration"
	KindAlias       Kind = "alias"
	KindSwitch      Kind = "switch" // settings of a switch as a whole
)

// Kinds lists all of them, those that jobs notice most first.
func Kinds() []Kind {
	return []Kind{
		KindLink, KindLID, KindLMC, KindPrefix, KindPKeyLost, KindPKeyMoved, KindRouteLost, KindRouteMoved, KindMTU, KindLanes,
		KindMulticast, KindAlias, KindPKeyGained, KindRouteGained, KindState, KindEnforcement, KindPKeySwitch, KindSM, KindMKey, KindSpeed,
		KindSLtoVL, KindArbitration, KindPort, KindSwitch, KindRouteUnused,
	}
}

// Where is a port in physical terms. Port 0 is a switch as a whole.
type Where struct {
	Device   string     `json:"device"` // as the device describes itself
	NodeGUID ib.GUID    `json:"node_guid"`
	Port     ib.PortNum `json:"port"`
	PortGUID ib.GUID    `json:"port_guid,omitzero"` // of an end port
	// Behind and BehindPort are the other end of its link.
	Behind     string     `json:"behind,omitzero"`
	BehindGUID ib.GUID    `json:"behind_guid,omitzero"` // of its node
	BehindPort ib.PortNum `json:"behind_port,omitzero"`
}

// Change is one value that a takeover would change.
type Change struct {
	Kind    Kind   `json:"kind"`
	Noticed bool   `json:"noticed"` // by jobs that run
	Where   Where  `json:"where"`
	What    string `json:"what"`
	From    string `json:"from"`
	To      string `json:"to"`
}

// PKeyEntry is a P_Key that a host holds.
type PKeyEntry struct {
	Where Where   `json:"where"`
	Index int     `json:"index"`
	PKey  ib.PKey `json:"p_key"`
	// Kept says that taking over leaves it there.
	Kept bool `json:"kept"`
}

// Report is what taking over would change.
type Report struct {
	Asked    uint64               `json:"asked"` // questions that were sent
	Sets     map[mad.AttrID]*Sets `json:"-"`
	Renewals uint64               `json:"renewals"` // hosts that would be asked to register again
	Changes  []Change             `json:"changes"`
	PKeys    []PKeyEntry          `json:"-"` // all that hosts hold
	Masters  []Where              `json:"managers"`
	Silent   []Silence            `json:"-"`
	Locked   []Where              `json:"locked"` // ports that would refuse what is written, for their M_Key
	Devices  map[ib.NodeType]int  `json:"-"`
	Unplaced uint64               `json:"-"` // Sets to a device whose place was not understood
	LIDs     map[ib.LID]Where     `json:"-"` // of end ports as they were found
}

// Report returns what the Sets until now would change.
func (p *Port) Report() *Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := &p.overlay
	r := &Report{Asked: p.asked, Sets: make(map[mad.AttrID]*Sets), Renewals: o.renewals, Silent: p.silences(), Devices: make(map[ib.NodeType]int), Unplaced: o.unplaced, LIDs: make(map[ib.LID]Where)}
	for attr, n := range o.sets {
		sets := *n
		r.Sets[attr] = &sets
	}
	for at := range o.managers {
		r.Masters = append(r.Masters, o.where(at))
	}
	for at := range o.refused {
		r.Locked = append(r.Locked, o.where(at))
	}
	slices.SortFunc(r.Masters, compareWhere)
	slices.SortFunc(r.Locked, compareWhere)
	inUse := o.lidsInUse(r)
	for guid, d := range o.devices {
		r.Devices[d.info.NodeType]++
		o.compareDevice(r, guid, d, inUse)
	}
	order := make(map[Kind]int)
	for i, k := range Kinds() {
		order[k] = i
	}
	slices.SortFunc(r.Changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(order[a.Kind], order[b.Kind]), -boolOrder(a.Noticed, b.Noticed), compareWhere(a.Where, b.Where), cmp.Compare(len(a.What), len(b.What)), cmp.Compare(a.What, b.What))
	})
	slices.SortFunc(r.PKeys, func(a, b PKeyEntry) int {
		return cmp.Or(compareWhere(a.Where, b.Where), cmp.Compare(a.Index, b.Index))
	})
	return r
}

// boolOrder compares false with true.
func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

func compareWhere(a, b Where) int {
	return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.NodeGUID, b.NodeGUID), cmp.Compare(a.Port, b.Port))
}

// Noticed reports whether jobs that run would notice a takeover.
func (r *Report) Noticed() bool {
	return slices.ContainsFunc(r.Changes, func(c Change) bool { return c.Noticed })
}

// Foreign lists P_Keys of hosts that no partition explains. The default one is always explained.
func (r *Report) Foreign(known func(ib.PKey) bool) (out []PKeyEntry) {
	for _, e := range r.PKeys {
		if e.PKey.Base() != ib.DefaultPKeyLimited && !known(e.PKey) {
			out = append(out, e)
		}
	}
	return out
}

func (o *overlay) where(at end) Where {
	w := Where{Device: o.name(at.node), NodeGUID: at.node, Port: at.port}
	d := o.devices[at.node]
	if d != nil {
		w.PortGUID = d.guids[at.port]
	}
	if far, ok := o.links[at]; ok {
		w.Behind, w.BehindGUID, w.BehindPort = o.name(far.node), far.node, far.port
	}
	return w
}

// lidsInUse returns the LIDs that end ports have, and would have.
func (o *overlay) lidsInUse(r *Report) map[ib.LID]bool {
	out := make(map[ib.LID]bool)
	for guid, d := range o.devices {
		for num := range d.guids {
			now, found, ok := o.portInfo(end{guid, num})
			if !ok {
				continue
			}
			for _, pi := range []*mad.PortInfo{&now, &found} {
				for i := range ib.LID(1) << pi.LMC {
					if pi.LID != 0 {
						out[pi.LID+i] = true
					}
				}
			}
			if found.LID != 0 {
				r.LIDs[found.LID] = o.where(end{guid, num})
			}
		}
	}
	return out
}

package shadow

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// end is a port of a device.
type end struct {
	node ib.GUID
	port ib.PortNum
}

// device is what is known of a device.
type device struct {
	info  mad.NodeInfo
	desc  string
	named bool                   // it was asked for desc
	guids map[ib.PortNum]ib.GUID // of end ports
	cells map[place]*cell
	held  map[ib.PortNum]*held
}

// place is where in a device a value is.
type place struct {
	port ib.PortNum // 0: of a switch as a whole
	attr mad.AttrID
	mod  uint32 // what is left of the modifier without the port
}

// image is the data of an attribute.
type image = [mad.DataSize]byte

// cell is one value of a device.
type cell struct {
	found image // when it was read first
	real  image // when it was read last
	mask  image // the bits that were written and differ from real
	value image
}

// now returns the value as it would be.
func (c *cell) now() (v image) {
	for i := range v {
		v[i] = c.real[i]&^c.mask[i] | c.value[i]&c.mask[i]
	}
	return v
}

// write has a cell hold a value.
func (c *cell) write(v *image) {
	for i := range v {
		c.mask[i] = c.real[i] ^ v[i]
	}
	c.value = *v
}

// held is the M_Key of an end port.
type held struct {
	shown   ib.MKey // by the port, zero: none, or it is hidden
	level   uint8
	changed bool
	real    ib.MKey // with which the port answers, once changed
	wanted  ib.MKey // which was written in place of it
}

// overlay is a fabric as it would be.
type overlay struct {
	devices map[ib.GUID]*device
	links   map[end]end
	cut     map[end]bool // ports that would be down
	bounced map[end]bool // ports whose link would go down and come back
	own     end          // where questions are sent from; node 0: not known yet

	sets     map[mad.AttrID]*Sets
	renewals uint64       // Sets of PortInfo by which a host is asked to register again
	withheld uint64       // packets that are neither Gets nor Sets which can be answered
	unplaced uint64       // Sets for a device that is not known
	refused  map[end]int  // Sets that ports would refuse for their M_Key
	managers map[end]bool // ports that are announced as those of Subnet Managers
}

// Sets counts requests that write.
type Sets struct {
	Sent     uint64 `json:"sent"`
	Changing uint64 `json:"changing"` // those that write something else than is there
}

func newOverlay() overlay {
	return overlay{
		devices: make(map[ib.GUID]*device), links: make(map[end]end), cut: make(map[end]bool), bounced: make(map[end]bool),
		sets: make(map[mad.AttrID]*Sets), refused: make(map[end]int), managers: make(map[end]bool),
	}
}

func prefix(r mad.Route) (out mad.Route) {
	for i := range r.Len() - 1 {
		out, _ = out.Append(r.At(i))
	}
	return out
}

// resolve returns where a route ends: the device, and the port by which it comes in.
func (o *overlay) resolve(r mad.Route) (end, bool) {
	at := o.own
	for i := 0; i < r.Len() && at.node != 0; i++ {
		at = o.links[end{at.node, r.At(i)}]
	}
	return at, at.node != 0
}

// isCut reports whether a route goes through a port that would be down.
func (o *overlay) isCut(r mad.Route) bool {
	if len(o.cut) == 0 {
		return false
	}
	at := o.own
	for i := range r.Len() {
		out := end{at.node, r.At(i)}
		at = o.links[out]
		if o.cut[out] || o.cut[at] {
			return true
		}
	}
	return false
}

// name returns the text by which a person knows a device.
func (o *overlay) name(node ib.GUID) string {
	if d := o.devices[node]; d != nil && d.desc != "" {
		return d.desc
	}
	return node.String()
}

// keyPort is the port whose M_Key a request to an end is checked by.
func (o *overlay) keyPort(at end) ib.PortNum {
	if d := o.devices[at.node]; d != nil && d.info.NodeType == ib.NodeSwitch {
		return 0
	}
	return at.port
}

// keyEnd is the port whose M_Key requests by a route are checked by.
func (o *overlay) keyEnd(r mad.Route) end {
	at, _ := o.resolve(r)
	return end{at.node, o.keyPort(at)}
}

// heldBy returns what is known of the M_Key of an end, nil for nothing.
func (o *overlay) heldBy(at end) *held {
	d := o.devices[at.node]
	if d == nil {
		return nil
	}
	return d.held[o.keyPort(at)]
}

// realKey returns the M_Key to be shown in place of one that was written only here.
func (o *overlay) realKey(at end, k ib.MKey) ib.MKey {
	if h := o.heldBy(at); h != nil && h.changed && k.Equal(h.wanted) {
		return h.real
	}
	return k
}

// mayWrite reports whether the device at an end would take a Set under a M_Key.
func (o *overlay) mayWrite(at end, k ib.MKey) bool {
	h := o.heldBy(at)
	switch {
	case h == nil:
		return true
	case h.changed:
		return h.wanted.IsZero() || k.Equal(h.wanted)
	case h.shown.IsZero():
		return h.level != 1 // which shows the key under the right one alone; above it there would be no answer
	default:
		return k.Equal(h.shown)
	}
}

// answer completes the answer to a request, whose data is what the device has. It reports false for none.
func (o *overlay) answer(a *asked, data []byte) bool {
	if !a.set && (a.attr == mad.AttrNodeInfo || a.attr == mad.AttrNodeDescription) {
		o.learn(a, data)
		return true
	}
	at, ok := o.resolve(a.route)
	d := o.devices[at.node]
	if !ok || d == nil {
		if a.set {
			o.unplaced++
		}
		return !a.set
	}
	if a.attr == mad.AttrSwitchPortStateTable {
		o.states(at.node, d, a.mod, data)
		return true
	}
	if a.attr == mad.AttrPortInfo {
		o.look(at, d, a, data)
	}
	where, ok := placeOf(d, at, a.attr, a.mod)
	if !ok {
		return !a.set // a Notice is polled
	}
	c := d.cells[where]
	if c == nil {
		c = &cell{}
		copy(c.found[:], data)
		d.cells[where] = c
	}
	copy(c.real[:], data)
	if a.set {
		if !o.mayWrite(at, a.key) {
			o.refused[end{at.node, o.keyPort(at)}]++
			return false
		}
		delete(o.refused, end{at.node, o.keyPort(at)})
		o.set(at, d, where, c, a)
	}
	v := c.now()
	copy(data, v[:])
	return true
}

// learn takes what a device says of itself.
func (o *overlay) learn(a *asked, data []byte) {
	if a.attr == mad.AttrNodeDescription {
		var desc mad.NodeDescription
		if at, ok := o.resolve(a.route); ok && mad.Decode(data, &desc) == nil && o.devices[at.node] != nil {
			o.devices[at.node].desc, o.devices[at.node].named = desc.String(), true
		}
		return
	}
	var info mad.NodeInfo
	if mad.Decode(data, &info) != nil {
		return
	}
	at := end{info.NodeGUID, info.LocalPortNum}
	if n := a.route.Len(); n == 0 {
		o.own = at
	} else if before, ok := o.resolve(prefix(a.route)); ok {
		out := end{before.node, a.route.At(n - 1)}
		o.links[out], o.links[at] = at, out
	}
	d := o.devices[info.NodeGUID]
	if d == nil {
		d = &device{guids: make(map[ib.PortNum]ib.GUID), cells: make(map[place]*cell), held: make(map[ib.PortNum]*held)}
		o.devices[info.NodeGUID] = d
	}
	d.info = info
	d.guids[o.keyPort(at)] = info.PortGUID
}

// look takes what PortInfo of a device says, and hides that another Subnet Manager is there: the fabric is to be looked at as
// it is once that has ended.
func (o *overlay) look(at end, d *device, a *asked, data []byte) {
	var pi mad.PortInfo
	if mad.Decode(data, &pi) != nil {
		return
	}
	where, ok := placeOf(d, at, a.attr, a.mod)
	if !ok {
		return
	}
	if pi.CapabilityMask&mad.IsSM != 0 {
		o.managers[end{at.node, where.port}] = true
		pi.CapabilityMask &^= mad.IsSM
		mad.MustEncode(data, &pi)
	}
	if where.port != o.keyPort(at) {
		return
	}
	h := d.held[where.port]
	if h == nil {
		h = &held{}
		d.held[where.port] = h
	}
	if h.shown.IsZero() || !pi.MKey.IsZero() {
		h.shown = pi.MKey
	}
	h.level = pi.MKeyProtectBits
}

// states shows in a table of port states those that were written.
func (o *overlay) states(node ib.GUID, d *device, block uint32, data []byte) {
	var t mad.SwitchPortStateTable
	if mad.Decode(data, &t) != nil {
		return
	}
	for i := range t.PortState {
		num := int(block)*len(t.PortState) + i
		if num > int(d.info.NumPorts) {
			break
		}
		if pi, _, ok := o.portInfo(end{node, ib.PortNum(num)}); ok {
			t.PortState[i] = pi.PortState
		}
	}
	mad.MustEncode(data, &t)
}

// portInfo returns PortInfo of a port as it would be, and as it was found.
func (o *overlay) portInfo(at end) (now, found mad.PortInfo, ok bool) {
	d := o.devices[at.node]
	if d == nil {
		return now, found, false
	}
	c := d.cells[place{at.port, mad.AttrPortInfo, 0}]
	if c == nil {
		return now, found, false
	}
	v := c.now()
	return now, found, mad.Decode(v[:], &now) == nil && mad.Decode(c.found[:], &found) == nil
}

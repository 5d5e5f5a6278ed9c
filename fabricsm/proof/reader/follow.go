package reader

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/proof"
)

// device is a device that was found.
type device struct {
	info  mad.NodeInfo
	owner proof.Owner // of a switch
	route mad.Route
	at    ib.Place
	ports []port
	// conflict: several devices show its GUID, or one shows two things.
	conflict bool

	lft, mft bool // taken from the earlier reading
	settled  int  // of a switch: ports whose PortInfo was answered, or was not
}

// port is a port of a device. The first three are of adapters, which are asked by each port.
type port struct {
	owner proof.Owner
	found bool
	node  int         // the ask of the NodeInfo by which it was found
	cable proof.Place // where it is cabled, as NodeInfo says
	keys  bool        // its P_Key table is taken from the earlier reading
	guids bool        // its alias GUIDs are

	lanes   bool // it was asked for its SLtoVL table
	lanesIn ib.PortNum
}

// follow asks for what an answer of the first round makes known.
func (r *Reader) follow(i int) {
	q := r.asks[i]
	switch q.attr {
	case mad.AttrNodeInfo:
		if q.how == proof.WasRead {
			r.arrive(i)
		}
	case mad.AttrSwitchInfo:
		for num := range r.devices[q.device].ports {
			r.of(q.device, ib.PortNum(num), mad.AttrPortInfo, mad.PortInfoMod(ib.PortNum(num), 0))
		}
		if q.how == proof.WasRead {
			r.linear(q.device)
		}
	case mad.AttrPortInfo:
		if r.devices[q.device].info.NodeType == ib.NodeSwitch {
			r.switchPort(q.device, q.port)
			d := &r.devices[q.device]
			if d.settled++; d.settled == len(d.ports) {
				r.switchLanes(q.device)
			}
		} else if q.how == proof.WasRead {
			r.aliases(&q)
			r.endLanes(&q)
		}
	}
}

// arrive takes the NodeInfo of what is behind a port.
func (r *Reader) arrive(i int) {
	q := &r.asks[i]
	info := decode[mad.NodeInfo](q.data[:])
	if !plausible(&info, q.device == none) {
		q.how, q.cause = proof.NotRead, Nonsense
		return
	}
	d, known := r.byGUID[info.NodeGUID]
	if !known {
		if len(r.devices) >= r.o.Devices {
			q.how, q.cause = proof.NotRead, TooMany
			return
		}
		d = len(r.devices)
		r.byGUID[info.NodeGUID] = d
		r.devices = append(r.devices, device{info: info, route: q.route, at: q.at, ports: make([]port, int(info.NumPorts)+1)})
	}
	dev := &r.devices[d]
	if known && !sameDevice(&dev.info, &info) {
		dev.conflict = true
		q.how, q.cause = proof.NotRead, Nonsense
		return
	}
	r.cable(i, d, info.LocalPortNum)
	switch {
	case info.NodeType != ib.NodeSwitch:
		r.adapterPort(i, d, &info)
	case !known:
		dev.owner = r.o.Owner(q.at, identity(&info))
		if dev.owner.Kind == proof.Infrastructure {
			r.of(d, 0, mad.AttrSwitchInfo, 0)
		}
	}
}

func identity(info *mad.NodeInfo) Identity {
	return Identity{Type: info.NodeType, Node: info.NodeGUID, Port: info.PortGUID}
}

// plausible reports whether a device of a fabric can have such a NodeInfo.
func plausible(info *mad.NodeInfo, own bool) bool {
	switch info.NodeType {
	case ib.NodeCA, ib.NodeSwitch, ib.NodeRouter:
	default:
		return false
	}
	atPort0 := own && info.NodeType == ib.NodeSwitch && info.LocalPortNum == 0
	return info.NodeGUID != 0 && info.NumPorts > 0 && info.NumPorts < uint8(ib.NoPort) && uint8(info.LocalPortNum) <= info.NumPorts &&
		(info.LocalPortNum > 0 || atPort0)
}

// sameDevice reports whether two answers with one GUID may be of one device, asked by two ports.
func sameDevice(a, b *mad.NodeInfo) bool {
	x, y := *a, *b
	x.LocalPortNum, y.LocalPortNum, x.PortGUID, y.PortGUID = 0, 0, 0, 0
	return x == y
}

// cable notes that a device was found behind a port. A port that is found behind two others is behind none.
func (r *Reader) cable(i, d int, num ib.PortNum) {
	q := &r.asks[i]
	if q.device == none {
		return
	}
	near, far := proof.Place{Device: q.device, Port: q.port}, proof.Place{Device: d, Port: num}
	r.devices[near.Device].ports[near.Port].cable = far
	if r.devices[d].info.NodeType == ib.NodeSwitch {
		return // it is asked from its side, too
	}
	p := &r.devices[d].ports[num]
	switch {
	case p.found && p.cable != near:
		r.devices[d].conflict = true
	default:
		p.cable = near
	}
}

// adapterPort asks for the tables of an adapter's port, by the cable at which it was found.
func (r *Reader) adapterPort(i, d int, info *mad.NodeInfo) {
	q := r.asks[i]
	num := info.LocalPortNum
	p := &r.devices[d].ports[num]
	if p.found {
		return
	}
	p.found, p.node, p.owner = true, i, r.o.Owner(q.at, identity(info))
	r.add(ask{name: name{d, num, mad.AttrPortInfo, 0}, route: q.route, at: q.at})
	entries := info.PartitionCap
	if r.takeKeys(d, num, entries) {
		entries = 0
	}
	for block := range pkeyBlocks(entries) {
		r.add(ask{name: name{d, num, mad.AttrPKeyTable, mad.PKeyTableMod(0, uint16(block))}, route: q.route, at: q.at})
	}
	if q.device == none {
		r.behind(d, num)
	}
}

// aliases asks for the GUIDs of an adapter's port, whose PortInfo was read.
func (r *Reader) aliases(q *ask) {
	if r.o.Alias == nil || r.takeAliases(q.device, q.port) {
		return
	}
	for block := range guidBlocks(q.data[:]) {
		r.add(ask{name: name{q.device, q.port, mad.AttrGUIDInfo, uint32(block)}, route: q.route, at: q.at})
	}
}

// guidBlocks returns how many blocks the GUIDs of an end port take, by its PortInfo: at most 32.
func guidBlocks(data []byte) int {
	return blocks(int(decode[mad.PortInfo](data).GUIDCap), mad.GUIDsPerBlock)
}

// switchPort asks for what belongs to a switch port whose PortInfo is settled.
func (r *Reader) switchPort(d int, num ib.PortNum) {
	if num == 0 {
		r.multicast(d)
		return
	}
	if info, ok := r.read(d, num, mad.AttrPortInfo, mad.PortInfoMod(num, 0)); ok && portFacts(info).state == ib.PortDown {
		return
	}
	if data, ok := r.read(d, 0, mad.AttrSwitchInfo, 0); ok {
		entries := decode[mad.SwitchInfo](data).PartitionEnforcementCap
		if r.takeKeys(d, num, entries) {
			entries = 0
		}
		for block := range pkeyBlocks(entries) {
			r.of(d, num, mad.AttrPKeyTable, mad.PKeyTableMod(num, uint16(block)))
		}
	}
	r.behind(d, num)
}

// behind asks what is behind a port.
func (r *Reader) behind(d int, num ib.PortNum) {
	dev := &r.devices[d]
	q := ask{name: name{device: d, port: num, attr: mad.AttrNodeInfo}, at: ib.Place{Switch: dev.info.NodeGUID, Port: num}}
	var ok bool
	if q.route, ok = dev.route.Append(num); !ok {
		q.how, q.cause = proof.NotRead, TooFar
		r.byName[q.name] = len(r.asks)
		r.asks = append(r.asks, q)
		return
	}
	r.add(q)
}

// of asks a device for an attribute.
func (r *Reader) of(d int, num ib.PortNum, attr mad.AttrID, mod uint32) {
	r.add(ask{name: name{d, num, attr, mod}, route: r.devices[d].route, at: r.devices[d].at})
}

// linear asks for the linear forwarding table.
func (r *Reader) linear(d int) {
	si, _ := r.switchInfo(d)
	if si.LinearFDBTop > ib.MaxUnicastLID || r.takeLFT(d, &si) {
		return
	}
	for block := range blocks(int(si.LinearFDBTop)+1, mad.LIDsPerBlock) {
		r.of(d, 0, mad.AttrLinearForwardingTable, uint32(block))
	}
}

// multicast asks for the multicast forwarding table.
func (r *Reader) multicast(d int) {
	mlids, ok := r.mlids(d)
	if !ok || r.takeMFT(d, mlids) {
		return
	}
	for position := range positions(&r.devices[d]) {
		for block := range blocks(mlids, mad.MLIDsPerBlock) {
			r.of(d, 0, mad.AttrMulticastForwardingTable, mad.MulticastForwardingMod(uint8(position), uint16(block)))
		}
	}
}

// mlids returns how many multicast LIDs a switch forwards.
func (r *Reader) mlids(d int) (int, bool) {
	si, ok := r.read(d, 0, mad.AttrSwitchInfo, 0)
	port0, known := r.read(d, 0, mad.AttrPortInfo, 0)
	if !ok || !known {
		return 0, false
	}
	return mlids(si, port0)
}

// mlids returns how many multicast LIDs a switch forwards, by its SwitchInfo and the PortInfo of its port 0.
func mlids(info, port0 []byte) (int, bool) {
	si := decode[mad.SwitchInfo](info)
	n := int(si.MulticastFDBCap)
	if portFacts(port0).top {
		if si.MulticastFDBTop < ib.MinMulticastLID-1 || si.MulticastFDBTop > ib.MaxMulticastLID {
			return 0, false
		}
		n = min(n, int(si.MulticastFDBTop-ib.MinMulticastLID)+1)
		if si.MulticastFDBTop < ib.MinMulticastLID {
			n = 0
		}
	}
	return n, n <= int(ib.MaxMulticastLID-ib.MinMulticastLID)+2
}

func (r *Reader) switchInfo(d int) (mad.SwitchInfo, bool) {
	data, ok := r.read(d, 0, mad.AttrSwitchInfo, 0)
	if !ok {
		return mad.SwitchInfo{}, false
	}
	return decode[mad.SwitchInfo](data), true
}

// read returns what was read, if it was.
func (r *Reader) read(d int, num ib.PortNum, attr mad.AttrID, mod uint32) ([]byte, bool) {
	i, ok := r.byName[name{d, num, attr, mod}]
	if !ok || r.asks[i].how != proof.WasRead {
		return nil, false
	}
	return r.asks[i].data[:], true
}

// maxPKeys bounds the P_Key table that is read of a port, so that a host can't have the reader ask for ever.
const maxPKeys = 1024

func pkeyBlocks(entries uint16) int {
	if entries > maxPKeys {
		return 0
	}
	return blocks(int(entries), mad.PKeysPerBlock)
}

// blocks returns how many blocks entries take.
func blocks(entries, size int) int { return (entries + size - 1) / size }

// positions returns how many masks of 16 ports a switch has.
func positions(d *device) int { return blocks(len(d.ports), 16) }

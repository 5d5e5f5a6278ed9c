package reader

import (
	"errors"
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/proof"
)

// Found is what was read.
type Found struct {
	Fabric  *proof.Fabric
	Ends    []End     // in the order in which they were found
	Guards  []Guarded // of ends and switches
	Lanes   []Lanes   // by device and port: one of each port that may be up and has several data lanes
	Unknown []Unknown
	Sent    int // requests, with those that were repeated
	Strays  int // packets that answered no request

	// For a reading that builds on this one: answers about what leads to tables, and alias GUIDs of ports where they were read.
	answers map[Value][mad.DataSize]byte
	aliases map[Value][]ib.GUID
	index   map[ib.GUID]int // of devices
	ways    map[proof.Place]way
}

// End is an end port at the place where it was found. A declared port that is not among them was not read: nothing is proven
// of it.
type End struct {
	At   ib.Place // the zero Place is the own port
	GUID ib.GUID
	Port proof.Place
}

// Guard is how a device protects itself by its M_Key. Whether it has one is not read: devices hide it.
type Guard struct {
	Level uint8  // M_KeyProtectBits
	Lease uint16 // M_KeyLeasePeriod in seconds; 0: for ever
}

// Guarded is the guard of an end port, or of a switch (port 0).
type Guarded struct {
	Port  proof.Place
	Guard proof.Read[Guard]
}

// Unknown is a value that was not read, and why.
type Unknown struct {
	Port  proof.Place // Port 0: of the device
	Where string
	What  string
	Cause Cause
}

// What Unknown.What has of values that let no packet pass.
const (
	whatAliases = "alias GUIDs"
	whatLanes   = "SLtoVL table"
)

// Matters reports whether a packet may depend on the value.
func (u Unknown) Matters() bool { return u.What != whatAliases && u.What != whatLanes }

// String returns what is unknown, where, and why.
func (u Unknown) String() string { return fmt.Sprintf("%s of %s: %v", u.What, u.Where, u.Cause) }

// Errors of Found.
var (
	ErrNotDone   = errors.New("the fabric is still being read")
	ErrNotItself = errors.New("the own port does not answer: see whether it is up and whether SMPs may be sent by it")
)

// Found returns what was read, after [Reader.Done].
func (r *Reader) Found() (*Found, error) {
	switch {
	case !r.Done():
		return nil, fmt.Errorf("read fabric: %w", ErrNotDone)
	case r.amends:
		return r.amended(), nil
	case r.asks[0].how != proof.WasRead:
		return nil, fmt.Errorf("read fabric: %w", ErrNotItself)
	}
	b := builder{Reader: r, found: &Found{Fabric: &proof.Fabric{}, Sent: r.sent, Strays: r.unasked, aliases: map[Value][]ib.GUID{}}}
	for d := range r.devices {
		b.found.Fabric.Devices = append(b.found.Fabric.Devices, b.device(d))
	}
	b.cables()
	b.found.answers, b.found.ways = r.answers(), r.ways()
	b.found.index = make(map[ib.GUID]int, len(r.devices))
	for i := range b.found.Fabric.Devices {
		b.found.index[b.found.Fabric.Devices[i].GUID] = i
	}
	return b.found, nil
}

// builder makes the input of the prover.
type builder struct {
	*Reader
	found *Found
}

func (b *builder) device(d int) proof.Device {
	dev := &b.devices[d]
	kind := map[ib.NodeType]string{ib.NodeCA: "adapter", ib.NodeSwitch: "switch", ib.NodeRouter: "router"}[dev.info.NodeType]
	out := proof.Device{
		Name: fmt.Sprintf("%s %v", kind, dev.info.NodeGUID), GUID: dev.info.NodeGUID, Type: dev.info.NodeType,
		Owner: dev.owner, Inbound: b.o.Inbound, Ports: make([]proof.Port, len(dev.ports)),
	}
	if dev.conflict {
		b.unknown(proof.Place{Device: d}, out.Name, "everything", Nonsense)
	}
	switch {
	case dev.info.NodeType != ib.NodeSwitch:
		for num := range dev.ports {
			if dev.ports[num].found {
				b.end(d, ib.PortNum(num), &out)
			}
		}
	case dev.owner.Kind == proof.Infrastructure:
		b.switchDevice(d, &out)
	}
	return out
}

func (b *builder) end(d int, num ib.PortNum, out *proof.Device) {
	p, at := &b.devices[d].ports[num], proof.Place{Device: d, Port: num}
	info := decode[mad.NodeInfo](b.asks[p.node].data[:])
	b.found.Ends = append(b.found.Ends, End{At: b.asks[p.node].at, GUID: info.PortGUID, Port: at})
	where := fmt.Sprintf("%s port %d", out.Name, num)
	to := &out.Ports[num]
	to.Owner = p.owner
	f := b.facts(at, where, 0)
	to.State = proof.Read[ib.PortState]{How: f.How, Value: f.Value.state}
	b.found.Guards = append(b.found.Guards, Guarded{at, proof.Read[Guard]{How: f.How, Value: f.Value.guard}})
	to.PKeys = b.pkeys(at, where, 0, int(info.PartitionCap))
	if b.o.Alias != nil && f.How == proof.WasRead {
		to.Aliases = b.aliases(at, where, info.PortGUID, p.owner)
	}
	b.lanes(at, where)
}

// aliases returns the alias GUIDs of an end port. A device that refuses to show them has none that are known.
func (b *builder) aliases(at proof.Place, where string, own ib.GUID, holder proof.Owner) (list []proof.Alias) {
	var guids []ib.GUID
	v := Value{b.devices[at.Device].info.NodeGUID, at.Port, mad.AttrGUIDInfo}
	if b.before(at.Device) != nil && b.devices[at.Device].ports[at.Port].guids {
		guids = b.o.Earlier.Found.aliases[v]
	} else {
		data, _ := b.read(at.Device, at.Port, mad.AttrPortInfo, 0)
		var mods []uint32
		for block := range guidBlocks(data) {
			mods = append(mods, uint32(block))
		}
		how, why := b.blocks(at, mad.AttrGUIDInfo, mods, func(_ int, data []byte) {
			for _, g := range decode[mad.GUIDInfo](data).GUID {
				if g != 0 && g != own {
					guids = append(guids, g)
				}
			}
		})
		if why != Refused {
			b.note(how, at, where, whatAliases, why)
		}
		if how != proof.WasRead {
			return nil
		}
	}
	b.found.aliases[v] = guids
	for _, g := range guids {
		list = append(list, proof.Alias{GUID: g, Owner: b.o.Alias(g, holder)})
	}
	return list
}

func (b *builder) switchDevice(d int, out *proof.Device) {
	at := proof.Place{Device: d}
	si, how := b.info(at, out.Name)
	for num := range out.Ports {
		b.switchPort(proof.Place{Device: d, Port: ib.PortNum(num)}, out, how, &si)
	}
	if how != proof.WasRead {
		return
	}
	out.MulticastDefaults = proof.Known(proof.Defaults{Primary: si.DefaultMulticastPrimaryPort, NotPrimary: si.DefaultMulticastNotPrimaryPort})
	out.LFT = b.lft(at, out.Name, &si)
	out.MFT = b.mft(at, out.Name)
}

// info returns SwitchInfo.
func (b *builder) info(at proof.Place, where string) (si mad.SwitchInfo, how proof.Reading) {
	how, why := b.blocks(at, mad.AttrSwitchInfo, []uint32{0}, func(_ int, data []byte) { si = decode[mad.SwitchInfo](data) })
	b.note(how, at, where, "SwitchInfo", why)
	return si, how
}

func (b *builder) switchPort(at proof.Place, out *proof.Device, caps proof.Reading, si *mad.SwitchInfo) {
	where := fmt.Sprintf("%s port %d", out.Name, at.Port)
	f := b.facts(at, where, mad.PortInfoMod(at.Port, 0))
	to := &out.Ports[at.Port]
	to.State = proof.Read[ib.PortState]{How: f.How, Value: f.Value.state}
	if at.Port == 0 {
		b.found.Guards = append(b.found.Guards, Guarded{at, proof.Read[Guard]{How: f.How, Value: f.Value.guard}})
		return
	}
	if b.o.Spare != nil && b.o.Spare(ib.Place{Switch: out.GUID, Port: at.Port}) {
		to.Owner = proof.Owner{Kind: proof.Spare}
	}
	if f.How == proof.WasRead && f.Value.state == ib.PortDown {
		to.Check, to.PKeys = proof.Known(f.Value.check), proof.Read[[]ib.PKey]{}
		return
	}
	to.Check = proof.Read[proof.Checks]{How: f.How, Value: f.Value.check}
	if f.How == proof.WasRead && caps == proof.WasRead && claimsTooMuch(f.Value.check, si) {
		to.Check = proof.Read[proof.Checks]{How: proof.Inconsistent}
		b.unknown(at, where, "enforcement", Nonsense)
	}
	if caps == proof.WasRead {
		to.PKeys = b.pkeys(at, where, at.Port, int(si.PartitionEnforcementCap))
	}
	b.lanes(at, where)
}

// claimsTooMuch reports whether a port is said to check what its switch says it can't check.
func claimsTooMuch(c proof.Checks, si *mad.SwitchInfo) bool {
	in, out := si.InboundEnforcementCap && si.PartitionEnforcementCap > 0, si.OutboundEnforcementCap && si.PartitionEnforcementCap > 0
	return c.Inbound && !in || c.Outbound && !out
}

// facts returns what counts of the PortInfo of a port.
func (b *builder) facts(at proof.Place, where string, mod uint32) proof.Read[facts] {
	var f facts
	how, why := b.blocks(at, mad.AttrPortInfo, []uint32{mod}, func(_ int, data []byte) { f = portFacts(data) })
	if how == proof.WasRead && (f.state < ib.PortDown || f.state > ib.PortActiveDefer) {
		how, why = proof.NotRead, Nonsense
	}
	b.note(how, at, where, "PortInfo", why)
	return proof.Read[facts]{How: how, Value: f}
}

// pkeys returns a P_Key table. An empty entry is 0, so that the index of the others stays.
func (b *builder) pkeys(at proof.Place, where string, port ib.PortNum, entries int) proof.Read[[]ib.PKey] {
	if was := b.before(at.Device); was != nil && b.devices[at.Device].ports[at.Port].keys {
		return was.Ports[at.Port].PKeys
	}
	var list []ib.PKey
	var mods []uint32
	for block := range blocks(entries, mad.PKeysPerBlock) {
		mods = append(mods, mad.PKeyTableMod(port, uint16(block)))
	}
	how, why := b.blocks(at, mad.AttrPKeyTable, mods, func(_ int, data []byte) {
		t := decode[mad.PKeyTable](data)
		list = append(list, t.PKey[:]...)
	})
	switch {
	case entries > maxPKeys:
		how, why = proof.NotRead, TooLarge
	case port == 0 && entries == 0: // an end port has at least one
		how, why = proof.NotRead, Nonsense
	}
	b.note(how, at, where, "P_Key table", why)
	return proof.Read[[]ib.PKey]{How: how, Value: list}
}

func (b *builder) lft(at proof.Place, where string, si *mad.SwitchInfo) proof.Read[[]ib.PortNum] {
	if was := b.before(at.Device); was != nil && b.devices[at.Device].lft {
		return was.LFT
	}
	var list []ib.PortNum
	var mods []uint32
	for block := range blocks(int(si.LinearFDBTop)+1, mad.LIDsPerBlock) {
		mods = append(mods, uint32(block))
	}
	how, why := b.blocks(at, mad.AttrLinearForwardingTable, mods, func(_ int, data []byte) {
		t := decode[mad.LinearForwardingTable](data)
		list = append(list, t.Port[:]...)
	})
	if si.LinearFDBTop > ib.MaxUnicastLID {
		how, why = proof.NotRead, Nonsense
	}
	b.note(how, at, where, "LFT", why)
	return proof.Read[[]ib.PortNum]{How: how, Value: list[:min(len(list), int(si.LinearFDBTop)+1)]}
}

func (b *builder) mft(at proof.Place, where string) proof.Read[map[ib.LID]proof.Ports] {
	if was := b.before(at.Device); was != nil && b.devices[at.Device].mft {
		return was.MFT
	}
	table := map[ib.LID]proof.Ports{}
	mlids, ok := b.mlids(at.Device)
	perPosition := blocks(mlids, mad.MLIDsPerBlock)
	var mods []uint32
	for position := range positions(&b.devices[at.Device]) {
		for block := range perPosition {
			mods = append(mods, mad.MulticastForwardingMod(uint8(position), uint16(block)))
		}
	}
	how, why := b.blocks(at, mad.AttrMulticastForwardingTable, mods, func(i int, data []byte) {
		t := decode[mad.MulticastForwardingTable](data)
		position, first := i/perPosition, i%perPosition*mad.MLIDsPerBlock
		for k, mask := range t.PortMask {
			if mask == 0 || first+k >= mlids {
				continue
			}
			lid := ib.MinMulticastLID + ib.LID(first+k)
			set := table[lid]
			set[position/4] |= uint64(mask) << (position % 4 * 16)
			table[lid] = set
		}
	})
	if _, settings := b.read(at.Device, 0, mad.AttrPortInfo, 0); !settings {
		how, why = proof.NotRead, b.asks[b.byName[name{at.Device, 0, mad.AttrPortInfo, 0}]].cause
	} else if !ok {
		how, why = proof.NotRead, Nonsense
	}
	b.note(how, at, where, "MFT", why)
	return proof.Read[map[ib.LID]proof.Ports]{How: how, Value: table}
}

// blocks hands the blocks of a table to take, and returns how the table was read: as its worst block.
func (b *builder) blocks(at proof.Place, attr mad.AttrID, mods []uint32, take func(i int, data []byte)) (proof.Reading, Cause) {
	if b.devices[at.Device].conflict {
		return proof.Inconsistent, Nonsense
	}
	for i, mod := range mods {
		n := name{at.Device, at.Port, attr, mod}
		if attr == mad.AttrSwitchInfo {
			n.port = 0
		}
		k, ok := b.byName[n]
		switch {
		case !ok: // what would have led to it was not answered
			return proof.NotRead, Silent
		case b.asks[k].how != proof.WasRead:
			return b.asks[k].how, b.asks[k].cause
		}
		take(i, b.asks[k].data[:])
	}
	return proof.WasRead, Fine
}

// cables sets both ends of each cable that was found twice in the same way.
func (b *builder) cables() {
	for i := range b.asks {
		q := &b.asks[i]
		if q.attr != mad.AttrNodeInfo || q.device == none {
			continue
		}
		at := proof.Place{Device: q.device, Port: q.port}
		if q.how != proof.WasRead {
			where := fmt.Sprintf("%s port %d", b.found.Fabric.Devices[q.device].Name, q.port)
			b.unknown(at, where, "the device behind", q.cause)
			continue
		}
		near := &b.devices[q.device].ports[q.port]
		b.found.Fabric.Devices[q.device].Ports[q.port].Cable = near.cable
		far := &b.devices[near.cable.Device]
		if far.info.NodeType != ib.NodeSwitch && far.ports[near.cable.Port].cable == at {
			b.found.Fabric.Devices[near.cable.Device].Ports[near.cable.Port].Cable = at
		}
	}
}

func (b *builder) note(how proof.Reading, at proof.Place, where, what string, why Cause) {
	if how != proof.WasRead {
		b.unknown(at, where, what, why)
	}
}

func (b *builder) unknown(at proof.Place, where, what string, why Cause) {
	b.found.Unknown = append(b.found.Unknown, Unknown{at, where, what, why})
}

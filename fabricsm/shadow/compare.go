package shadow

import (
	"fmt"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// compareDevice adds what would change of a device.
func (o *overlay) compareDevice(r *Report, guid ib.GUID, d *device, inUse map[ib.LID]bool) {
	for where, c := range d.cells {
		at := end{guid, where.port}
		now := c.now()
		switch where.attr {
		case mad.AttrPortInfo:
			o.comparePort(r, at, d)
		case mad.AttrLinearForwardingTable:
			o.compareRoutes(r, at, where.mod, &c.found, &now, inUse)
		case mad.AttrMulticastForwardingTable:
			o.compareMulticast(r, at, where.mod, &c.found, &now)
		case mad.AttrPKeyTable:
			if d.info.NodeType == ib.NodeSwitch && now != c.found {
				r.add(o, KindPKeySwitch, false, at, fmt.Sprintf("entries from %d", where.mod*mad.PKeysPerBlock), pkeysOf(&c.found), pkeysOf(&now))
			}
		case mad.AttrSLtoVLMappingTable:
			o.compareLanes(r, at, d, where.mod, &c.found, &now)
		case mad.AttrVLArbitration:
			addDifferences[mad.VLArbitration](r, o, KindArbitration, at, mad.VLArbHalf(where.mod).String()+": ", &c.found, &now)
		case mad.AttrGUIDInfo:
			o.compareAliases(r, at, where.mod, &c.found, &now)
		case mad.AttrSwitchInfo:
			addDifferences[mad.SwitchInfo](r, o, KindSwitch, at, "", &c.found, &now)
		case mad.AttrMlnxExtendedPortInfo:
			addDifferences[mad.MlnxExtendedPortInfo](r, o, KindSpeed, at, "FDR10: ", &c.found, &now)
		default:
		}
	}
	if d.info.NodeType != ib.NodeSwitch {
		for num := range d.guids {
			o.comparePKeys(r, end{guid, num}, d)
		}
	}
}

func (r *Report) add(o *overlay, k Kind, noticed bool, at end, what, from, to string) {
	r.Changes = append(r.Changes, Change{Kind: k, Noticed: noticed, Where: o.where(at), What: what, From: from, To: to})
}

// addDifferences adds a change for each field that differs, none of which jobs notice.
func addDifferences[T any](r *Report, o *overlay, k Kind, at end, what string, found, now *image) {
	var a, b T
	if mad.Decode(found[:], &a) != nil || mad.Decode(now[:], &b) != nil {
		return
	}
	for _, d := range mad.Diff(&a, &b) {
		r.add(o, k, false, at, what+d.Field, d.A, d.B)
	}
}

// comparePort adds what would change of PortInfo of a port.
func (o *overlay) comparePort(r *Report, at end, d *device) {
	now, found, ok := o.portInfo(at)
	if !ok {
		return
	}
	live := found.PortState == ib.PortActive || d.info.NodeType == ib.NodeSwitch && at.port == 0
	down := o.bounced[at] || found.PortState >= ib.PortArmed && now.PortState < found.PortState
	if down {
		r.add(o, KindLink, found.PortState == ib.PortActive, at, "link", found.PortState.String(), "goes down, then "+now.PortState.String())
	}
	for _, diff := range mad.Diff(&found, &now) {
		k, noticed := kindOf(diff.Field, &found, &now, live)
		if k == KindState && down || k == "" {
			continue
		}
		if diff.Field == "MKey" {
			diff.A, diff.B = keyText(found.MKey, "a key"), keyText(now.MKey, "another key")
		}
		r.add(o, k, noticed, at, diff.Field, diff.A, diff.B)
	}
}

// keyText says whether there is a key, which is not shown.
func keyText(k ib.MKey, some string) string {
	if k.IsZero() {
		return "none"
	}
	return some
}

// kindOf returns the kind of a field of PortInfo, and whether jobs notice its change. Counters have none.
func kindOf(field string, found, now *mad.PortInfo, live bool) (k Kind, noticed bool) {
	switch field {
	case "LID":
		return KindLID, live && found.LID != 0
	case "LMC":
		return KindLMC, live && found.LID != 0
	case "GIDPrefix":
		return KindPrefix, live && found.GIDPrefix != 0
	case "PortState", "PortPhysicalState":
		return KindState, false
	case "MasterSMLID", "MasterSMSL", "SubnetTimeOut":
		return KindSM, false
	case "MKey", "MKeyProtectBits", "MKeyLeasePeriod":
		return KindMKey, false
	case "PartitionEnforcementInbound", "PartitionEnforcementOutbound", "FilterRawInbound", "FilterRawOutbound":
		return KindEnforcement, false
	case "NeighborMTU":
		return KindMTU, live && now.NeighborMTU < found.NeighborMTU
	case "OperationalVLs":
		return KindLanes, live
	case "LinkWidthEnabled", "LinkSpeedEnabled", "LinkSpeedExtEnabled", "LinkSpeedExtEnabled2", "LinkDownDefaultState":
		return KindSpeed, false
	case "MKeyViolations", "PKeyViolations", "QKeyViolations", "LocalPortNum":
		return "", false
	default:
		return KindPort, false
	}
}

// compareRoutes adds what would change of a block of a forwarding table.
func (o *overlay) compareRoutes(r *Report, at end, block uint32, found, now *image, inUse map[ib.LID]bool) {
	for i := range mad.LIDsPerBlock {
		from, to := ib.PortNum(found[i]), ib.PortNum(now[i])
		if from == to {
			continue
		}
		lid := ib.LID(block*mad.LIDsPerBlock) + ib.LID(i)
		what := fmt.Sprintf("LID %d", lid)
		if w, ok := r.LIDs[lid]; ok {
			what += " of " + w.Device
		}
		k := KindRouteMoved
		switch {
		case !inUse[lid]:
			k = KindRouteUnused
		case from == ib.NoPort:
			k = KindRouteGained
		case to == ib.NoPort:
			k = KindRouteLost
		}
		r.add(o, k, k == KindRouteLost || k == KindRouteMoved, at, what, portText(from), portText(to))
	}
}

func portText(p ib.PortNum) string {
	if p == ib.NoPort {
		return "none"
	}
	return fmt.Sprintf("port %d", p)
}

// compareMulticast adds what would change of a block of a multicast forwarding table.
func (o *overlay) compareMulticast(r *Report, at end, mod uint32, found, now *image) {
	var a, b mad.MulticastForwardingTable
	if mad.Decode(found[:], &a) != nil || mad.Decode(now[:], &b) != nil {
		return
	}
	for i := range a.PortMask {
		if a.PortMask[i] == b.PortMask[i] {
			continue
		}
		mlid := 0xC000 + mod&0x1FF*mad.MLIDsPerBlock + uint32(i)
		first := int(mod>>28) * 16
		r.add(o, KindMulticast, a.PortMask[i]&^b.PortMask[i] != 0, at, fmt.Sprintf("group 0x%04x", mlid), maskText(a.PortMask[i], first), maskText(b.PortMask[i], first))
	}
}

func maskText(m mad.PortMask, first int) string {
	var ports []string
	for i := range 16 {
		if m>>i&1 != 0 {
			ports = append(ports, fmt.Sprint(first+i))
		}
	}
	if ports == nil {
		return "none"
	}
	return "ports " + strings.Join(ports, " ")
}

// compareLanes adds what would change of a SL-to-VL table. Jobs notice when packets are dropped that were not.
func (o *overlay) compareLanes(r *Report, at end, d *device, in uint32, found, now *image) {
	var a, b mad.SLtoVLMappingTable
	if mad.Decode(found[:], &a) != nil || mad.Decode(now[:], &b) != nil || a == b {
		return
	}
	const drops = 15
	noticed := false
	for sl := range a.VL {
		noticed = noticed || a.VL[sl] != drops && b.VL[sl] == drops
	}
	what := "lanes by service level"
	if d.info.NodeType == ib.NodeSwitch {
		what += fmt.Sprintf(" from port %d", in)
	}
	r.add(o, KindSLtoVL, noticed, at, what, fmt.Sprint(a.VL), fmt.Sprint(b.VL))
}

// compareAliases adds what would change of a block of GUIDInfo.
func (o *overlay) compareAliases(r *Report, at end, block uint32, found, now *image) {
	var a, b mad.GUIDInfo
	if mad.Decode(found[:], &a) != nil || mad.Decode(now[:], &b) != nil {
		return
	}
	for i := range a.GUID {
		if a.GUID[i] != b.GUID[i] {
			r.add(o, KindAlias, a.GUID[i] != 0, at, fmt.Sprintf("GUID %d", block*mad.GUIDsPerBlock+uint32(i)), a.GUID[i].String(), b.GUID[i].String())
		}
	}
}

// pkeysOf lists the P_Keys of a block.
func pkeysOf(v *image) string {
	var t mad.PKeyTable
	if mad.Decode(v[:], &t) != nil {
		return ""
	}
	var out []string
	for _, k := range t.PKey {
		if k.Valid() {
			out = append(out, k.String())
		}
	}
	return strings.Join(out, " ")
}

// pkeyTable returns the P_Keys of a port by their index, as they were found and as they would be.
func (d *device) pkeyTable(num ib.PortNum) (found, now []ib.PKey) {
	for block := range (uint32(d.info.PartitionCap) + mad.PKeysPerBlock - 1) / mad.PKeysPerBlock {
		var a, b mad.PKeyTable
		if c := d.cells[place{num, mad.AttrPKeyTable, block}]; c != nil {
			v := c.now()
			if mad.Decode(c.found[:], &a) != nil || mad.Decode(v[:], &b) != nil {
				return nil, nil
			}
		}
		found, now = append(found, a.PKey[:]...), append(now, b.PKey[:]...)
	}
	return found, now
}

// comparePKeys adds what would change of the P_Keys of a host, and lists those that it has.
func (o *overlay) comparePKeys(r *Report, at end, d *device) {
	found, now := d.pkeyTable(at.port)
	had, has := indexOf(found), indexOf(now)
	_, pi, _ := o.portInfo(at)
	live := pi.PortState == ib.PortActive
	w := o.where(at)
	for i, k := range found {
		if !k.Valid() || had[k] != i {
			continue
		}
		to, kept := has[k]
		r.PKeys = append(r.PKeys, PKeyEntry{Where: w, Index: i, PKey: k, Kept: kept})
		_, full := has[k.Full()]
		_, limited := has[k.Limited()]
		switch {
		case kept && to == i:
		case kept:
			r.add(o, KindPKeyMoved, live, at, k.String(), fmt.Sprintf("index %d", i), fmt.Sprintf("index %d", to))
		case full:
			if _, both := had[k.Full()]; !both {
				r.add(o, KindPKeyGained, false, at, k.Full().String(), k.String(), k.Full().String())
			}
		case limited:
			r.add(o, KindPKeyLost, live, at, k.String(), k.String(), k.Limited().String()+", limited")
		default:
			r.add(o, KindPKeyLost, live, at, k.String(), k.String(), "none")
		}
	}
	for i, k := range now {
		if !k.Valid() || has[k] != i {
			continue
		}
		_, full := had[k.Full()]
		_, limited := had[k.Limited()]
		if !full && !limited {
			r.add(o, KindPKeyGained, false, at, k.String(), "none", k.String())
		}
	}
}

// indexOf returns the first index of each P_Key.
func indexOf(table []ib.PKey) map[ib.PKey]int {
	out := make(map[ib.PKey]int)
	for i, k := range table {
		if _, ok := out[k]; !ok && k.Valid() {
			out[k] = i
		}
	}
	return out
}

package verify

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
)

// compare returns verdict and Would of a fact: rules 1 to 5.
func (j *Judge) compare(s *Seen) Ruling {
	id := j.spec.DeviceByGUID(s.At.Switch)
	if id == topospec.None || !j.trusts(id) {
		return Ruling{Verdict: Held, Would: Hold}
	}
	return j.against(s)
}

// against is compare for a switch that is verified.
func (j *Judge) against(s *Seen) Ruling {
	r := Ruling{Belongs: j.spec.Belongs(s.end())}
	link, peer := j.spec.LinkAt(j.spec.SlotOf(topospec.EndAt(s.At)))
	if link == nil {
		return j.unplanned(r, s)
	}
	r.Expected = peer
	switch link.State {
	case topospec.NoDiscover:
		r.Verdict, r.Would = NotDiscovered, Leave
		return r
	case topospec.Disabled:
		r.Verdict, r.Would = Off, Disable
		return r
	case topospec.Reserved:
		r.Verdict, r.Would = Lit, Disable
		return r
	case topospec.Active, topospec.Maintenance:
	}
	r.Fields = j.differs(s, peer)
	if r.Fields&FieldGUID == 0 && j.fields.GUID != topospec.FieldOff {
		// Under its own node GUID, at its place, it must not be another one by its port.
		if other := j.spec.Other(j.spec.DeviceByGUID(s.GUID), s.PortGUID); other != topospec.None {
			return j.pretends(r, other)
		}
	}
	if r.Fields == 0 {
		r.Verdict, r.Would = Verified, Admit
		return r
	}
	return j.mismatch(r, s, link)
}

// pretends rules on a device that shows the port GUID of another.
func (j *Judge) pretends(r Ruling, other topospec.DeviceID) Ruling {
	r.Fields |= FieldPortGUID
	r.Verdict, r.Would = Verified, Admit // Fields raises the alarm
	if j.fields.GUID == topospec.FieldEnforce {
		r.Verdict, r.Would, r.Belongs = Spoof, Disable, j.spec.Home(other)
	}
	return r
}

// unplanned rules on a device where the specification has no link. A GUID that belongs elsewhere counts as stolen, whatever
// the policy is for unknown links.
func (j *Judge) unplanned(r Ruling, s *Seen) Ruling {
	r.Fields = FieldGUID
	r.Would = Disable
	switch own := j.spec.DeviceByGUID(s.GUID); {
	case topospec.Malformed(s.GUID) != "":
		r.Verdict = Malformed
	case own != topospec.None && j.spec.Device(own).Stock == topospec.Retired:
		r.Verdict = RetiredGUID
	case own != topospec.None && j.spec.Device(own).Stock == topospec.InUse:
		if r.Belongs.IsZero() {
			r.Belongs = j.spec.Home(own)
		}
		r.Verdict = Spoof
	case j.spec.DeviceByPortGUID(s.PortGUID) != topospec.None:
		r.Belongs = j.spec.Home(j.spec.DeviceByPortGUID(s.PortGUID))
		r.Verdict = Spoof
	default:
		r.Verdict = Unplanned
		switch j.spec.Revision().Policy.Unknown {
		case topospec.UnknownHold:
			r.Would = Hold
		case topospec.UnknownWarn:
			r.Would = Admit
		case topospec.UnknownDisable:
		}
	}
	return r
}

// differs returns the fields in which a fact differs from the specification, without those that policy switches off.
func (j *Judge) differs(s *Seen, peer topospec.End) (f Fields) {
	d := j.spec.Device(j.spec.DeviceByGUID(peer.GUID))
	set := func(field Fields, mode topospec.FieldMode, differs bool) {
		if differs && mode != topospec.FieldOff {
			f |= field
		}
	}
	set(FieldGUID, j.fields.GUID, s.GUID != peer.GUID)
	set(FieldPort, j.fields.Port, s.Port != peer.Port)
	set(FieldType, j.fields.Type, !fits(d.Kind, s.Type))
	if n := int(peer.Port); n <= len(d.PortGUIDs) {
		set(FieldPortGUID, j.fields.PortGUID, d.PortGUIDs[n-1] != s.PortGUID)
	}
	set(FieldSystemImage, j.fields.SystemImage, d.SystemImage != 0 && d.SystemImage != s.SystemImage)
	set(FieldNumPorts, j.fields.NumPorts, d.Ports != 0 && d.Ports != s.NumPorts)
	return f
}

// fits reports whether a device of a kind can show a node type.
func fits(k topospec.Kind, t ib.NodeType) bool {
	switch k {
	case topospec.KindAny:
		return true
	case topospec.KindSwitch:
		return t == ib.NodeSwitch
	case topospec.KindRouter:
		return t == ib.NodeRouter
	default:
		return t == ib.NodeCA
	}
}

// enforced reports whether policy acts on one of the fields that differ.
func (j *Judge) enforced(f Fields) bool {
	for _, m := range [...]struct {
		field Fields
		mode  topospec.FieldMode
	}{
		{FieldGUID, j.fields.GUID},
		{FieldPort, j.fields.Port},
		{FieldType, j.fields.Type},
		{FieldPortGUID, j.fields.PortGUID},
		{FieldSystemImage, j.fields.SystemImage},
		{FieldNumPorts, j.fields.NumPorts},
	} {
		if f&m.field != 0 && m.mode == topospec.FieldEnforce {
			return true
		}
	}
	return false
}

// mismatch classifies a fact that is not as specified: rule 3.
func (j *Judge) mismatch(r Ruling, s *Seen, link *topospec.Link) Ruling {
	if !j.enforced(r.Fields) {
		r.Verdict, r.Would = Verified, Admit // Fields raises the alarm
		return r
	}
	r.Would = Disable
	expected := j.spec.Device(j.spec.DeviceByGUID(r.Expected.GUID))
	switch {
	case r.Fields&FieldGUID == 0 && r.Fields&FieldType != 0:
		r.Verdict = TypeMismatch
	case r.Fields&FieldGUID == 0 && r.Fields&FieldPort != 0:
		r.Verdict = WrongPort
		if expected.Kind == topospec.KindHCA {
			r.Verdict = IntraHostSwap
		}
		j.pair(&r, s)
	case r.Fields&FieldGUID == 0:
		r.Verdict = Attributes
	default:
		j.stranger(&r, s, link, expected)
	}
	return r
}

// stranger classifies a GUID that is not the one specified.
func (j *Judge) stranger(r *Ruling, s *Seen, link *topospec.Link, expected *topospec.Device) {
	if topospec.Malformed(s.GUID) != "" {
		r.Verdict = Malformed
		return
	}
	own := j.spec.DeviceByGUID(s.GUID)
	if own == topospec.None {
		r.Verdict = Unknown
		switch byPort := j.spec.DeviceByPortGUID(s.PortGUID); {
		case byPort != topospec.None:
			r.Verdict, r.Belongs = Spoof, j.spec.Home(byPort)
		case !fits(expected.Kind, s.Type):
			r.Verdict = TypeMismatch
		}
		return
	}
	d := j.spec.Device(own)
	switch d.Stock {
	case topospec.Retired:
		r.Verdict = RetiredGUID
	case topospec.Spare:
		r.Verdict = Unknown
		if link.State == topospec.Maintenance && d.Kind == expected.Kind && d.Model == expected.Model && fits(d.Kind, s.Type) && j.isSpare(s, d, expected.Host) {
			r.Verdict, r.Would = RMACandidate, Hold
		}
	default:
		r.Verdict = Spoof
		if r.Belongs.IsZero() {
			r.Belongs = j.spec.Home(own)
		}
		if j.pair(r, s); d.Host != "" && d.Host == expected.Host {
			r.Verdict = IntraHostSwap
		}
	}
}

// pair checks whether the two devices are swapped: the device intended here is seen at the place of the device seen here.
func (j *Judge) pair(r *Ruling, s *Seen) {
	if r.Belongs.IsZero() || r.Belongs == topospec.EndAt(s.At) {
		return
	}
	other := j.find(r.Belongs.Place())
	if other == nil || other.seen.end() != r.Expected || other.seen.GUID == 0 {
		return
	}
	r.Pair = r.Belongs.Place()
	if r.Verdict != IntraHostSwap {
		r.Verdict = Swapped
	}
}

// isSpare reports whether a fact fits the spare device whose node GUID it shows, as far as the specification has data: a
// candidate must be the device in the inventory, not one that has only copied its GUID. host is the machine that it would
// be in.
func (j *Judge) isSpare(s *Seen, d *topospec.Device, host string) bool {
	n := int(s.Port)
	switch {
	case len(d.PortGUIDs) > 0 && (n < 1 || n > len(d.PortGUIDs) || d.PortGUIDs[n-1] != s.PortGUID):
		return false
	case d.SystemImage != 0 && d.SystemImage != s.SystemImage:
		return false
	case d.Kind == topospec.KindHCA && d.Ports != 0 && d.Ports != s.NumPorts:
		return false
	}
	if of := j.spec.DeviceByGUID(s.SystemImage); of != topospec.None {
		if part := j.spec.Device(of); part.Stock != topospec.Spare && (host == "" || part.Host != host) {
			return false // it says that it is part of a machine in which it cannot be
		}
	}
	return j.spec.Other(j.spec.DeviceByGUID(s.GUID), s.PortGUID) == topospec.None
}

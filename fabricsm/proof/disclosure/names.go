package disclosure

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// names judges one record. Records of kinds that name nothing, such as ClassPortInfo and TraceRecord, have nothing to judge.
func (v *verdict) names(rec []byte) {
	switch v.record {
	case mad.AttrPathRecord:
		r := of[mad.PathRecord](v, rec)
		v.gid(r.SGID, "SGID")
		v.gid(r.DGID, "DGID")
		v.lid(r.SLID, 0, "SLID")
		v.lid(r.DLID, 0, "DLID")
		v.group(r.DGID, r.PKey)
	case mad.AttrNodeRecord:
		r := of[mad.NodeRecord](v, rec)
		v.lid(r.LID, 0, "LID")
		v.guid(r.PortGUID, "PortGUID")
		v.guid(r.NodeGUID, "NodeGUID")
	case mad.AttrPortInfoRecord:
		r := of[mad.PortInfoRecord](v, rec)
		v.lid(r.EndportLID, r.PortNum, "EndportLID")
		v.lid(r.LID, 0, "PortInfo.LID")
		if !r.MKey.IsZero() {
			v.key("M_Key")
		}
	case mad.AttrSMInfoRecord:
		r := of[mad.SMInfoRecord](v, rec)
		v.lid(r.LID, 0, "LID")
		v.guid(r.GUID, "GUID")
		if !r.SMKey.IsZero() {
			v.key("SM_Key")
		}
	case mad.AttrGUIDInfoRecord:
		r := of[mad.GUIDInfoRecord](v, rec)
		v.lid(r.LID, 0, "LID")
		for _, g := range r.GUID {
			v.guid(g, "GUID")
		}
	case mad.AttrServiceRecord:
		r := of[mad.ServiceRecord](v, rec)
		v.gid(r.ServiceGID, "ServiceGID")
		v.partition(r.ServicePKey, "ServiceP_Key")
		if !r.ServiceKey.IsZero() {
			v.key("ServiceKey")
		}
	case mad.AttrMCMemberRecord:
		r := of[mad.MCMemberRecord](v, rec)
		v.gid(r.PortGID, "PortGID")
		v.partition(r.PKey, "P_Key")
	case mad.AttrInformInfoRecord:
		r := of[mad.InformInfoRecord](v, rec)
		v.gid(r.SubscriberGID, "SubscriberGID")
		v.gid(r.GID, "InformInfo.GID")
		v.lid(r.LIDRangeBegin, 0, "InformInfo.LIDRangeBegin")
	default:
		v.places(rec)
	}
}

// group judges the P_Key of the path to a group.
func (v *verdict) group(to ib.GID, key ib.PKey) {
	if to.IsMulticast() {
		v.partition(key, "P_Key")
	}
}

// places judges a record of switches and links, which names ports by the switch port in front of them.
func (v *verdict) places(rec []byte) {
	switch v.record {
	case mad.AttrLinkRecord:
		r := of[mad.LinkRecord](v, rec)
		v.lid(r.FromLID, r.FromPort, "FromLID")
		v.lid(r.ToLID, r.ToPort, "ToLID")
	case mad.AttrPKeyTableRecord:
		r := of[mad.PKeyTableRecord](v, rec)
		v.lid(r.LID, r.PortNum, "LID")
		if i, known := v.tables.byLID[r.LID]; known && i == v.asker {
			return // its own table
		}
		for _, k := range r.PKey {
			v.partition(k, "P_Key")
		}
	case mad.AttrSLtoVLRecord:
		r := of[mad.SLtoVLMappingTableRecord](v, rec)
		v.lid(r.LID, r.InputPortNum, "LID")
		v.lid(r.LID, r.OutputPortNum, "LID")
	case mad.AttrVLArbitrationRecord:
		r := of[mad.VLArbitrationTableRecord](v, rec)
		v.lid(r.LID, r.OutputPortNum, "LID")
	case mad.AttrLinearForwardingRecord:
		r := of[mad.LinearForwardingTableRecord](v, rec)
		for i, num := range r.Port {
			lid := int(r.BlockNum)*mad.LIDsPerBlock + i
			if _, known := v.tables.byLID[ib.LID(lid)]; known && lid <= int(ib.MaxUnicastLID) && num != ib.NoPort {
				v.lid(ib.LID(lid), 0, "LID of an entry")
			}
		}
	case mad.AttrMulticastForwardingRecord:
		r := of[mad.MulticastForwardingTableRecord](v, rec)
		for _, mask := range r.PortMask {
			for bit := range 16 {
				if mask&(1<<bit) != 0 {
					v.lid(r.LID, ib.PortNum(int(r.Position)*16+bit), "port of an entry")
				}
			}
		}
	}
}

// of decodes a record, which is as long as its kind. One that does not decode names nothing that could be judged.
func of[T any](v *verdict, rec []byte) (r T) {
	if mad.Decode(rec, &r) != nil {
		v.Undecided++
		var none T
		return none
	}
	return r
}

package reader

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/proof"
)

// LIDs returns the base LID and the LMC of an end port, or of port 0 of a switch, as its PortInfo has them. It reports false if that was
// not read, or shows no unicast LID.
func (f *Found) LIDs(at proof.Place) (base ib.LID, lmc ib.LMC, ok bool) {
	if at.Device < 0 || at.Device >= len(f.Fabric.Devices) {
		return 0, 0, false
	}
	data, ok := f.answers[Value{f.Fabric.Devices[at.Device].GUID, at.Port, mad.AttrPortInfo}]
	if !ok {
		return 0, 0, false
	}
	info := decode[mad.PortInfo](data[:])
	return info.LID, info.LMC, info.LID.IsUnicast()
}

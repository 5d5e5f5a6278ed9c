package capture

import (
	"math/rand/v2"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// alteredSA are calls of saquery that get answers with random records, and how. OpenSM's answers fit one MAD, so that RMPP
// is done after it.
var alteredSA = []struct {
	args  string
	alter func(*rand.Rand) func(*Frame)
}{
	{"-c", alterSA[mad.ClassPortInfo](mad.AttrClassPortInfo, nil)},
	{"NR 1", alterSA(mad.AttrNodeRecord, func(r *rand.Rand, v *mad.NodeRecord) {
		v.NodeType = ib.NodeType(1 + r.IntN(3))
		v.NodeDescription = mad.MakeNodeDescription(text(r))
	})},
	{"PIR 1/1", alterSA(mad.AttrPortInfoRecord, func(r *rand.Rand, v *mad.PortInfoRecord) { printable(r, &v.PortInfo) })},
	{"SL2VL 1", alterSA[mad.SLtoVLMappingTableRecord](mad.AttrSLtoVLRecord, nil)},
	{"SWIR", alterSA[mad.SwitchInfoRecord](mad.AttrSwitchInfoRecord, nil)},
	{"LFTR", alterSA[mad.LinearForwardingTableRecord](mad.AttrLinearForwardingRecord, nil)},
	{"MFTR", alterSA[mad.MulticastForwardingTableRecord](mad.AttrMulticastForwardingRecord, nil)},
	{"SMIR", alterSA[mad.SMInfoRecord](mad.AttrSMInfoRecord, nil)},
	{"LR", alterSA[mad.LinkRecord](mad.AttrLinkRecord, nil)},
	{"GIR 1/0", alterSA[mad.GUIDInfoRecord](mad.AttrGUIDInfoRecord, nil)},
	{"-K SR", alterSA(mad.AttrServiceRecord, func(r *rand.Rand, v *mad.ServiceRecord) {
		v.ServiceName = [64]byte{}
		copy(v.ServiceName[:], text(r))
	})},
	{"--smkey 1 PKTR 1", alterSA[mad.PKeyTableRecord](mad.AttrPKeyTableRecord, nil)},
	{"PR --slid 1 --dlid 2", alterSA[mad.PathRecord](mad.AttrPathRecord, nil)},
	{"VLAR 1/1/1", alterSA[mad.VLArbitrationTableRecord](mad.AttrVLArbitrationRecord, nil)},
	{"MCMR", alterSA[mad.MCMemberRecord](mad.AttrMCMemberRecord, nil)},
	{"-K IIR", alterSA(mad.AttrInformInfoRecord, func(r *rand.Rand, v *mad.InformInfoRecord) { v.IsGeneric = uint8(r.IntN(2)) })},
}

// text is printable and fills 64 bytes.
func text(r *rand.Rand) string {
	b := make([]byte, 64)
	for i := range b {
		b[i] = byte('!' + r.IntN('~'-'!'))
	}
	return string(b)
}

// alterSA puts as many random records as fit into every answer about the attribute, of
// the values that fix, which may be nil, makes of them.
func alterSA[T any](a mad.AttrID, fix func(*rand.Rand, *T)) func(*rand.Rand) func(*Frame) {
	return func(r *rand.Rand) func(*Frame) {
		return func(f *Frame) {
			m := f.mad()
			if f.ToSim || m.Class() != mad.ClassSubnAdm || !m.IsResponse() || m.Attr() != a {
				return
			}
			data := m.SAData()
			clear(data)
			size, n := mad.RecordSize(a), 1
			if m.Method() == mad.MethodGetTableResp {
				n = len(data) / size
				m.SetAttributeOffset(mad.AttributeOffset(a))
				m.SetRMPPFlags(mad.RMPPActive | mad.RMPPFirst | mad.RMPPLast)
				m.SetPayloadLength(uint32(mad.SAHeaderSize + n*size))
			}
			for i := range n {
				var v T
				mad.Fill(&v, r.Uint64)
				if fix != nil {
					fix(r, &v)
				}
				if err := mad.Encode(data[i*size:], &v); err != nil {
					panic(err)
				}
			}
		}
	}
}

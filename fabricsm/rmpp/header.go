package rmpp

import "portcullis/fabricsm/mad"

const (
	// segmentLen is the PayloadLength of a full segment: its data and the SA header before them.
	segmentLen = mad.RMPPPayloadSize
	// headLen is the length of all that comes before the data.
	headLen = mad.Size - mad.SADataSize

	offSMKey = mad.Size - segmentLen
	keyLen   = 8

	responseBit mad.Method = 0x80
)

// header writes the RMPP header. RRespTime is not given: peers do not look at it.
func header(m *mad.MAD, t mad.RMPPType, flags mad.RMPPFlags, s mad.RMPPStatus, d1, d2 uint32) {
	m.SetRMPPHeader(mad.RMPPHeader{
		Version: mad.RMPPVersion, Type: t, RespTime: mad.NoRespTime,
		Flags: mad.RMPPActive | flags, Status: s, Data1: d1, Data2: d2,
	})
}

// onward makes m a packet without data that goes where the segments with this head
// go.
func onward(m *mad.MAD, head []byte, t mad.RMPPType, s mad.RMPPStatus, d1, d2 uint32) {
	copy(m[:headLen], head)
	clear(m[headLen:])
	header(m, t, 0, s, d1, d2)
}

// reply makes m a packet back to the sender of head: its method has the R bit toggled, and SM_Key, which may be a secret,
// is left out.
func reply(m *mad.MAD, head []byte, t mad.RMPPType, s mad.RMPPStatus, d1, d2 uint32) {
	onward(m, head, t, s, d1, d2)
	m.SetMethod(m.Method() ^ responseBit)
	clear(m[offSMKey : offSMKey+keyLen])
}

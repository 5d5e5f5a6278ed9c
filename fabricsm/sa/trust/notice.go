package trust

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// Notice returns the vendor notice that reports a violation to subscribers; ok is false if its kind has none. The key of a
// notice 1300 is left out, because the shown value may be a key for something else. The sender fills in the issuer.
func (e *Violation) Notice(subnet ib.Prefix) (n mad.Notice, ok bool) {
	number := e.Verdict.Notice()
	if number == 0 {
		return n, false
	}
	head := mad.NoticeHeader{Type: mad.NoticeSecurity, ProducerType: mad.OUINVIDIA}
	from := ib.MakeGID(subnet, e.As)
	var data [mad.DataSize]byte
	var err error
	switch number {
	case 1300:
		err = mad.Encode(data[:], &mad.Notice1300{
			NoticeHeader: head, SLID: e.LID, AttributeID: e.Attr, Method: e.Method, SGID: from, PhysPortGUID: e.GUID, TrapNumberInPayload: number,
		})
	case 1301:
		err = mad.Encode(data[:], &mad.Notice1301{
			NoticeHeader: head, SLID: e.LID, AttributeID: e.Attr, Method: e.Method, SpoofedSGID: e.SGID, PhysPortGUID: e.GUID, TrapNumberInPayload: number,
		})
	case 1302:
		err = mad.Encode(data[:], &mad.Notice1302{NoticeHeader: head, SGID: from, PhysPortGUID: e.GUID, TrapNumberInPayload: number})
	default:
		err = mad.Encode(data[:], &mad.Notice1303{
			NoticeHeader: head, SGID: from, PhysPortGUID: e.GUID, TargetGUID: e.Target, PhysTargetGUID: e.TargetPort, TrapNumberInPayload: number,
		})
	}
	if err == nil {
		err = mad.Decode(data[:], &n)
	}
	return n, err == nil
}

package administration

import (
	"encoding/binary"
	"time"

	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/transport"
)

// failoverLoops is T142: hosts of a tenant flood the link of the master, so that a standby takes over again and again.
func failoverLoops(s *drill.Scene) {
	o := drill.Administered()
	o.Work = busy()
	o.Work.Packet *= 2
	t := s.Site(o)
	t.Customer("h2", "h6")
	t.Standby("h8")
	from := []*drill.Client{t.Client("h1"), t.Client("h5")}
	ways := map[string]mad.Route{"h1": t.Route("h1", "sm"), "h5": t.Route("h5", "sm")}
	const ms = 60 // three times as long as h8 waits for an answer
	s.Tried("h1 and h5 of one tenant send two million questions for SMInfo and traps a second to the master for %d ms, over directed routes with another end of the return path each, while h8, another subnet manager, asks whether it lives", ms)
	n := uint64(0)
	t.Attack()
	flood(t, ms*time.Millisecond, 2000, from, func(c *drill.Client) transport.Packet {
		n++
		c.TID++
		if n%8 == 7 {
			p := transport.Packet{LID: t.View().LID}
			mad.NewSMP(&p.MAD, mad.Header{Method: mad.MethodTrap, Attr: mad.AttrNotice, TID: c.TID}, nil, ib.MKey{})
			return p
		}
		p, way := transport.Packet{LID: ib.PermissiveLID}, ways[c.Host]
		mad.NewSMP(&p.MAD, mad.Header{Method: mad.MethodGet, Attr: mad.AttrSMInfo, TID: c.TID}, &way, ib.MKey{})
		binary.BigEndian.PutUint64(p.MAD[len(p.MAD)-8:], n*0x9e3779b97f4a7c15)
		return p
	})
	// A part of the flood itself finds no place at the beginning, before its senders have used up what they may send.
	if s.Check(t.Overflowed() < n/8, "%d of %d packets were lost because too many waited", t.Overflowed(), n) {
		s.Stopped("the adapter where a directed route began is found by the switches on the way back, and may send so much, whatever else it writes; questions of another manager that is allowed have a lane of their own")
	}
	s.Check(t.View().State == ib.SMMaster, "the subnet manager is %v after the flood", t.View().State)
	s.Check(len(t.Customers) == 2 && t.Customers[1].Lost == 0 && t.Customers[1].Sent > 1, "h8 asked %d times whether the master lives, and had no answer %d times: it takes over", t.Customers[1].Sent, t.Customers[1].Lost)
	t.Reported(3*time.Second, "who floods", t.Dropped("h1", trust.Flood))
}

package shadow

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// gets is a real port that can ask and nothing else: each packet is a Get that is made here.
type gets struct{ port transport.Port }

// question is what is asked of a device.
type question struct {
	tid   ib.TID
	attr  mad.AttrID
	mod   uint32
	route mad.Route
	key   ib.MKey
}

func (g gets) send(list []question) (int, error) {
	packets := make([]transport.Packet, len(list))
	for i := range list {
		q := &list[i]
		mad.NewSMP(&packets[i].MAD, mad.Header{Method: mad.MethodGet, TID: q.tid, Attr: q.attr, Mod: q.mod}, &q.route, q.key)
		packets[i].LID = ib.PermissiveLID
	}
	return g.port.Send(packets)
}

func (g gets) receive(p []transport.Packet) (int, error) { return g.port.Receive(p) }
func (g gets) guid() ib.GUID                             { return g.port.GUID() }
func (g gets) close() error                              { return g.port.Close() }

package ibsim

import (
	"context"
	"errors"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// dialOver attaches. When the node has an SM client already, it
// finds out whether that client still lives: ibsim keeps the slot of a killed
// client until it next writes to it, so a subnet manager that was killed would
// bar the way of its successor for ever.
func dialOver(ctx context.Context, o Options) (*Port, error) {
	p, err := dialOnce(ctx, o)
	if refused := (*RefusedError)(nil); !o.AsSM || !errors.As(err, &refused) {
		return p, err
	}
	if disturb(ctx, o) != nil {
		return nil, err
	}
	return dialOnce(ctx, o)
}

// disturb has the simulator hand a Get of SMInfo to the SM client of a node. A
// living one answers it; writing to a dead one makes ibsim free its slot.
func disturb(ctx context.Context, o Options) error {
	o.AsSM = false
	p, err := dialOnce(ctx, o)
	if err != nil {
		return err
	}
	packets := make([]transport.Packet, 1)
	packets[0].LID = ib.PermissiveLID
	mad.NewSMP(&packets[0].MAD, mad.Header{Method: mad.MethodGet, Attr: mad.AttrSMInfo, TID: staleTID}, &mad.Route{}, ib.MKey{})
	_, err = p.Send(packets)
	if err == nil {
		// Requests of one client are handled in order: the answer to a second
		// one says that the first has been dealt with.
		err = p.learnGUID(ctx)
	}
	return errors.Join(err, p.Close())
}

// staleTID marks the question to an SM client that may be dead.
const staleTID = 0x7374616C

package main

import (
	"context"
	"errors"
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim"
)

// dialSM attaches to a simulator as the subnet manager of a node. ibsim keeps
// the place of a client that was killed until it next writes to it; so when it
// says that the place is taken, make it write there, and ask once more. A
// subnet manager that lives gets an SMInfo query and keeps its place.
func dialSM(ctx context.Context, o ibsim.Options) (transport.Port, error) {
	port, err := ibsim.Dial(ctx, o)
	if _, taken := errors.AsType[*ibsim.RefusedError](err); taken {
		if ghostErr := expelGhost(ctx, o); ghostErr != nil {
			return nil, err // what the caller asked for, not what we tried
		}
		port, err = ibsim.Dial(ctx, o)
	}
	if err != nil {
		return nil, err // not port, which would be a typed nil
	}
	return port, nil
}

// expelGhost sends an SMInfo query to the node's own subnet manager, and waits
// until the simulator has handled it.
func expelGhost(ctx context.Context, o ibsim.Options) error {
	o.AsSM = false
	port, err := ibsim.Dial(ctx, o)
	if err != nil {
		return fmt.Errorf("attach beside the subnet manager: %w", err)
	}
	defer port.Close()
	stop := context.AfterFunc(ctx, func() { port.Close() })
	defer stop()

	const marker ib.TID = 2
	own := mad.MakeRoute()
	packets := []transport.Packet{{LID: ib.PermissiveLID}, {LID: ib.PermissiveLID}}
	header := mad.Header{Class: mad.ClassSubnDR, ClassVersion: 1, Method: mad.MethodGet}
	for i, attr := range []mad.AttrID{mad.AttrSMInfo, mad.AttrNodeInfo} {
		header.TID, header.Attr = ib.TID(i)+1, attr
		mad.NewSMP(&packets[i].MAD, header, &own, ib.MKey{})
	}
	if _, err := port.Send(packets); err != nil {
		return err
	}
	// The simulator handles one client's packets in order: once the second
	// is answered, the first has been written.
	in := make([]transport.Packet, 4)
	for {
		n, err := port.Receive(in)
		if err != nil {
			return err
		}
		for i := range n {
			if uint32(in[i].MAD.TID()) == uint32(marker) {
				return nil
			}
		}
	}
}

// Package rmpp carries data that needs more than one MAD: segments, windows, acknowledgements (IBTA volume 1, 13.6;
// reference/ib-sa.md section 2).
//
// A Table holds every transaction of one port, both those that send and those that receive. It is a pure state machine: its
// owner steps it with packets and with the time, and it passes packets to send to a Sink.
//
//	res, msg := t.Take(now, m, from, sink) // each packet of class SubnAdm
//	t.Send(now, to, head, source, total, sink) // an answer
//	if !t.Next().After(now) { t.Expire(now, sink) } // what is due
//
// The cost that a peer can cause is bounded:
//
//   - An answer is never in memory as a whole. A Source makes it while it is sent, and
//     only segments that are sent and not acknowledged are kept: at most Config.Window.
//   - A message to us is at most Config.MaxMessage bytes long.
//   - A port has at most Config.PerPort transactions, all ports together
//     Config.Sessions. A port at its limit gets room from a transaction of its own
//     whose peer is silent. When the table is full, a port takes room from the port
//     that has most, as long as that one keeps more than the newcomer gets. Otherwise
//     the newcomer is refused. So no port fills the table for the others.
//   - A transaction ends when its peer is silent for Config.Retries resends, and
//     in any case after Config.SendLimit or Config.ReceiveLimit.
//   - A packet of a peer costs at most Config.Burst segments, a call of Expire about
//     Config.Step; the rest stays due, and packets can be taken in between.
//   - A packet that belongs to no transaction is answered, with an ABORT, only if it
//     tries to begin one.
//
// The peers are mostly Linux kernels (drivers/infiniband/core/mad_rmpp.c). Comments in the code explain where their
// behaviour matters.
package rmpp

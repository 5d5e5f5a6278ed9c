// Package rmpp carries data that needs more than one MAD: segments, windows,
// acknowledgements (IBTA volume 1, 13.6; reference/ib-sa.md section 2).
//
// A Table holds every transaction of one port, both those that send and those
// that receive. It is a pure state machine: its owner steps it with packets and
// with the time, and what it wants sent it hands to a Sink.
//
//	res, msg := t.Take(now, m, from, sink) // each packet of class SubnAdm
//	t.Send(now, to, head, source, total, sink) // an answer
//	if !t.Next().After(now) { t.Expire(now, sink) } // what is due
//
// What a peer can make it do is bounded:
//
//   - An answer is never in memory. A Source makes it while it goes out, and what
//     was sent and not acknowledged is kept: at most Config.Window segments.
//   - A message to us is at most Config.MaxMessage bytes long.
//   - A port has at most Config.PerPort transactions, all ports together
//     Config.Sessions. A port at its limit gets room by a transaction of its own
//     that its peer has left silent. When all is taken, a port takes room from the
//     one that has most, as long as that one keeps more than the newcomer gets;
//     else the newcomer is refused. So no port fills the table for the others.
//   - A transaction ends when its peer says nothing for Config.Retries resends, and
//     in any case after Config.SendLimit or Config.ReceiveLimit.
//   - A packet of a peer costs at most Config.Burst segments, a call of Expire about
//     Config.Step; what is left stays due, and packets can be taken in between.
//   - A packet that belongs to no transaction is answered, with an ABORT, only if it
//     wants to begin one.
//
// The peers are mostly Linux kernels (drivers/infiniband/core/mad_rmpp.c). What
// follows from how they behave is said where it is done.
package rmpp

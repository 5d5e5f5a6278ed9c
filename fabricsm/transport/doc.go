// Package transport moves management datagrams between a program and one InfiniBand port; its subpackages are the ways to
// reach such a port.
//
// # Two lanes
//
// A Subnet Manager's own traffic, SMPs and the answers to its requests, must not queue behind the requests of tenants to
// subnet administration. Those requests must be answered while the manager is busy for some tens of milliseconds. So two
// goroutines can drive a port that is Laned: packets of class SubnAdm come to the Lane that SA returns, all others to the
// port itself.
//
// Over umad the lanes are two descriptors with a queue each in the kernel, and in the simulator two inboxes. The socket of
// ibsim is one. There the receiving lane takes the datagrams, keeps its own and puts the others into a queue of the other
// lane, so no third goroutine has to wake for every packet. The difficult question is which lane waits for the socket: if
// both do, each datagram wakes two threads; if one does and is then busy, the other starves. The rules of package ibsim:
//
//   - A lane that waits watches the socket, or only its own bell, an eventfd that
//     is rung when something is put into its queue. At least one of two waiting
//     lanes watches, and as a rule just one.
//   - The SM's lane watches, unless the other got packets of its own lately. So
//     while there is no SA traffic the SA's lane sleeps and the SM's costs what
//     it costs alone; under SA traffic the SM's is woken only for its own packets.
//   - A lane that watches nothing relies on the other, which may go into a long
//     step. As long as it does and the other is not waiting, a timer looks every
//     millisecond whether the other has received since, and rings the bell if not.
//     Nothing runs while both wait.
//   - The queue of the SA's lane has a bound, and drops and counts packets above it:
//     those of the sources that filled it first, see Shares. The one of the SM's lane
//     never drops: when it is full, the SA's lane leaves its packets on the socket.
//   - No lane blocks in sending. Where the SM's lane found the wire full, the SA's
//     finds it full, too, until the SM's has sent its packets, or for a millisecond.
package transport

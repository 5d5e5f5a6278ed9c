// Package transport moves management datagrams between a program and one
// InfiniBand port; its subpackages are the ways to reach such a port.
//
// # Two lanes
//
// A Subnet Manager's own traffic, SMPs and the answers to its requests, must not
// queue behind what tenants ask of subnet administration, and those must be answered
// while the manager is busy for some tens of milliseconds. So a port that is Laned
// can be driven by two goroutines: packets of class SubnAdm come to the Lane that SA
// gives, all others to the port itself.
//
// Over umad the lanes are two descriptors with a queue each in the kernel, and in
// the simulator two inboxes. The socket of ibsim is one. There whoever receives takes
// what there is, keeps its own and puts the rest into a queue of the other lane, so
// there is no third goroutine to wake for every packet. What is hard is who waits for
// the socket: if both do, each datagram wakes two threads; if one does and is then
// busy, the other starves. The rules of package ibsim:
//
//   - A lane that waits watches the socket, or only its own bell, an eventfd that
//     is rung when something is put into its queue. Of two lanes that wait at
//     least one watches, and as a rule just one.
//   - The SM's lane watches, unless the other got packets of its own lately. So
//     while there is no SA traffic the SA's lane sleeps and the SM's costs what
//     it costs alone; under SA traffic the SM's is woken only for its own packets.
//   - A lane that watches nothing relies on the other, which may go into a long
//     step. As long as it does and the other is not waiting, a timer looks every
//     millisecond whether the other has received since, and rings the bell if not.
//     Nothing runs while both wait.
//   - The queue of the SA's lane has a bound and drops, and counts that: the packets
//     of those who filled it first, see Shares. The one of the SM's lane never drops:
//     when it is full, the SA's lane leaves on the socket what is there.
//   - Nobody blocks in sending. Where the SM's lane found the wire full, the SA's
//     finds it full, too, until the SM's has got through, or for a millisecond.
package transport

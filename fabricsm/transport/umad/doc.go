// Package umad sends and receives MADs through Linux's user MAD interface, /dev/infiniband/umadN, by raw system calls: no C
// library and no helper.
//
// It has not yet been run on hardware. Its bytes and calls are tested against the kernel's own header, and against the
// library that connects libibumad programs to the simulator ibsim. docs/reference/hardware-test-plan.md lists the tests for a machine
// with an HCA.
//
// # Behaviour of the kernel
//
// The code relies on these facts of drivers/infiniband/core/user_mad.c and mad.c.
//
//   - A packet is a header and a MAD, one per read or write. The header has 56
//     bytes; it has 64, with a P_Key index at the end, once ENABLE_PKEY or
//     REGISTER_AGENT2 came first on the descriptor.
//   - A packet belongs to an agent, registered for one management class. The
//     agent's methods select the requests of other senders that it accepts. Two
//     agents of a port cannot accept the same method of the same class; this is how a
//     second subnet manager on one port is detected.
//   - The kernel replaces the upper 32 bits of the transaction identifier of a
//     request, and passes on an answer only while it waits for it. So a request
//     must have a timeout. When it expires, the request comes back with status
//     110 and the first 24 bytes of its MAD.
//   - A read never delivers less than a packet; one that does not fit stays in
//     the queue.
//   - A write always finds room: the kernel queues without a limit of its own, so
//     the caller limits the requests in progress.
//   - Packets to read are queued for each descriptor; since 2024 the kernel drops
//     those above 200,000 packets.
//   - The kernel segments and reassembles messages of several MADs for an agent with
//     an RMPP version, unless the agent is registered as doing that itself. Then the
//     kernel also passes on active RMPP MADs with the response bit that answer none of
//     its pending requests. An agent registered by the older call, without a version,
//     is served the same way.
//   - An answer is refused while one with its transaction identifier is still being
//     sent to the same port, except for active RMPP MADs.
//   - The header of a received packet fits for an answer. From a GRH it has the source
//     as the GID, and the index of our own GID; the hop limit is set to 255.
//   - The port's IsSM bit is set while /dev/infiniband/issmN is open.
//
// A Port takes as many packets per wake-up as are waiting, and allocates nothing per packet. Packets of subnet
// administration have their own descriptor, which SA opens: requests of tenants fill a different queue than the answers
// for the subnet manager.
package umad

// Package umad sends and receives MADs through Linux's user MAD interface,
// /dev/infiniband/umadN, by raw system calls: no C library and no helper.
//
// It has not yet been run on hardware. Its bytes and calls are tested against
// the kernel's own header and against the library that makes libibumad programs
// talk to the simulator ibsim; docs/hardware-test-plan.md says what has to be
// shown on a machine with an HCA, and how.
//
// # What the kernel does
//
// These are the facts of drivers/infiniband/core/user_mad.c and mad.c that the
// code relies on.
//
//   - A packet is a header and a MAD, one per read or write. The header has 56
//     bytes; it has 64, with a P_Key index at the end, once ENABLE_PKEY or
//     REGISTER_AGENT2 came first on the descriptor.
//   - A packet belongs to an agent, registered for one management class. The
//     agent's methods say which requests of others it takes; two agents of a
//     port cannot take the same method of the same class, and that is how a
//     second subnet manager on one port is found out.
//   - The kernel replaces the upper 32 bits of the transaction identifier of a
//     request, and hands on an answer only while it waits for it. So a request
//     must have a timeout. When it runs out, the request comes back with status
//     110 and the first 24 bytes of its MAD.
//   - A read never delivers less than a packet; one that does not fit stays in
//     the queue.
//   - A write is never short of room: the kernel queues without a limit of its
//     own, so the caller bounds what is under way.
//   - What waits to be read is queued for each descriptor; since 2024 the kernel
//     drops what would be more than 200,000 packets.
//   - The kernel segments and reassembles messages of several MADs for an agent with
//     an RMPP version, unless it is registered as doing that itself. Then it also hands
//     on active RMPP MADs with the response bit that answer nothing it waits for.
//     An agent registered by the older call, without a version, is served the same.
//   - An answer is refused while one with its transaction identifier is still being
//     sent to the same port, but for active RMPP MADs.
//   - The header of a received packet is what an answer takes. Of a GRH it tells the
//     source as the GID, and which of our GIDs was meant as an index; the hop limit is
//     made 255.
//   - The port's IsSM bit is set while /dev/infiniband/issmN is open.
//
// A Port takes as many packets per wake-up as wait, and allocates nothing per
// packet. Packets of subnet administration have a descriptor of their own, which SA
// opens: what tenants ask fills another queue than what the subnet manager waits for.
package umad

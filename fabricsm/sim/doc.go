// Package sim is a fabric in memory: switches and channel adapters that obey
// the specification where a subnet manager can see it.
//
// A Fabric is made from a netlist. Whatever a program could do from a host it
// does through a Station, which sits at a port, or through a transport.Port
// made of one. All work happens in the caller: a packet that is sent has
// reached its end, and its answer lies in a station's inbox, when Send returns.
// There are no goroutines and no clock; delays and repeated traps wait for
// Advance. With the same seed and the same calls a fabric does the same.
//
// A HostPort is a port whose host is a Linux kernel elsewhere. It receives every packet that
// the adapter does not answer itself, and an event at each change of the port.
//
// Packets move hop by hop: directed routes, with parts by LID before and behind, by
// the rules of IBTA volume 1, 14.2.2, others by the linear forwarding tables that were really programmed.
// A wrong table drops or loops them, which is counted.
//
// What the simulator keeps and ibsim forgets: neighbour MTU, partition
// enforcement bits, M_Key and its settings, SM service level, thresholds, and
// every other writable field.
//
// Data packets and GMPs go where the tables lead them, between Active ports
// only, and are held to P_Keys: by switch ports that enforce them, and by the
// port they reach. Inject sends one data packet and tells its fate; a Flow is
// traffic between two ports, by which a test knows what a victim felt. What an
// attacker or clumsy hands do is done by Recable, Swap, Bounce, Unplug, Insert,
// Reboot, SetGUIDs, Lie, InjectMAD, Flood, RogueSM and Pretend, which has a host show
// switches without end.
//
// SMPs have no flow control. Where agents take time (Fault.Work), each port holds
// a few and drops the rest, which it counts as VL15Dropped.
//
// A router is a node with a port in each of several subnets. Data and GMPs with a
// global route header that names another subnet leave by the port there, under the
// P_Key tables of both ports. A GMP whose header is for another port than the one it
// reached is not taken.
//
// # What devices enforce
//
// A management port with an M_Key answers SMPs as its protection level says
// (IBTA volume 1, 14.2.4): it hides the key at level 1, is silent at 2 and 3,
// counts violations, sends trap 256, and gives up its protection when the lease
// runs out. What a host sends to its own port is not checked. P_Key tables have
// a capacity, and ports judge what crosses them by membership. Traps that
// anybody can provoke (256 to 259) are sent once in the interval that
// SubnetTimeOut sets, until they are repressed.
//
// Congestion control, the vendor class and the node to node class (0x21, 0x0A,
// 0x0C) are protected in the same way by keys of their own, if the Device has
// them. What is not public of these is listed at mad.KeyClass and here: a key
// that was replaced stays good until the new one is set again; a Get of
// ClassPortInfo needs the key only under the protect bit; every right key
// stops the lease, and when it runs out the key can be read but not set; a trap
// shows the device's key; switches tell each other by method Send.
//
// The SMP firewall of a channel adapter keeps subnet management from its host
// in both directions. Root on the host sets it, and takes it away again unless
// a configuration that is signed has locked it; the signed form stands for that
// of real adapters, and carries only what is modelled. Guests have virtual functions
// of the adapter (VirtualFunction), which have no queue pair 0 unless it is
// configured so. A model of an adapter's firmware (Adapter) can keep these
// settings instead; then what its registers hold is what the fabric obeys.
//
// A Device says how a node differs from a plain one: its capacities, whether it
// holds two keys while one is being changed, what it keeps through a reboot.
package sim

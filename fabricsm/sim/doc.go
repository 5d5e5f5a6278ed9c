// Package sim is a fabric in memory: switches and channel adapters that follow the specification where a subnet manager can
// see it.
//
// A Fabric is made from a netlist. A program at a host acts through a Station, which sits at a port, or through a
// transport.Port made from one. All work happens in the caller: when Send returns, the packet has reached its end and its
// answer is in the inbox of a station. There are no goroutines and no clock; delays and repeated traps wait for Advance.
// With the same seed and the same calls a fabric does the same.
//
// A HostPort is a port whose host is a Linux kernel elsewhere. It receives every packet that the adapter does not answer
// itself, and an event at each change of the port.
//
// Packets move hop by hop. Directed routes, with parts by LID before and after, follow the rules of IBTA volume 1, 14.2.2.
// Other packets follow the linear forwarding tables that were really programmed. A wrong table drops packets or sends them
// in a loop, and this is counted.
//
// The simulator keeps fields that ibsim forgets: neighbour MTU, partition enforcement bits, M_Key and its settings, SM
// service level, thresholds, and every other writable field.
//
// Data packets and GMPs follow the tables, between Active ports only. Their P_Keys are checked by switch ports that enforce
// them, and by the port that they reach. Inject sends one data packet and returns its fate. A Flow is traffic between two
// ports, with which a test measures the effect on a victim. The actions of an attacker or a careless technician are
// Recable, Swap, Bounce, Unplug, Insert, Reboot, SetGUIDs, Lie, InjectMAD, Flood, RogueSM and Pretend. With Pretend a host
// shows an endless number of switches.
//
// SMPs have no flow control. Where agents take time (Fault.Work), each port holds a few SMPs and drops the rest, which it
// counts as VL15Dropped.
//
// A router is a node with a port in each of several subnets. Data and GMPs with a global route header for another subnet
// leave by the port there, under the P_Key tables of both ports. A GMP whose header is for another port than the one that
// it reached is not accepted.
//
// # Enforcement in devices
//
// A management port with an M_Key answers SMPs according to its protection level (IBTA volume 1, 14.2.4). It hides the key
// at level 1, is silent at 2 and 3, counts violations, sends trap 256, and drops its protection when the lease expires.
// SMPs of a host to its own port are not checked. P_Key tables have a capacity, and ports judge crossing packets by
// membership. Traps that any sender can cause (256 to 259) are sent once in the interval of SubnetTimeOut, until they are
// repressed.
//
// Congestion control, the vendor class and the node to node class (0x21, 0x0A, 0x0C) are protected in the same way by their
// own keys, if the Device has them. Non-public behaviour is listed at mad.KeyClass and here: a replaced key stays valid
// until the new one is set again; a Get of ClassPortInfo needs the key only under the protect bit; every right key stops
// the lease, and after it expires the key can be read but not set; a trap shows the key of the device; switches notify each
// other by method Send.
//
// The SMP firewall of a channel adapter blocks subnet management of its host in both directions. Root on the host can set
// and clear it, unless a signed configuration has locked it. The signed form stands for that of real adapters, and has only
// the modelled settings. Guests have virtual functions of the adapter (VirtualFunction), which have no queue pair 0 unless
// configured. A model of the firmware of an adapter (hcaconf.Firmware) can hold these settings instead; then the fabric follows its
// registers.
//
// A Device describes how a node differs from a plain one: its capacities, whether it holds two keys during a key change,
// what it keeps through a reboot.
package sim

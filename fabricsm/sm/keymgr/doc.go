// Package keymgr gives the devices of a fabric the keys of the general management
// classes: CC_Key (0x21), VS_Key (0x0A), N2N manager and node keys (0x0C). It
// runs beside the Subnet Manager's core and like it: a [Manager] has no clock,
// randomness, goroutines or I/O, and is stepped by its owner, who does what an
// [Output] says in its order: save, answer, send, tell, wake.
//
// # What it goes by
//
// The core's views say which end ports there are and when something about them
// changed; what decides about keys is asked of the core at the moment of sending
// ([Fabric]): a key leaves only to the LID of a port that is where it belongs.
// Nothing is begun before the fabric was settled once, and only while this Subnet
// Manager is master.
//
// # One class at one port
//
// Each pair of a port and a class is an agent. It compares what was observed with
// what is wanted and has at most one request out:
//
//  1. a device that has no key of ours is asked for ClassPortInfo (and, of class
//     0x21, EnhancedCongestionInfo) and for the key: is the class there, has it
//     keys, does it hold two, does it hold somebody else's?
//  2. a new key is planned and saved, set, and read back; see package keys, whose
//     Ring knows at each step what to do next, also after a crash;
//  3. protect bit and lease are made as configured;
//  4. the trap address of ClassPortInfo is made ours;
//  5. a switch with class 0x0C gets its node key and the keys of its neighbours
//     (NeighborsInfo), those once it is clear which they are.
//
// A settled device is written nothing. It is asked for its key twice in a lease,
// which also keeps that from running out, or else every ten minutes.
//
// A device that does not answer three times in a row is left alone until its port
// changes, but for a look after a while. Requests that are repeated come after all
// others, so those who are silent hold nobody up.
//
// # Traps
//
// Whoever can send a GMP can make up a trap. So it is checked (its LID is that of
// a port we know, its header shows no key or one of that port's), repressed, and
// has the device asked for its key, which stops a lease, too. Only if the device
// itself counted violations is its KeyInfo set again, with what it has already.
// That happens once a second for each agent, whatever comes.
package keymgr

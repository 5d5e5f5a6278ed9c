// Package keymgr assigns the keys of the general management classes to the devices of a fabric: CC_Key (0x21), VS_Key
// (0x0A), N2N manager and node keys (0x0C). It runs beside the Subnet Manager's core and like it: a [Manager] has no clock,
// randomness, goroutines or I/O, and is stepped by its owner. The owner executes an [Output] in its order: save, answer,
// send, report, wake.
//
// # Input
//
// The core's views list the end ports and their changes. Facts that decide about keys are requested from the core at the
// moment of sending ([Fabric]): a key leaves only to the LID of a port that is at its place. No work begins before the
// fabric was settled once, and only while this Subnet Manager is master.
//
// # One class at one port
//
// Each pair of a port and a class is an agent. It compares the observed state with the wanted state and has at most one
// request out:
//
//  1. a device that has no key of ours is asked for ClassPortInfo (and, of class
//     0x21, EnhancedCongestionInfo) and for the key: does it have the class and
//     keys for it, does it hold two, does it hold a key of another manager?
//  2. a new key is planned and saved, set, and read back; see package keys, whose
//     Ring has the next step at any time, also after a crash;
//  3. protect bit and lease are set as configured;
//  4. the trap address of ClassPortInfo is set to ours;
//  5. a switch with class 0x0C gets its node key and the keys of its neighbours
//     (NeighborsInfo), those once it is clear which they are.
//
// Nothing is written to a settled device. It is asked for its key twice in a lease, which also renews the lease, or every
// ten minutes without one.
//
// A device that does not answer three times in a row is not asked again until its port changes, or a pause is over.
// Requests that are repeated come after all others, so silent devices delay no other device.
//
// # Traps
//
// Any host that can send a GMP can send a false trap. So it is checked (its LID is that of a port we know, its header shows
// no key or one of that port's) and repressed, and the device is asked for its key, which stops a lease, too. Its KeyInfo
// is set again, unchanged, only if the device itself counted violations. That happens at most once a second for each agent.
package keymgr

// Package sm is the Subnet Manager: what it has observed of a fabric, what is
// wanted of it, and which requests make the second of the first.
//
// A [Core] is a value without clock, randomness, goroutines or I/O. Its owner
// (package driver, or a test) calls [Core.Step] for each thing that happens
// and then does what the [Output] says, in this order:
//
//  1. make Save durable,
//  2. put Answer and then Send on the wire, in order,
//  3. run Job somewhere, and step its result in,
//  4. hand on Events and View,
//  5. step [Woken] in at Wake, unless something else happens before.
//
// Every request is answered by exactly one [Reply]: what came back, a timeout,
// or "undelivered". The core retries on its own and bounds the number of
// requests that are out, so the owner needs no queue. Outputs are valid until
// the next Step.
//
// The same inputs at the same times give the same outputs, byte for byte.
//
// # How it works
//
// What is to be looked at again stands in queues of nodes and ports, by
// urgency (queue.go). While the window has room the core takes the most urgent
// one, compares observed with wanted, and sends at most one request for it; the
// answer puts it back into a queue if there may be more to do. When all queues
// are empty and nothing is out, the fabric is settled. Nothing scans the whole
// fabric but the two moments at which everything changes: when this SM becomes
// master, and when the first intent arrives.
//
// # Where to look
//
// One concern has one file, or a few with the same beginning:
//
//	core input output config weakness        the contract with the owner
//	queue background timers wire failures    the work: what is next, what is out, what went wrong
//	allowance settle progress view events    how much of it, how far it is, what others are told
//	discovery cables description retree      what there is, and how it is reached
//	confirm duplicate sure unread            who is really there
//	growth hanging                           how much one port may show
//	portinfo portpolicy slowlink fdr10       ports and links
//	lids lidprefs aliases                    addresses
//	members intent review pkeys pkeyplan pkeytable  who may talk to whom
//	routing forwarding rollout               unicast;  mcast groups: multicast
//	lanes lanesundo sltovl vlarb             virtual lanes
//	mkey...                                  keys of devices;  classkeys: what package keymgr needs
//	topology...                              the declared topology, as law
//	traps violation... statechange           what devices tell
//	health healthmark quarantine             what misbehaves
//	audit faults notkept inherit             what others did, and what devices forget
//	election handover resign sminfo smtrust  other subnet managers
package sm

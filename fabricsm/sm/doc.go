// Package sm is the Subnet Manager: the observed state of a fabric, its wanted state, and the requests that turn the first
// into the second.
//
// A [Core] is a value without clock, randomness, goroutines or I/O. Its owner (package driver, or a test) calls [Core.Step]
// for each thing that happens and then does what the [Output] says, in this order:
//
//  1. make Save durable,
//  2. put Answer and then Send on the wire, in order,
//  3. run Job somewhere, and step its result in,
//  4. hand on Events and View,
//  5. step [Woken] in at Wake, unless something else happens before.
//
// Every request is answered by exactly one [Reply]: the response, a timeout, or "undelivered". The core retries on its own
// and bounds the number of requests that are out, so the owner needs no queue. Outputs are valid until the next Step.
//
// The same inputs at the same times lead to the same outputs, byte for byte.
//
// # How it works
//
// Nodes and ports that have to be looked at again stand in queues, by urgency (package work). While the window has room the
// core takes the most urgent one, compares observed with wanted, and sends at most one request for it; the answer puts it
// back into a queue if there may be more to do. When all queues are empty and nothing is out, the fabric is settled. The
// whole fabric is scanned only at the two moments at which everything changes: when this SM becomes master, and when the
// first intent arrives.
//
// # Where to look
//
// One concern has one file, or a few with the same beginning:
//
//	core input output config weakness        the contract with the owner;  desk: what packages ask of the core
//	queue background timers wire failures    the work, with packages work and blocks: next requests, those that are out, failures
//	allowance settle view events             how much of it, how far it is, with package settling;  problems: with package fault
//	discovery observed cables description    nodes and links, with packages discovery and tree
//	confirm duplicate sure unread            identity of nodes, with package identity
//	growth throttle                          how much one port may show, with package subtree
//	portinfo portpolicy linkspeed            ports and links, with packages portpolicy and linkspeed
//	lids lidprefs sight                      addresses, with package lids;  aliases: with the package of that name
//	members intent pkeys                     which ports may talk to each other, with the packages members and pkeys
//	routing forwarding                       unicast, with package forwarding;  mcast: multicast, with the package of that name
//	lanes                                    virtual lanes, with package lanes
//	mkey...                                  keys of devices;  classkeys: what package keymgr needs
//	topology...                              the declared topology, with package declared
//	traps violations                         reports of devices, with packages violation and statechange
//	health quarantine                        misbehaving devices, with package health
//	audit notkept inherit                    changes by other managers, and values that devices forget
//	election handover smtrust                other subnet managers, with packages election and smtrust
package sm

// Package rma replaces adapters and switches of a running fabric, by the flows of fabricsm/topospec/rma. A window is opened
// for one place and a limited time. The new device is seen and held there, a host attests a new adapter, and a second
// person confirms. Then a revision of the declared topology follows in which the new GUID has the place of the old one,
// which is retired.
//
// Nothing is decided here that package topology does not decide for every revision. Each step is a draft of the operator
// who opened the window, approved and put into force by the one who confirms it, with all guards. A host's own word grants
// nothing: a new adapter must be a spare of the specification, be seen at the place of the old one, and be in evidence of
// the host that was accepted since the window was opened.
//
// A flow is one record of the store, by its ticket. Its state follows from that, from the revisions, and from what the
// Subnet Manager shows. So a service that is killed between any two steps goes on with the next.
package rma

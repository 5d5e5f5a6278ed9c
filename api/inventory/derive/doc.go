// Package derive makes the declared topology from the inventory, so that cables are written down once, and compares the
// two, and both with the fabric, in physical terms.
//
// The inventory decides which devices and cables there are. From the revision in force come what the inventory has no
// room for: the policy, routers, aggregation nodes of switches without aggregation_guid, retired devices, states of
// links, and boundaries.
package derive

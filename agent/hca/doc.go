// Package hca reads what InfiniBand adapters (HCAs) a host has, which machine
// and boot it is, and what each adapter is and runs: who made it, which firmware
// at which security state, which GUIDs, which locks and tokens.
//
// Every fact has its sources: the firmware's registers (packages fwctl and mst),
// the driver (devlink, sysfs), what the maker wrote into the card. Sources that
// contradict each other, and facts that nobody tells, are findings with codes of
// their own; nothing is ever taken for good because it is not known.
//
// The kernel's trees and the firmware are hostile input: files are read with a
// bound, links cannot leave the tree, and every problem is reported with the
// place it is in. An adapter that cannot be read completely is never left out.
package hca

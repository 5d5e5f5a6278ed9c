// Package hca reads which InfiniBand adapters (HCAs) a host has, which machine and boot it is, and what each adapter is and
// runs: its maker, its firmware and the security state, its GUIDs, locks and tokens.
//
// Every fact has its sources: the firmware's registers (packages fwctl and mst), the driver (devlink, sysfs), and the data
// that the maker wrote into the card. Sources that contradict each other, and facts that no source reports, are findings
// with codes of their own. An unknown fact is never taken as good.
//
// The kernel's trees and the firmware are hostile input: files are read with a bound, links cannot leave the tree, and
// every problem is reported with the place it is in. An adapter that cannot be read completely is never left out.
package hca

// Package seen answers what operators ask of the fabric, out of the subnet
// manager's own memory.
//
// An [Observer] is given every view and event of one subnet manager and keeps
// the newest. Views are immutable, so questions never make the subnet manager
// wait; what a question needs beyond a view (names, places) is made once for a
// view, by the first who asks. Lists are read in pages, by position, so that a
// page costs what it holds.
//
// Nothing is decided by what is told here. Names are what devices call
// themselves, made unique or else replaced by the GUID.
package seen

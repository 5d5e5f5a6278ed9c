// Package query answers what operators ask of the fabric, out of the subnet manager's own memory.
//
// An [Observer] receives every view and event of one subnet manager and keeps the newest. Views are immutable, so questions
// never make the subnet manager wait. Data that a question needs beyond a view (names, places) is made once for a view, by
// the first caller that asks. Lists are read in pages, by position, so that a page costs what it holds.
//
// No decision depends on these answers. Names are what devices call themselves, made unique or else replaced by the GUID.
package query

// Package past records how the map of the fabric changes, and shows it as it was.
//
// A [Recorder] looks at what the map draws again and again: switches, links between them, ports of hosts, phases and tenants of hosts, and what
// was proven of each port. It adds what changed to a timeline of its own files. A [Reader] answers out of these. Where nothing was recorded, the
// answer says that nothing is known; a change whose time is not known is not listed.
//
// No decision depends on any of it. Recording that fails is said in the answer, in metrics and in the log, and nothing else waits for it.
package past

// Package perfmgr reads the counters of ports, as a performance manager does (IBTA volume 1, chapter 16): data and packets,
// errors, discards and waits.
//
// A [Manager] is given the agents of the fabric and reads all their ports once in each interval: that is a pass. It spreads the
// requests of a pass over nine tenths of the interval, in a small fabric over 10 ms each, and sends no more of them in a second than it may. If they do not suffice,
// the pass takes longer, and the next one begins later.
//
// Of each agent at most one request is out. So a device that answers slowly or not at all keeps one place of the window, and
// one that does not answer twice in a row is left alone for a time, which doubles.
//
// The Manager only asks: it writes no counter. What a device counts may go back all the same, as another tool clears it or the
// device restarts. The totals of the Manager do not go back: they grow by what was counted between two answers. A counter that
// stays at its largest value does not grow either, until a tool clears it.
//
// Of two readings of a port it knows the rate of its traffic in between. Where it is in doubt, as a counter went back, there is no
// rate: see [RateState].
//
// A Manager has no clock, randomness, goroutines or I/O. It is not safe for concurrent use.
package perfmgr

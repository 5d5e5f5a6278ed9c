// Package route plans unicast forwarding: it defines the routing engine, its tables, and the checker that judges them
// before anything is written.
//
// Engines live in packages of their own. They see switches only, as a [Graph] of numbered links: the LIDs behind one switch
// share all hops but the last, so work is done per destination switch and not per pair of LIDs.
//
// A table is accepted only after [Check] found that every LID is reached from everywhere, that there is no forwarding loop,
// and that there is no credit loop (the buffers of links would wait for each other in a cycle, and lossless links would
// stop permanently). Tables may assign routes to several virtual lanes, with a service level for every pair of LIDs; each
// lane is then judged by itself. The code that programs switches and answers path queries must follow [Tables.SLtoVL] and
// [Tables.SL]. [First] tries engines in order and reports why it rejected any; nothing falls back silently. It judges only
// the changes since the tables that it returned before, where that proves as much.
package route

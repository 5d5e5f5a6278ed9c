// Package route plans unicast forwarding: what a routing engine is, the tables
// it gives, and the checker that judges them before anything is written.
//
// Engines live in packages of their own. They see switches only, as a [Graph]
// of numbered links: the LIDs behind one switch share all hops but the last,
// so work is done per destination switch and not per pair of LIDs.
//
// A table is wanted only after [Check] found that every LID is reached from
// everywhere, that no packet can go round in circles, and that the buffers of
// links cannot wait for each other in a circle (a credit loop: lossless links
// then stop for ever). Tables may deal routes to several virtual lanes, with a
// service level for every pair of LIDs; each lane is then judged by itself, and
// who programs switches and answers path queries must do as [Tables.SLtoVL] and
// [Tables.SL] say. [First] tries engines in order and says why it passed
// any over; nothing falls back silently. It judges what changed since tables that it
// gave before, where that proves as much.
package route

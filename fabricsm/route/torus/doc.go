// Package torus is the routing engine for two- and three-dimensional tori and meshes, and rings. It works as OpenSM's
// torus-2QoS, and reads its file.
//
// Packets cross one dimension after the other. In a ring they go the shorter way. The service level has a bit for each
// dimension: whether the path passes the ring's dateline (between its last and its first switch). On links of that
// dimension the bit is the virtual lane. No ring is full on either lane, so that there is no credit loop.
//
// A ring that lost a link or a switch is open. Packets that would have passed the gap go the other way round; the service
// level does not change. A packet that would have turned at a switch that is gone turns one switch before, and then back
// into the dimension it left: the hop after such a turn has a lane of its own, the second bit of the number. So two lanes
// are enough for a whole torus, four for one that has lost a switch, and connections keep their service level through the
// loss.
//
// The engine finds the places of the switches in the torus by itself, or from seeds in a file ([Parse]). It keeps the
// places while switches come and go.
//
// Senders must use the service level that the tables have for a pair. A hostile host that uses other levels can break the
// proof: where hosts are hostile, use an engine that needs one lane.
package torus

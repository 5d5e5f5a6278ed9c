// Package torus is the routing engine for two- and three-dimensional tori and
// meshes, and rings. It does what OpenSM's torus-2QoS does, and reads its file.
//
// Packets cross one dimension after the other. In a ring they go the shorter
// way. The service level says, a bit for each dimension, whether the path
// passes the ring's dateline (between its last and its first switch); on links
// of that dimension the bit is the virtual lane. No ring is full on either
// lane, so that no buffers wait in a circle.
//
// A ring that lost a link or a switch is open, and what would have passed the
// gap goes the other way round; the service level does not change. A packet
// that would have turned at a switch that is gone turns one switch before, and
// then back into the dimension it left: the hop after such a turn has a lane of
// its own, the second bit of the number. So two lanes are enough for a whole
// torus, four for one that has lost a switch, and connections keep their
// service level through the loss.
//
// Where the switches are in the torus is found by itself, or from seeds in a
// file ([Parse]); found once it is kept while switches come and go.
//
// Senders must use the service level that the tables give for a pair. A host
// that is free to send what it likes can break the proof: where hosts are
// hostile, use an engine that needs one lane.
package torus

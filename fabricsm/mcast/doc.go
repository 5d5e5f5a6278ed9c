// Package mcast plans multicast: for each multicast LID one tree over the
// switches that members are cabled to, as masks of ports for the multicast
// forwarding tables.
//
// # Why trees cannot lock up
//
// A switch sends a multicast packet out of all ports of its mask but the one it
// came in by, so what a tree uses of one link waits for all links that follow.
// One tree alone cannot wait in a circle. Several can, and a tree together with
// unicast routes can. So all trees grow on one [Ground]: some links of each
// switch are said to lead up, and in a tree each switch has at most one
// neighbour above it. Packets then go up first and down after, in every tree.
// What leads up is chosen so that the unicast routes that share the virtual
// lane do the same, or are proven otherwise to close no circle with the trees;
// see [NewGround].
//
// # Why trees stay
//
// A tree is a function of the fabric, its multicast LID and the switches that
// have members, of nothing else: not of the order in which members came, nor of
// other groups. A restart plans the same trees. Choices between equals are made
// by the highest hash of multicast LID and GUID. That spreads groups over roots
// and cables, and when one of the equals goes, only the trees that had chosen it
// move. A member that joins or leaves changes a branch, as long as a root stays
// that is above all members and not deeper than another.
package mcast

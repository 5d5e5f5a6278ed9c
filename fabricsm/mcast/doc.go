// Package mcast plans multicast: for each multicast LID one tree over the switches that members are cabled to, as masks of
// ports for the multicast forwarding tables.
//
// # Why trees cannot deadlock
//
// A switch sends a multicast packet out of all ports of its mask except the one it came in by. So a tree's packets on one
// link wait for all links that follow. One tree alone cannot cause a cycle of waits. Several can, and a tree together with
// unicast routes can. So all trees use one [Ground]: it defines which links of each switch lead up, and in a tree each
// switch has at most one neighbour above it. Packets then go up first and down after, in every tree. The links up are
// chosen so that the unicast routes that share the virtual lane do the same. Otherwise it is proven that they close no
// cycle with the trees; see [NewGround].
//
// # Why trees stay
//
// A tree is a function of the fabric, its multicast LID and the switches that have members only. It does not depend on the
// order in which members came, or on other groups. A restart plans the same trees. Choices between equals use the highest
// hash of multicast LID and GUID. That spreads groups over roots and cables, and when one of the equals goes, only the
// trees that had chosen it move. A member that joins or leaves changes a branch, as long as a root stays that is above all
// members and not deeper than another.
package mcast

// Package group keeps the multicast groups of the subnet: MCMemberRecord (IBTA volume
// 1, 15.2.5.17), who may make, join, leave and see them.
//
// A [Registry] takes one request after the other and says what to answer, what to save,
// what the Subnet Manager has to be told, which notices to raise, and what happened. What
// it saved restores it. [Registry.Snapshot] is what queries read; it does not change.
//
// # Who is a member
//
// A port may be a member of a group whose P_Key it has, if one of the two is a full
// member's, and if its link is no slower and its MTU no smaller than the group's. A
// member is dropped when that ceases to hold or its port is gone; it has to join again,
// as the Subnet Manager tells every port that comes up. After a restart members whose
// port was not seen yet stay until the fabric is known.
//
// Of the default partition every port is a limited member, whoever's it is. Such a member
// makes no groups there but those of IP, and these only beside the broadcast group.
//
// Who has no right to a group is answered as if there were none.
//
// # Multicast LIDs
//
// A group gets the lowest free multicast LID below the size of the smallest multicast
// table, or the one it asks for if that is free. Groups of one P_Key, service level,
// MTU and rate may share one: IPv6 solicited-node groups do if configured, any other
// when no more than the reserve is free, or when their partition uses as many as are
// left for all others. So the first partition gets at most half of what there is, the
// next half of the rest, and there is always some for one that comes. Groups of
// different partitions never share, so packets never go to a port of another tenant.
// The reserve is for the groups that the configuration names.
package group

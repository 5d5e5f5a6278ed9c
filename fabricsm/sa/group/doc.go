// Package group keeps the multicast groups of the subnet: MCMemberRecord (IBTA volume 1, 15.2.5.17), and the rules for who
// may create, join, leave and see them.
//
// A [Registry] handles one request after the other. For each it returns the answer, the facts to save, the input for the
// Subnet Manager, the notices to raise, and the events. The saved facts restore it. Queries read a [Registry.Snapshot],
// which is immutable.
//
// # Membership
//
// A port may be a member of a group if it has the P_Key of the group, and if port or group is a full member of the
// partition. Its link must be at least as fast as the group, with at least the same MTU. A member is removed when this is
// no longer true or its port disappears. It has to join again, and the Subnet Manager asks every port that comes up to do
// so. After a restart, members whose port was not yet seen stay until the fabric is known.
//
// Every port is a limited member of the default partition, also the ports of all tenants. Such a member may create only
// groups of IP there, and these only beside the broadcast group.
//
// A requester without a right to a group gets the same answer as for a group that does not exist.
//
// # Multicast LIDs
//
// A group gets the lowest free multicast LID below the size of the smallest multicast table, or the LID that it asks for if
// that is free. Groups of one P_Key, service level, MTU and rate may share a LID. IPv6 solicited-node groups share one if
// configured. Other groups share one when no more than the reserve is free, or when their partition uses as many LIDs as
// are left for all others. So the first partition gets at most half of all LIDs and the next one half of the rest; some
// always remain for a new partition. Groups of different partitions never share a LID, so packets never reach a port of
// another tenant. The reserve is for the groups that the configuration names.
package group

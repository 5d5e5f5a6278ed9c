// Package inform keeps subscriptions to notices and delivers reports: InformInfo and InformInfoRecord (IBTA volume 1,
// 13.4.8.3, 15.2.5.12).
//
// At delivery the registry decides whether a subscriber may know of a notice, by the current P_Keys of the subscriber. It
// may know of a port that appears or disappears if the two can communicate in one of the partitions that the port joined or
// left. It may know of a group if it has the P_Key of the group, and of a report of a device if it can communicate with the
// device. Security notices go only to subscribers that were trusted when they subscribed, even if other subscriptions ask
// for them.
//
// Each subscription has a queue and one report in flight. Each port has a few in flight, and all ports together the
// configured number. Ports take turns, and ports that do not answer take turns separately. So a port that does not answer
// delays no other port. A report without room is dropped and counted: reports only announce a change, and a host that must
// be sure sends a query.
package inform

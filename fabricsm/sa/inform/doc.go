// Package inform keeps subscriptions to notices and delivers reports: InformInfo and
// InformInfoRecord (IBTA volume 1, 13.4.8.3, 15.2.5.12).
//
// Whether a subscriber may know of a notice is decided when it is delivered, by the
// P_Keys that it has then: of a port that came or went it knows if the two can talk in
// one of the partitions that the port came into or left, of a group if it has the
// group's P_Key, of what a device reports if it can talk to the device. Notices of
// security go to who was trusted when it subscribed, and nobody else, whatever the
// subscription asks for.
//
// Each subscription has a queue and one report under way, each port a few, and all
// together as many as configured; ports take turns, and those that do not answer have
// their own. So who does not answer keeps nobody else waiting. What has no room is
// dropped and counted: reports tell that something changed, and who must be sure asks.
package inform

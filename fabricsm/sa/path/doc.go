// Package path answers questions for paths: PathRecord, MultiPathRecord and
// TraceRecord (IBTA volume 1, 15.2.5.16, 15.2.5.19, 15.2.5.20).
//
// # What a path is
//
// There is a path between two end ports if forwarding leads from one to the other and
// they share a partition in which one of them is a full member. Its MTU and rate are
// those of the slowest link on the way, its P_Key is the source's entry, and its
// service level is that of the routing engine where engines need one, or else that of
// the QoS policy or the partition. A path back over the same LIDs makes it reversible;
// then MTU and rate hold for both directions.
//
// Few routes are walked. The checker has proven that accepted tables deliver each LID
// from everywhere, so when all their links are up only MTU and rate are open; and where
// the links between switches are all as good as the ends, or all the same, these follow
// from the ends. Otherwise the forwarding tables are followed, link by link.
//
// # Who may know
//
// Who is not trusted knows of its own port and of those that it shares a partition with.
// Others are for it as if they did not exist, in status, in content, and in the work that
// is done: a GUID that nobody has is looked at in the person of another end port, see
// [book.Book.Decoy].
package path

// Package path answers queries for paths: PathRecord, MultiPathRecord and TraceRecord (IBTA volume 1, 15.2.5.16, 15.2.5.19,
// 15.2.5.20).
//
// # Definition of a path
//
// There is a path between two end ports if forwarding leads from one to the other, and if they share a partition in which
// at least one is a full member. Its MTU and rate are those of the slowest link on the route, and its P_Key is the entry of
// the source. Its service level comes from the routing engine if the engine needs one, otherwise from the QoS policy or the
// partition. A path back over the same LIDs makes it reversible; then MTU and rate hold for both directions.
//
// The engine follows few routes. The checker has proven that accepted tables deliver each LID from everywhere, so when all
// their links are up only MTU and rate are open. These follow from the ends if the links between switches are at least as
// good as the ends, or all the same. Otherwise the engine follows the forwarding tables, link by link.
//
// # Visibility
//
// An untrusted requester knows its own port and the ports that share a partition with it. For other ports status, content
// and work are the same as if the ports did not exist. For a GUID that no port has, the engine looks at another end port
// instead, see [portindex.Book.Decoy].
package path

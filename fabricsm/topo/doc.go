// Package topo holds the observed fabric: nodes, ports and the cables between them, under dense ids.
//
// A [Builder] has one owner, the Subnet Manager's core, which adds the nodes and cables that it finds. [Builder.Freeze]
// publishes an immutable [Fabric] that planners, views and tests read from any goroutine. Ids stay the same from one
// snapshot to the next, so that tables kept beside a snapshot can be compared with the following one without looking up
// GUIDs.
//
// Nothing here is trusted: devices report their own GUIDs. Two nodes may claim one GUID, and the comments of important
// lookups say how they treat that. A host cannot choose its [ib.Place], the switch port it is cabled to.
package topo

// Package topospec holds the declared fabric: which device is meant to be at the
// other end of which switch port.
//
// A GUID can be changed by whoever owns the host. What a device says together
// with where the fabric sees it identifies it, so the specification is law: a
// link that differs gets no key, no LID, no route and no partition.
//
// This package is the model. A [Revision] lists devices, links and policy;
// [Revision.Validate] refuses what cannot be compared with anything;
// [Revision.Digest] names its content; [Compile] makes it a [Spec], which answers
// by one hash lookup. Around it, each with one job and none with I/O, clock or
// goroutines:
//
//	topoconf    topoconfig.conf, the format of OpenSM and UFM
//	native      our own form in JSON and YAML, which ends with counts and digest
//	ndt         cabling plans of UFM's NDT plugin, which have names and no GUIDs
//	discovered  what ibnetdiscover and netlists of ibsim say, as revision or fabric
//	product     what is known of models: ports, labels, aggregation nodes, chips
//	generate    a revision from a rack design and a manifest of GUIDs
//	lint        what is suspicious in a revision
//	judge       verdicts on what the Subnet Manager sees, one link end at a time
//	diff        two revisions compared, in physical terms
//	simulate    what activating a revision would do
//	history     revisions, approvals, activation, rollback
//	rma         replacement of an adapter or a switch as a flow
//	export      ibnetdiscover, Slurm's topology.conf and lists of GUIDs
//
// The Subnet Manager's core imports this package and judge. How it asks is
// written in the documentation of judge.
package topospec

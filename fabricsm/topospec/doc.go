// Package topospec holds the declared fabric: which device must be at the other end of which switch port.
//
// An attacker with control of a host can change a GUID. A device is identified by what it reports together with its place
// in the fabric. So a link that differs from the specification gets no key, no LID, no route and no partition.
//
// This package is the model. A [Revision] lists devices, links and policy; [Revision.Validate] rejects a revision that
// cannot be compared; [Revision.Digest] names its content; [Compile] compiles it to a [Spec], which answers by one hash
// lookup. Around it, each with one job and none with I/O, clock or goroutines:
//
//	topoconf    topoconfig.conf, the format of OpenSM and UFM
//	native      our own form in JSON and YAML, which ends with counts and digest
//	ndt         cabling plans of UFM's NDT plugin, which have names and no GUIDs
//	discovered  output of ibnetdiscover and netlists of ibsim, as revision or fabric
//	product     the known models: ports, labels, aggregation nodes, chips
//	generate    a revision from a rack design and a manifest of GUIDs
//	lint        suspicious parts of a revision
//	judge       verdicts on what the Subnet Manager sees, one link end at a time
//	diff        two revisions compared, in physical terms
//	simulate    the effects of activating a revision
//	history     revisions, approvals, activation, rollback
//	rma         replacement of an adapter or a switch as a flow
//	export      ibnetdiscover, Slurm's topology.conf and lists of GUIDs
//
// The Subnet Manager's core imports this package and judge. Its calls are described in the documentation of judge.
package topospec

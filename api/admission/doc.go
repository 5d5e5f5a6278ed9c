// Package admission decides which host's ports may be in which partition, and records the decision. It knows no HTTP and no
// subnet manager: the first is package api, the second works from the grants that this package writes (see package ledger).
//
// A host is admitted when six guards hold, checked in this order and all of them at the revision at which the grant is
// recorded:
//
//	assigned    an operator wants it in a cluster
//	attested    evidence obtained inside the provisioning window was accepted
//	cabled      inventory names a switch port for each of its ports
//	seen        the fabric shows each GUID at exactly that switch port
//	capacity    switch port and HCA have room for the P_Key
//	programmed  the tables of every port were read back
//
// The first five lead to a grant, the sixth to "admitted". When one of the first five stops holding, the grant is
// withdrawn: a port that moves or vanishes is not a member while it is away. Removal is reported only after read-back. A
// P_Key is assigned to another cluster only when it was proven absent from every port that ever was to hold it.
//
// The decision is one pure function (decide). The rest gathers its facts in a store transaction and writes the decision in
// the same one, together with the audit entry, so that any number of services over one store, crashing at any moment,
// agree. It rests on what hosts have shown (package attestation), which hosts there are (package register) and in which
// clusters they may be (package tenancy). A Service makes these; each asks it back through an interface of its own.
package admission

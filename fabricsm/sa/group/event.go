package group

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry"
)

// Reason is the reason of a refusal or an event.
type Reason uint8

// Reasons of refusals, and of spontaneous events.
const (
	NoReason          Reason = iota
	MissingComponents        // the component mask lacks some
	ForeignPrefix            // the PortGID is of no port of this subnet
	UnknownPort              // no port has the PortGID
	NoPartition              // the ports share no partition
	NoJoinState              // the request has no join state
	NotFull                  // only a full member may make a group
	InvalidPKey              // base 0
	NotInPartition           // the port does not have the group's P_Key
	BothLimited              // neither port nor group is a full member
	ParamsDiffer             // the request names other parameters than the group has
	TooSlow                  // rate of the port's link below the group's
	SmallMTU                 // MTU of the port's link below the group's
	Unrealizable             // MTU, rate or lifetime that cannot be had
	InvalidMGID              // not a multicast GID, or of a reserved form
	NotAsBroadcast           // an IPoIB group differs from the broadcast group of its partition
	NoBroadcast              // an IPoIB partition without a broadcast group
	NotMember                // the leaving port is no member in that state
	NotYours                 // the membership of another port
	PartitionQuota           // the partition has as many groups as it may have
	NoMLID                   // no multicast LID is left that it may have
	TooManyGroups            // of all together
	PortGone                 // the port of a member disappeared
	CeilingTooLow            // a switch has no room for a group that there is
	UnusableFact             // a saved fact cannot be restored
)

var reasons = [...]string{
	NoReason: "none", MissingComponents: "components are missing", ForeignPrefix: "the PortGID has a foreign subnet prefix",
	UnknownPort: "no port has the PortGID",
	NoPartition: "requester and port share no partition", NoJoinState: "the JoinState asks for nothing",
	NotFull: "only a full member makes a group", InvalidPKey: "the P_Key is invalid",
	NotInPartition: "the port does not have the P_Key of the group", BothLimited: "port and group are both limited members",
	ParamsDiffer: "the group has other parameters", TooSlow: "the link is slower than the group",
	SmallMTU: "the MTU of the link is smaller than that of the group", Unrealizable: "no such MTU, rate or lifetime can be had",
	InvalidMGID: "the MGID is invalid", NotAsBroadcast: "an IPoIB group must be as the broadcast group of its partition",
	NoBroadcast: "the partition has no IPoIB broadcast group", NotMember: "the port is no such member",
	NotYours:       "another port made the membership",
	PartitionQuota: "the partition has as many groups as it may have", NoMLID: "no multicast LID is left",
	TooManyGroups: "there are as many groups as there may be", PortGone: "the port is gone",
	CeilingTooLow: "a switch has no room for the multicast LID", UnusableFact: "it cannot be restored",
}

// String returns it in words.
func (r Reason) String() string { return registry.Word(reasons[:], "Reason", r) }

// status returns the status of the answer to a refused request.
func (r Reason) status() mad.Status {
	switch r {
	case NoReason:
		return mad.StatusOK
	case MissingComponents:
		return mad.StatusInsufficientComponents
	case ForeignPrefix:
		return mad.StatusInvalidGID
	case NoMLID, TooManyGroups, PartitionQuota:
		return mad.StatusNoResources
	default:
		return mad.StatusInvalidRequest
	}
}

// Kind is the kind of an event.
type Kind uint8

// Kinds of events.
const (
	Refused Kind = iota // a request, for a Reason
	Made                // a group
	Deleted             // a group
	Joined              // a member is new, or has other states
	Left                // a member, for a Reason if not by itself
	Problem             // any other event, for a Reason
)

var kinds = [...]string{"refused", "made", "deleted", "joined", "left", "problem"}

// String names the kind.
func (k Kind) String() string { return registry.Word(kinds[:], "Kind", k) }

// Event is an event to report.
type Event struct {
	Kind   Kind
	Reason Reason
	Asker  portindex.Asker // zero: no requester
	MGID   ib.GID
	MLID   ib.LID
	PKey   ib.PKey
	Port   ib.GUID // the member, by port or alias GUID
}

// String implements fmt.Stringer.
func (e Event) String() string {
	s := fmt.Sprintf("multicast group %v (P_Key %v, LID 0x%04x) %v", e.MGID, e.PKey, uint16(e.MLID), e.Kind)
	if e.Port != 0 {
		s += fmt.Sprintf(", port %v", e.Port)
	}
	return s + registry.Cause(&e.Asker, e.Reason)
}

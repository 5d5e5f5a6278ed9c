package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/portset"
)

// Output is what one Step wants done. It is valid until the next Step.
type Output struct {
	Save   []Fact     // durable first
	Answer []Response // then on the wire
	Send   []Request  // then these, in order
	Job    *RouteJob  // pure and long; run it elsewhere, nil when there is none
	Events []Event
	View   *View     // new immutable snapshot, nil when unchanged
	Wake   time.Time // step Woken in by then; zero: no need

	Resigned bool // after Resign: the owner may end
}

// RequestID names a request that is out; it is never 0.
type RequestID uint32

// Request is an SMP to send. Its transaction id is the request id, which an attacker can predict. The owner replaces it
// with a random one. It accepts only answers that have that one, come from the destination of the request, and have its
// class, attribute and modifier. All others go in as Received.
type Request struct {
	ID  RequestID
	LID ib.LID // destination; ib.PermissiveLID for a directed route
	MAD mad.MAD
}

// Response is a MAD that answers a request of another device, or a MAD for which no answer is expected.
type Response struct {
	LID ib.LID // destination; ib.PermissiveLID for a directed route
	QP  uint32
	MAD mad.MAD
	// Manager: it is for a subnet manager with which this one works, and goes before what
	// answers others.
	Manager bool
}

// FactKind is what a Fact is about.
type FactKind string

// Kinds of facts.
const (
	// FactLID: the end port GUID owns LID. LID 0 takes it back.
	FactLID FactKind = "lid"
	// FactNotKept: ports of the node GUID, if it is of this model and, being a
	// host, at this place, accept Sets of these fields and forget them.
	FactNotKept FactKind = "not-kept"
	// FactHealth: the device behind the port of switch GUID, or with port 0 that switch, is in quarantine or was marked by
	// an operator. One with neither takes it back.
	FactHealth FactKind = "health"
	// FactLanes: Mark says which tables of virtual lanes the subnet manager at
	// the port GUID wrote that others may want undone. None takes it back.
	FactLanes FactKind = "lanes"
	// FactBehind: behind Port of the node GUID is the switch with the end port
	// Behind, whose key is needed to ask it anything.
	FactBehind FactKind = "behind"
	// FactReleased, of the fabric: Mark says that all keys were to be given back,
	// so that none is given out. One without takes it back.
	FactReleased FactKind = "keys-released"
	// FactExposed: the key of the port GUID was shown to another device and has to change, or has changed and is still to
	// be dropped. One without Mark takes it back.
	FactExposed FactKind = "exposed"
	// FactLent: Mark names the holder of the key of the port GUID until Since. One without Mark takes it back.
	FactLent FactKind = "lent"
)

// Fact is one thing that must survive a restart. A fact replaces an earlier
// one of the same kind, GUID, Port and Name.
type Fact struct {
	Kind    FactKind   `json:"kind"`
	GUID    ib.GUID    `json:"guid"`
	LID     ib.LID     `json:"lid,omitzero"`
	LMC     ib.LMC     `json:"lmc,omitzero"` // how many LIDs from that one on: 2^LMC
	NotKept PortFields `json:"not_kept,omitzero"`
	Model   string     `json:"model,omitzero"`
	Place   ib.Place   `json:"place,omitzero"`

	Port       ib.PortNum `json:"port,omitzero"`
	Quarantine string     `json:"quarantine,omitzero"`
	Mark       string     `json:"mark,omitzero"`
	Behind     ib.GUID    `json:"behind,omitzero"`
	Seen       string     `json:"seen,omitzero"` // of a FactTopology: what was seen there
	Reason     string     `json:"reason,omitzero"`
	Since      time.Time  `json:"since,omitzero"`

	// Name and Body are of facts of subnet administration: the name of a registration, and its content. A name is of
	// letters, digits, dots and hyphens, at most 128.
	Name string `json:"name,omitzero"`
	Body string `json:"body,omitzero"`
	// Private is a Body that holds a secret. A store keeps it as Sealed, or not at all.
	Private ib.SecretText `json:"-"`

	// Sealed is the stored form of a KeyFact, and of secrets of the vault. Key is the content of a KeyFact; it is never
	// stored in clear.
	Sealed string       `json:"sealed,omitzero"`
	Key    *keys.Record `json:"-"`
	Cycle  *keys.Cycle  `json:"cycle,omitempty"` // of a RotationFact
}

// TakesBack reports whether a fact only says that an earlier one of the same kind, GUID and Port no longer holds.
func (f *Fact) TakesBack() bool {
	switch f.Kind {
	case FactLID:
		return f.LID == 0
	case FactNotKept:
		return f.NotKept == 0
	case FactHealth:
		return f.Quarantine == "" && f.Mark == ""
	case FactLanes, FactExposed, FactLent, FactReleased, FactTopology, FactTopologyMode:
		return f.Mark == ""
	case FactBehind:
		return f.Behind == 0
	case FactSAGroup, FactSAMember, FactSAService, FactSASubscription, FactSAAlias:
		return f.Body == "" && f.Private.IsZero() && f.Sealed == ""
	default:
		return false
	}
}

// PortFields is a set of fields of PortInfo, and a few of SwitchInfo.
type PortFields = portset.Fields

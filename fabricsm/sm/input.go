package sm

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/members"
)

// Input is one thing that happened.
type Input interface{ input() }

// Started begins the life of a core. Facts are all that were saved before, in
// the order they were saved.
type Started struct{ Facts []Fact }

// Received is a MAD that is not the answer to a request of ours.
type Received struct {
	MAD mad.MAD
	LID ib.LID // source
	QP  uint32 // source queue pair
}

// Reply is how a request ended. Replies with an id that is not out are
// ignored.
type Reply struct {
	ID      RequestID
	Outcome Outcome
	MAD     mad.MAD // valid for Answered
}

// Outcome is how a request ended.
type Outcome uint8

// Outcomes.
const (
	Answered    Outcome = iota // an answer came
	TimedOut                   // none came in time
	Undelivered                // the transport reports at once that there is no receiver
)

// IntentSet replaces all that is wanted.
type IntentSet struct{ Intent Intent }

// IntentChanged changes the intent: grants that it does not name stay. For the first intent it is the same as IntentSet
// with these grants. A grant that is in both lists is granted.
type IntentChanged struct {
	Revision int64
	Grant    []Grant // in any order
	Withdraw []Grant // in any order; grants that do not exist are ignored
}

// Then returns one change for two that follow each other.
func (in *IntentChanged) Then(next *IntentChanged) *IntentChanged {
	but := func(list, not []Grant) []Grant {
		either := func(g Grant) Grant { g.PKey = g.PKey.Base(); return g } // full or limited
		gone := make(map[Grant]bool, len(not))
		for _, g := range not {
			gone[either(g)] = true
		}
		return slices.DeleteFunc(slices.Clone(list), func(g Grant) bool { return gone[either(g)] })
	}
	return &IntentChanged{
		Revision: next.Revision,
		Grant:    append(but(in.Grant, next.Withdraw), next.Grant...),
		Withdraw: append(but(in.Withdraw, next.Grant), next.Withdraw...),
	}
}

// Intent is everything that is wanted beyond the defaults.
type Intent = members.Intent

// Takeover has ports keep the P_Keys of tenants with which they are read first.
type Takeover = members.Takeover

// Grant puts an end port into a partition.
type Grant = members.Grant

// Woken says that the time of Output.Wake has come.
type Woken struct{}

func (*Started) input()       {}
func (*Received) input()      {}
func (*Reply) input()         {}
func (*IntentSet) input()     {}
func (*IntentChanged) input() {}
func (*Woken) input()         {}

package remedy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "portcullis/api/v1"
)

// Action is what is done about a kind of drift. Each one includes those before it.
type Action uint8

// Actions.
const (
	List    Action = iota // it is in the list of drift
	Report                // events say when it begins and ends
	Correct               // the Subnet Manager reads the port again, and writes what differs
	Fence                 // if it stays, the host is fenced
)

var actions = []string{List: "list", Report: "report", Correct: "correct", Fence: "fence"}

func (a Action) String() string { return actions[a] }

// ParseAction returns the Action of a name.
func ParseAction(name string) (Action, error) {
	if i := slices.Index(actions, name); i >= 0 {
		return Action(i), nil
	}
	return List, fmt.Errorf("%q is none of %s", name, strings.Join(actions, ", "))
}

// Policy has the Action for each kind of drift. A kind that is not in it is only listed.
type Policy map[string]Action

// Default returns the policy where the configuration says nothing. No host is fenced.
func Default() Policy {
	return Policy{
		v1.DriftStray: Correct, v1.DriftNotEnforced: Correct, v1.DriftMembership: Correct, v1.DriftMissing: Correct, v1.DriftLeaving: Report,
	}
}

// Kinds returns the kinds of drift about which something can be done, sorted. Of a port that was not found, or a value that was not
// read, nothing is known that calls for more than a row in the list.
func Kinds() []string { return slices.Sorted(maps.Keys(Default())) }

// isSoon reports whether drift of a kind is none that a change of memberships explains: it is acted on when it is found. The other
// kinds also arise while a change is carried out, and must last.
func isSoon(kind string) bool {
	return kind == v1.DriftStray || kind == v1.DriftNotEnforced || kind == v1.DriftMembership
}

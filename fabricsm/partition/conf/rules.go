package conf

import (
	"fmt"

	"portcullis/fabricsm/ib"
)

// Rules are the rules of a file beyond the defaults. By default every port is a limited, and the Subnet Manager a full
// member of the default partition.
type Rules struct {
	Partitions []Partition // in the order of their first definition, without the default one
	// Groups are the multicast groups of all partitions, in the order of the file.
	Groups []Multicast
	// SLs are the service levels that partitions ask for, by base P_Key; nil: none does.
	SLs map[ib.PKey]ib.SL
	// Notices are remarks on the file, such as settings without effect, a sentence each with file and line, in the
	// order of the file.
	Notices []string
}

// Partition is one partition and its full members.
type Partition struct {
	Name string  // of the first definition; may be empty
	PKey ib.PKey // full
	Who  []Who   // in the order of the file
}

// Who is a set of end ports.
type Who struct {
	Group Group
	GUID  ib.GUID // for OnePort
}

// Group is a kind of Who.
type Group uint8

// Groups of end ports.
const (
	OnePort    Group = iota // the one with a port GUID
	Self                    // the Subnet Manager's own
	AllCAs                  // every port of every CA
	AllRouters              // every port of every router
	allPorts                // rejected
	allSwitches
	nobody
)

// groupOf returns the group with a name in a file.
func groupOf(word string) (Group, bool) {
	switch word {
	case "ALL":
		return allPorts, true
	case "ALL_CAS":
		return AllCAs, true
	case "ALL_ROUTERS":
		return AllRouters, true
	case "ALL_SWITCHES":
		return allSwitches, true
	case "SELF":
		return Self, true
	case "NONE":
		return nobody, true
	default:
		return OnePort, false
	}
}

// membership is how a port belongs to a partition.
type membership uint8

const (
	limited membership = iota
	full
	both
)

func (m membership) String() string { return [...]string{"limited", "full", "both"}[m] }

func membershipOf(word string) (membership, error) {
	switch word {
	case "limited":
		return limited, nil
	case "full":
		return full, nil
	case "both":
		return both, nil
	default:
		return limited, fmt.Errorf("membership %q: want full, limited or both, written out", word)
	}
}

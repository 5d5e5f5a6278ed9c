package sm

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/ib"
)

// Fault is one thing that is wrong now, and where.
type Fault struct {
	Kind  string   // what is wrong, in one word for programs
	GUID  ib.GUID  // node or port it is about, 0 if none
	PKey  ib.PKey  // partition it is about, invalid if none
	Place ib.Place // where it is, zero if nowhere in particular
	Text  string   // a sentence for people
}

// maxFaults bounds how many a view lists.
const maxFaults = 4096

var problemNames = map[problemKind]string{
	deadLink: "link-dead", silentNode: "node-silent", twin: "guid-duplicate", badRoutes: "routes-refused",
	noEnforcement: "no-enforcement", refusedMember: "membership-refused",
	foreignMaster: "foreign-master", rogueMaster: "rogue-master",
}

// faults lists what is wrong, by text, at most maxFaults.
func (c *Core) faults() []Fault {
	if len(c.problems) == 0 {
		return nil
	}
	list := make([]Fault, 0, len(c.problems))
	for k, text := range c.problems {
		list = append(list, Fault{Kind: cmp.Or(problemNames[k.kind], "other"), GUID: k.guid, PKey: k.pkey, Place: k.place, Text: text})
	}
	slices.SortFunc(list, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Text, b.Text), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.GUID, b.GUID),
			cmp.Compare(a.PKey, b.PKey), cmp.Compare(a.Place.Switch, b.Place.Switch), cmp.Compare(a.Place.Port, b.Place.Port))
	})
	return list[:min(len(list), maxFaults)]
}

// texts gives the sentences of the first faults, as many as a view lists.
func texts(faults []Fault) []string {
	if len(faults) == 0 {
		return nil
	}
	list := make([]string, 0, min(len(faults), maxProblems))
	for _, f := range faults[:min(len(faults), maxProblems)] {
		list = append(list, f.Text)
	}
	return list
}

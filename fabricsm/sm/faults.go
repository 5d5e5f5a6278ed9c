package sm

import (
	"cmp"
	"fmt"
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

// Kinds of faults that readers distinguish from others.
const (
	FaultNodeSilent = "node-silent" // the node with the GUID does not answer
	FaultLinkSlow   = "link-slow"   // the link at the place is below what both ends offer
)

// maxFaults bounds how many a view lists.
const maxFaults = 4096

var problemNames = map[problemKind]string{
	deadLink: "link-dead", silentNode: FaultNodeSilent, twin: "guid-duplicate", refusingKey: "m-key-refused", badRoutes: "routes-refused",
	noKey: "no-key", noEnforcement: "no-enforcement", refusedMember: "membership-refused",
	foreignMaster: "foreign-master", rogueMaster: "rogue-master",
	posing: "switch-for-host", tooMany: "too-many-nodes", unhealthy: "unhealthy", slowLink: FaultLinkSlow, refusedAlias: "alias-refused",
	rivalMaster: "rival-master", disabledSM: "disabled", barred: "lease-ended",
	lawPage: "topology-protected", lawBroken: "topology", lawRefused: "topology-refused", lawMissing: "topology-missing",
	badTrees: "multicast-refused", shortTree: "multicast-cut",
}

// wrong is what views show of the problems. Most views follow no change of them.
type wrong struct {
	stale    bool
	faults   []Fault
	problems []string
}

// showWrong returns the present faults and their texts for a view, which must not write to them.
func (c *Core) showWrong() ([]Fault, []string) {
	if w := &c.wrong; w.stale {
		w.stale, w.faults = false, c.faults()
		w.problems = texts(w.faults, len(c.problems))
	}
	return c.wrong.faults, c.wrong.problems
}

// faults lists what is wrong, the gravest kind first and then by text, at most
// maxFaults.
func (c *Core) faults() []Fault {
	if len(c.problems) == 0 {
		return nil
	}
	type problem struct {
		key  problemKey
		text string
	}
	all := make([]problem, 0, len(c.problems))
	for k, text := range c.problems {
		all = append(all, problem{k, text})
	}
	slices.SortFunc(all, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.key.kind, b.key.kind), cmp.Compare(a.text, b.text), cmp.Compare(a.key.guid, b.key.guid),
			cmp.Compare(a.key.pkey, b.key.pkey), cmp.Compare(a.key.place.Switch, b.key.place.Switch),
			cmp.Compare(a.key.place.Port, b.key.place.Port))
	})
	list := make([]Fault, 0, min(len(all), maxFaults))
	for _, p := range all[:min(len(all), maxFaults)] {
		k := p.key
		list = append(list, Fault{Kind: cmp.Or(problemNames[k.kind], "other"), GUID: k.guid, PKey: k.pkey, Place: k.place, Text: p.text})
	}
	return list
}

// texts returns the sentences of the first faults, as many as a view lists, and says how many more there are.
func texts(faults []Fault, all int) []string {
	if len(faults) == 0 {
		return nil
	}
	list := make([]string, 0, min(len(faults), maxProblems+1))
	for _, f := range faults[:min(len(faults), maxProblems)] {
		list = append(list, f.Text)
	}
	if more := all - len(list); more > 0 {
		list = append(list, fmt.Sprintf("and %d more problems, none graver than the last", more))
	}
	return list
}

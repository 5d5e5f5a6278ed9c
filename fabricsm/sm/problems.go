package sm

import "portcullis/fabricsm/ib"

// problemKey names one thing that is wrong for as long as it is.
type problemKey struct {
	kind  problemKind
	guid  ib.GUID
	pkey  ib.PKey
	place ib.Place
	mlid  ib.LID
}

// problemKind is what is wrong, the gravest first: views list them in this
// order.
type problemKind uint8

const (
	lawPage       problemKind = iota // the declared topology is violated where nothing can be switched off
	rogueMaster                      // another SM says that it is master
	rivalMaster                      // a trusted master of lower rank does not hand over
	disabledSM                       // another SM disabled this one
	barred                           // the owner may not change the fabric
	lawRefused                       // a declared topology that cannot be enforced
	lawBroken                        // something is not where the declared topology has it
	refusingKey                      // an adapter whose host gave it another M_Key
	twin                             // two places show one GUID
	posing                           // a switch where a host belongs
	tooMany                          // an endless fabric behind one cable
	refusedMember                    // a grant that is not honoured
	refusedAlias                     // an alias GUID that is not given
	noKey                            // a device without the M_Key it should have
	noEnforcement                    // a switch that checks no P_Keys
	foreignMaster                    // we stand by
	badRoutes                        // an engine was passed over
	badTrees                         // multicast cannot be routed safely
	shortTree                        // members that a multicast tree does not reach
	unhealthy                        // a port or switch that misbehaves
	silentNode                       // a node does not answer
	deadLink                         // nothing answers at the end of a link
	lawMissing                       // a declared link is not there
	slowLink                         // a link below what it is enabled for
)

// problem tells of something wrong, once, and keeps it in the views until it is
// solved.
func (c *Core) problem(k problemKey, e Event) {
	text := e.String()
	if c.problems[k] == text {
		return
	}
	c.stands(k, text)
	c.event(e)
}

// stands puts something wrong into the views.
func (c *Core) stands(k problemKey, text string) {
	c.problems[k] = text
	c.wrong.stale = true
}

func (c *Core) solved(k problemKey) {
	if _, ok := c.problems[k]; ok {
		delete(c.problems, k)
		c.wrong.stale = true
	}
}

// maxProblems bounds how many a view lists.
const maxProblems = 100

package sm

import "portcullis/fabricsm/ib"

// problemKey names one thing that is wrong for as long as it is.
type problemKey struct {
	kind  problemKind
	guid  ib.GUID
	pkey  ib.PKey
	place ib.Place
}

type problemKind uint8

const (
	deadLink problemKind = iota
	silentNode
	twin
	badRoutes
	noEnforcement
	refusedMember
	foreignMaster
	rogueMaster
)

// problem tells of something wrong, once, and keeps it in the views until it is
// solved.
func (c *Core) problem(k problemKey, e Event) {
	text := e.String()
	if c.problems[k] == text {
		return
	}
	c.problems[k] = text
	c.event(e)
}

func (c *Core) solved(k problemKey) {
	if len(c.problems) > 0 {
		delete(c.problems, k)
	}
}

// maxProblems bounds how many a view lists.
const maxProblems = 100

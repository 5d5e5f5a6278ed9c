package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/topo"
)

// Mandate says whether the owner may change the fabric now. Several instances of a service share a fabric, and a lease
// outside of it decides which of them may. A core that never receives a Mandate has it permanently.
//
// Without it the core sends no Set. It reads on, answers, and keeps its picture of the fabric. It reports to other subnet
// managers that it is not active, and none of them can hand the fabric over to it. With it again, it reads all that may
// have been changed before it writes.
type Mandate struct {
	Held bool
}

func (*Mandate) input() {}

// setMandate takes whether the owner may change the fabric.
func (c *Core) setMandate(in *Mandate) {
	if in.Held == !c.self.Barred {
		return
	}
	c.self.Barred = !in.Held
	c.disturb()
	if c.self.Barred {
		clear(c.election.commands)
		c.problem(fault.Key{Kind: fault.LeaseEnded}, &StateChanged{
			State: c.self.Shown(), Reason: "the lease of this instance may have run out: it reads and answers, and changes nothing until the store answers",
		})
		return
	}
	c.faults.Clear(fault.Key{Kind: fault.LeaseEnded})
	if c.self.State == ib.SMMaster || c.election.waitFor != topo.None {
		c.retake(true, "the lease of this instance holds again")
	}
}

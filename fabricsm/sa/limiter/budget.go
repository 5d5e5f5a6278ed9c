package limiter

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
)

// WorkConfig limits the cost of requests, in steps. A step is about as much work as a look at one record.
type WorkConfig struct {
	// PerRequest is how many steps one untrusted request may take; 0: no limit.
	PerRequest int `yaml:"per_request"`
	// Node is how many steps all questions of a node may take.
	Node Allowance `yaml:"node"`
}

func (c *WorkConfig) check() error {
	if c.PerRequest < 0 {
		return fmt.Errorf("limiter: steps of a request %d: want 1 or more, or 0 for no limit", c.PerRequest)
	}
	return c.Node.check("steps of a node", 1)
}

// Work assigns budgets to requests.
type Work struct {
	per   int64
	cost  int64 // of a step of a node in nanoseconds times scale; 0: no limit
	room  int64
	clock clock
	nodes [slots]int64
}

// scale makes the cost of a step, which may be some nanoseconds, precise.
const scale = 8

// NewWork makes it of a configuration that was checked.
func NewWork(c WorkConfig) (*Work, error) {
	w := new(Work)
	if err := w.Configure(c); err != nil {
		return nil, err
	}
	return w, nil
}

// Configure changes the budgets from now on. The spent steps of all nodes are forgotten. After an error nothing changes.
func (w *Work) Configure(c WorkConfig) error {
	if err := c.check(); err != nil {
		return err
	}
	w.per, w.cost, w.room = int64(c.PerRequest), 0, 0
	if r := int64(c.Node.Rate); r != 0 {
		w.cost = (int64(time.Second)*scale + r - 1) / r
		w.room = w.cost * int64(c.Node.Burst)
	}
	clear(w.nodes[:])
	return nil
}

// Budget is the remaining cost limit of one request.
type Budget struct {
	left, spent int64
}

// Spend takes steps. It returns false if not enough are left; then the request is too large.
func (b *Budget) Spend(steps int) bool {
	if int64(steps) > b.left {
		return false
	}
	b.left -= int64(steps)
	b.spent += int64(steps)
	return true
}

// Owe takes steps that were taken already, though there may not be as many left.
func (b *Budget) Owe(steps int) {
	b.left -= int64(steps)
	b.spent += int64(steps)
}

// Afford is Owe, and reports whether there were enough.
func (b *Budget) Afford(steps int) bool {
	b.Owe(steps)
	return b.left >= 0
}

// Spent is how many steps were taken.
func (b *Budget) Spent() int { return int(b.spent) }

// unlimited is more than any request takes.
const unlimited = 1 << 62

// Begin returns the budget of an untrusted request of a node, named by its base LID. It returns false if the node has none
// left.
func (w *Work) Begin(now time.Time, base ib.LID) (Budget, bool) {
	b := Budget{left: unlimited}
	if w.per > 0 {
		b.left = w.per
	}
	if w.cost != 0 {
		at := w.clock.read(now) * scale
		owes := max(w.nodes[slotOf(base)]-at, 0)
		b.left = min(b.left, (w.room-owes)/w.cost)
	}
	return b, b.left > 0
}

// Trusted returns the budget of a request that showed the SA_Key.
func (w *Work) Trusted() Budget { return Budget{left: unlimited} }

// End charges the cost of a request of Begin.
func (w *Work) End(now time.Time, base ib.LID, b Budget) {
	if w.cost == 0 {
		return
	}
	slot, at := slotOf(base), w.clock.read(now)*scale
	w.nodes[slot] = max(w.nodes[slot], at) + b.spent*w.cost
}

// Again charges the cost so far of a request of Begin, and limits its budget to the remaining budget of its node. It
// returns false if nothing is left.
func (w *Work) Again(now time.Time, base ib.LID, b *Budget) bool {
	w.End(now, base, *b)
	if b.spent = 0; w.cost != 0 {
		owes := max(w.nodes[slotOf(base)]-w.clock.read(now)*scale, 0)
		b.left = min(b.left, (w.room-owes)/w.cost)
	}
	return b.left > 0
}

func slotOf(base ib.LID) int {
	if base >= lids {
		return noNode
	}
	return int(base)
}

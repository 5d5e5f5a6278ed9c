package route

import (
	"errors"
	"fmt"

	"portcullis/fabricsm/topo"
)

// Engine plans routes. Route is pure: equal arguments lead to equal tables. prev may be nil; routes in it that are still
// right by the engine's own rules should stay, so that a lost link moves only the paths that used it.
type Engine interface {
	Name() string
	Route(f *topo.Fabric, prev *Tables) (*Tables, error)
}

// Retrier is an engine that knows another way to route when its tables have a
// credit loop, as those made of tables before them can have. It is asked once.
type Retrier interface {
	Again(f *topo.Fabric, prev *Tables) (*Tables, error)
}

// Choice is the outcome of [First].
type Choice struct {
	Tables *Tables
	Report Report
	// Refused has one error for each engine that was tried before and did not return acceptable tables. The caller must
	// report it.
	Refused []error
}

// First returns the tables of the first engine in the list whose tables pass [Check], and why each engine before it was
// rejected. If no tables pass, the error has the reasons of all.
func First(f *topo.Fabric, prev *Tables, engines ...Engine) (Choice, error) {
	var c Choice
	for _, e := range engines {
		if err := c.ask(f, prev, e); err != nil {
			c.Refused = append(c.Refused, fmt.Errorf("routing engine %s: %w", e.Name(), err))
			continue
		}
		return c, nil
	}
	if len(c.Refused) == 0 {
		return c, errors.New("route: no routing engine is configured")
	}
	return c, errors.Join(c.Refused...)
}

// ask runs one engine and checks its tables.
func (c *Choice) ask(f *topo.Fabric, prev *Tables, e Engine) error {
	t, err := e.Route(f, prev)
	if err != nil {
		return err
	}
	var p *proof
	c.Report, p = checkNext(f, t, prev)
	if again, ok := e.(Retrier); ok && c.Report.CreditLoop != nil {
		if t, err = again.Again(f, prev); err != nil {
			return err
		}
		c.Report, p = checkNext(f, t, prev)
	}
	if err := c.Report.Err(); err != nil {
		return err
	}
	t.proof, t.checked = p, true
	c.Tables = t
	return nil
}

// checkNext judges tables by what differs from prev, if that will do, or else as
// a whole.
func checkNext(f *topo.Fabric, t, prev *Tables) (Report, *proof) {
	if r, p, ok := checkChange(f, t, prev); ok {
		return r, p
	}
	return check(f, t, t.manyLanes())
}

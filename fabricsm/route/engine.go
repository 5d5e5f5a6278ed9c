package route

import (
	"errors"
	"fmt"

	"portcullis/fabricsm/topo"
)

// Engine plans routes. Route is pure: equal arguments give equal tables. prev
// may be nil; routes in it that are still right by the engine's own rules
// should stay, so that a lost link moves only the paths that used it.
type Engine interface {
	Name() string
	Route(f *topo.Fabric, prev *Tables) (*Tables, error)
}

// Choice is the outcome of [First].
type Choice struct {
	Tables *Tables
	Report Report
	// Refused has one error for each engine that was tried before and did not
	// give acceptable tables. The caller must make it seen.
	Refused []error
}

// First gives the tables of the first engine in the list whose tables pass
// [Check], and why each engine before it was passed over. If none passes the
// error has the reasons of all.
func First(f *topo.Fabric, prev *Tables, engines ...Engine) (Choice, error) {
	var c Choice
	for _, e := range engines {
		t, err := e.Route(f, prev)
		if err != nil {
			c.Refused = append(c.Refused, fmt.Errorf("routing engine %s: %w", e.Name(), err))
			continue
		}
		c.Report = Check(f, t)
		if err := c.Report.Err(); err != nil {
			c.Refused = append(c.Refused, fmt.Errorf("routing engine %s: %w", e.Name(), err))
			continue
		}
		c.Tables = t
		return c, nil
	}
	if len(c.Refused) == 0 {
		return c, errors.New("route: no routing engine is configured")
	}
	return c, errors.Join(c.Refused...)
}

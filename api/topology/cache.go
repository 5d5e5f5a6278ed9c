package topology

import (
	"slices"
	"sync"

	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/history"
)

// cached is how many contents are kept ready: that in force, the one before, and two
// that people look at.
const cached = 4

// cache keeps the contents that were used last.
type cache struct {
	mu    sync.Mutex
	specs []*topospec.Spec // the one used last comes last
}

// get returns the content of an entry, nil if it is not there.
func (c *cache) get(e *history.Entry) *topospec.Spec {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.specs, func(s *topospec.Spec) bool { return e.Check(s) == nil })
	if i < 0 {
		return nil
	}
	s := c.specs[i]
	c.specs = append(slices.Delete(c.specs, i, i+1), s)
	return s
}

func (c *cache) put(s *topospec.Spec) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.specs) == cached {
		c.specs = slices.Delete(c.specs, 0, 1)
	}
	c.specs = append(c.specs, s)
}

package route

import "slices"

// Waits is which links between switches the unicast routes of one virtual lane use right after which: whose buffers may
// wait for whose. Other routes that share the lane must not close a cycle with it. It is read-only.
type Waits struct{ deps *dependencies }

// Graph returns the graph whose edges Each numbers.
func (w Waits) Graph() *Graph { return w.deps.g }

// Each calls visit for every edge that some route uses right after edge e, in
// order.
func (w Waits) Each(e int32, visit func(next int32)) { w.deps.each(e, visit) }

// Equal reports whether two graphs of the same fabric have the same cycles and all else.
func (w Waits) Equal(o Waits) bool { return slices.Equal(w.deps.bits, o.deps.bits) }

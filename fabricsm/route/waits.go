package route

import "portcullis/fabricsm/ib"

// Waits is which links between switches the unicast routes of one virtual lane
// use right after which: whose buffers may wait for whose. Whatever else is to
// share the lane must not close a circle with it. It is read-only.
type Waits struct{ deps *dependencies }

// Waits gives what [Check] found on a lane, and whether it looked at that
// lane: it does so for all layers of tables that have no fault.
func (r *Report) Waits(lane ib.VL) (Waits, bool) {
	if int(lane) >= len(r.waits) {
		return Waits{}, false
	}
	return r.waits[lane], true
}

// Graph gives the graph whose edges Each numbers.
func (w Waits) Graph() *Graph { return w.deps.g }

// Each calls visit for every edge that some route uses right after edge e, in
// order.
func (w Waits) Each(e int32, visit func(next int32)) { w.deps.each(e, visit) }

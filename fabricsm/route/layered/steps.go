package layered

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
)

// fill removes all pairs from a layer, puts back every pair that closes no cycle, and moves the rest to the next layer.
// Pairs with CAs on both sides come first. It returns how many stayed and how many moved.
func (d *dealer) fill(layer uint8) (stayed, moved int) {
	clear(d.count)
	clear(d.shut)
	d.order.reset()
	for _, first := range []bool{true, false} {
		for a := range int32(len(d.g.IDs)) {
			for b := range a {
				p, busy := pair(a, b), d.g.Hosts[a] > 0 && d.g.Hosts[b] > 0
				switch {
				case busy != first || d.layer[p] != layer:
				case d.put(a, b):
					stayed++
				default:
					d.layer[p]++
					moved++
				}
			}
		}
	}
	return stayed, moved
}

// distinct returns the LIDs behind a switch without those that have the same routes as one before. LIDs of CAs come before
// those of the switch, to which fewer senders send.
func (d *dealer) distinct(home int32) []route.Target {
	var targets []route.Target
	for _, t := range d.g.Targets[home] {
		if !slices.ContainsFunc(targets, func(o route.Target) bool { return d.alike(home, t.LID, o.LID) }) {
			targets = append(targets, t)
		}
	}
	return targets
}

// alike reports whether all switches but their home send two LIDs the same way.
func (d *dealer) alike(home int32, a, b ib.LID) bool {
	for s, row := range d.rows {
		if row[a] != row[b] && int32(s) != home {
			return false
		}
	}
	return true
}

// put adds all routes between two switches to the present layer if no cycle closes then, and reports whether it did.
func (d *dealer) put(a, b int32) bool {
	if !d.each(a, b, d.open) {
		return false
	}
	d.added = d.added[:0]
	if d.each(a, b, d.add) {
		return true
	}
	for _, step := range d.added {
		d.count[step]--
	}
	// The step that did not go is shut for the rest of the layer, unless only
	// the other routes of this pair were in its way.
	if !d.order.after(d.failed.e, d.failed.after) {
		d.shut[d.step(d.failed.e, d.failed.after)] = true
	}
	return false
}

// each visits the steps of all routes between two switches, as long as visit
// says so, and reports whether it always did.
func (d *dealer) each(a, b int32, visit func(e, after int32) bool) bool {
	return d.eachOneWay(a, b, visit) && d.eachOneWay(b, a, visit)
}

func (d *dealer) eachOneWay(from, home int32, visit func(e, after int32) bool) bool {
	for _, target := range d.targets[home] {
		if d.sends(from, target) && !d.follow(from, target.LID, visit) {
			return false
		}
	}
	return true
}

// open reports whether a step may be made.
func (d *dealer) open(e, after int32) bool { return !d.shut[d.step(e, after)] }

// add counts a step, unless it closes a cycle.
func (d *dealer) add(e, after int32) bool {
	step := d.step(e, after)
	if d.count[step] == 0 && !d.order.after(e, after) {
		d.failed.e, d.failed.after = e, after
		return false
	}
	d.count[step]++
	d.added = append(d.added, step)
	return true
}

// sends reports whether a switch, or a host behind it, may send data to a LID: switches send none to each other.
func (d *dealer) sends(from int32, target route.Target) bool {
	return target.Out != 0 || d.g.Hosts[from] > 0
}

// follow visits the steps of a route. Routes are known to be free of loops.
func (d *dealer) follow(s int32, lid ib.LID, visit func(e, after int32) bool) bool {
	for e := d.next(s, lid); e >= 0; {
		after := d.next(d.g.To[e], lid)
		if after < 0 {
			break
		}
		if !visit(e, after) {
			return false
		}
		e = after
	}
	return true
}

func (d *dealer) step(e, next int32) int32 { return d.first[e] + next - d.g.Row[d.g.To[e]] }

// next returns the edge by which a switch sends to a LID, -1 for none.
func (d *dealer) next(s int32, lid ib.LID) int32 { return d.g.EdgeAt(s, d.rows[s][lid]) }

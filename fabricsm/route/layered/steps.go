package layered

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
)

// fill takes what is in a layer out, puts back every pair that closes no
// circle, and moves the rest to the next layer. Pairs with CAs on both sides
// come first.
func (d *dealer) fill(layer uint8) {
	clear(d.count)
	d.order.reset()
	for _, first := range []bool{true, false} {
		for a := range int32(len(d.g.IDs)) {
			for b := range a {
				p, busy := pair(a, b), d.g.Hosts[a] > 0 && d.g.Hosts[b] > 0
				if busy == first && d.layer[p] == layer && !d.put(a, b) {
					d.layer[p]++
				}
			}
		}
	}
}

// put adds all routes between two switches to the layer in hand if no circle
// closes then, and reports whether it did.
func (d *dealer) put(a, b int32) bool {
	d.added = d.added[:0]
	if d.putOneWay(a, b) && d.putOneWay(b, a) {
		return true
	}
	for _, step := range d.added {
		d.count[step]--
	}
	return false
}

func (d *dealer) putOneWay(from, home int32) bool {
	for _, target := range d.g.Targets[home] {
		if d.sends(from, target) && !d.follow(from, target.LID) {
			return false
		}
	}
	return true
}

// sends reports whether a switch, or what is behind it, may send data to a
// LID: switches send none to each other.
func (d *dealer) sends(from int32, target route.Target) bool {
	return target.Out != 0 || d.g.Hosts[from] > 0
}

// follow counts the steps of a route, until one closes a circle. Routes are
// known to be free of loops.
func (d *dealer) follow(s int32, lid ib.LID) bool {
	for e := d.next(s, lid); e >= 0; {
		after := d.next(d.g.To[e], lid)
		if after < 0 {
			break
		}
		step := d.step(e, after)
		if d.count[step] == 0 && !d.order.after(e, after) {
			return false
		}
		d.count[step]++
		d.added = append(d.added, step)
		e = after
	}
	return true
}

func (d *dealer) step(e, next int32) int32 { return d.first[e] + next - d.g.Row[d.g.To[e]] }

// next gives the edge by which a switch sends to a LID, -1 for none.
func (d *dealer) next(s int32, lid ib.LID) int32 { return d.g.EdgeAt(s, d.rows[s][lid]) }

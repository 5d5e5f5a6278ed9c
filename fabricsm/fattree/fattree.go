// Package fattree computes how many switches a fat tree has, and which of their ports lead up. Half of the ports of a switch
// lead down and half up, and there are as few switches above as carry all cables up, with equally many cables to each.
//
// It is for simulated fabrics, designs and tests alike, and knows nothing of nodes.
package fattree

import (
	"errors"
	"iter"
)

// ErrTooMany means that hosts, or leaves, do not fit below so few levels of switches.
var ErrTooMany = errors.New("too many for switches with so few ports and levels")

// CeilDiv returns a divided by b, rounded up.
func CeilDiv(a, b int) int { return (a + b - 1) / b }

// Fewest returns the smallest number of switches above that fit: each of the switches below has up ports that lead up,
// equally many to each switch above, which has room ports. It returns 0 where none fits.
func Fewest(up, below, room int) int {
	for n := 1; n <= up; n++ {
		if up%n == 0 && below*(up/n) <= room {
			return n
		}
	}
	return 0
}

// Uplinks yields the ports of a switch with radix ports that lead up, each with the number, from 0, of the switch above to
// which its cable leads. There are equally many to each, so that a few ports are left over where above does not divide radix/2.
func Uplinks(radix, above int) iter.Seq2[int, int] {
	half := radix / 2
	cables := half / above
	return func(yield func(port, to int) bool) {
		for i := range above * cables {
			if !yield(half+1+i, i/cables) {
				return
			}
		}
	}
}

// Two is a tree of leaves below spines.
type Two struct {
	Radix, Leaves, Spines int
}

// TwoLevels returns the smallest tree of two levels with room for hosts.
func TwoLevels(hosts, radix int) (Two, error) {
	t := Two{Radix: radix, Leaves: CeilDiv(hosts, radix/2)}
	if t.Spines = Fewest(radix/2, t.Leaves, radix); t.Spines == 0 {
		return Two{}, ErrTooMany
	}
	return t, nil
}

// Three is a tree of pods, each of up to radix/2 leaves below radix/2 aggregation switches. Aggregation switch g of every
// pod has cables to the cores of group g, of which there are radix/2.
type Three struct {
	Radix, Leaves, Pods int
	Cores               int // of a group
}

// ThreeLevels returns the smallest tree of three levels with room for hosts.
func ThreeLevels(hosts, radix int) (Three, error) {
	t := Three{Radix: radix, Leaves: CeilDiv(hosts, radix/2)}
	t.Pods = CeilDiv(t.Leaves, radix/2)
	if t.Cores = Fewest(radix/2, t.Pods, radix); t.Cores == 0 {
		return Three{}, ErrTooMany
	}
	return t, nil
}

// Half returns how many ports of a switch lead down, which is also how many aggregation switches a pod has, and how many
// groups of cores there are.
func (t Three) Half() int { return t.Radix / 2 }

// LeavesOf returns how many leaves a pod has, which is numbered from 0. The last one may have fewer than the others.
func (t Three) LeavesOf(pod int) int { return min(t.Half(), t.Leaves-pod*t.Half()) }

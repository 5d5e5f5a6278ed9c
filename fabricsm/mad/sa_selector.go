package mad

import (
	"cmp"
	"fmt"

	"portcullis/fabricsm/ib"
)

// Selector says how a value of a request is compared: MTU, rate and packet lifetime of paths and groups have one (IBTA
// volume 1, 15.2.5.16). It counts only if the component mask selects both the selector and the value.
type Selector uint8

// Selectors.
const (
	SelectGreater Selector = 0
	SelectLess    Selector = 1
	SelectExactly Selector = 2 // in every answer
	SelectBest    Selector = 3 // the largest MTU or rate, the smallest lifetime
)

// String names the selector.
func (s Selector) String() string {
	switch s {
	case SelectGreater:
		return "greater than"
	case SelectLess:
		return "less than"
	case SelectExactly:
		return "exactly"
	case SelectBest:
		return "best"
	default:
		return fmt.Sprintf("Selector(%d)", uint8(s))
	}
}

// MTU reports whether have is what s and asked ask for. SelectBest takes any.
func (s Selector) MTU(asked, have ib.MTU) bool { return s.takes(cmp.Compare(have, asked)) }

// Rate reports the same for rates, in the order of their speed. An unknown code is slower than all others.
func (s Selector) Rate(asked, have ib.Rate) bool { return s.takes(have.Compare(asked)) }

// PacketLifeTime reports the same for lifetimes.
func (s Selector) PacketLifeTime(asked, have ib.ExpTime) bool {
	return s.takes(cmp.Compare(have, asked))
}

// takes judges by how the value at hand compares with the one asked for.
func (s Selector) takes(order int) bool {
	switch s {
	case SelectGreater:
		return order > 0
	case SelectLess:
		return order < 0
	case SelectExactly:
		return order == 0
	default:
		return true
	}
}

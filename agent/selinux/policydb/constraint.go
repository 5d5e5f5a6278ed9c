package policydb

import "errors"

// constraint is a condition on permissions, as a postfix expression.
type constraint struct {
	permissions uint32
	expression  []node
}

type node struct {
	kind, attribute, operator uint32
	names                     set // numbers of types, users or roles, less one
}

// Kinds of nodes.
const (
	nodeNot = iota + 1
	nodeAnd
	nodeOr
	nodeAttribute
	nodeNames
)

// Operands that a node compares.
const (
	compareType   = 4
	compareTarget = 8 // with the target's, not the source's
	compareL1L2   = 32
	compareL1H2   = 64
	compareH1L2   = 128
	compareH1H2   = 256
	compareL1H1   = 512
	compareL2H2   = 1024
)

// Operators.
const (
	opEqual = iota + 1
	opNotEqual
	opDominates
	opDominated
	opIncomparable
)

func (r *reader) constraint() constraint {
	c := constraint{permissions: r.u32()}
	r.each(func() {
		n := node{kind: r.u32(), attribute: r.u32(), operator: r.u32()}
		if n.kind == nodeNames {
			n.names = r.bitmap()
			r.bitmap() // the names as they were written: types, those left out, flags
			r.bitmap()
			r.skip(1)
		}
		c.expression = append(c.expression, n)
	})
	return c
}

var errConstraint = errors.New("a constraint on users, roles or types alike cannot be judged here")

// holds evaluates a constraint for a process and an object of one level each.
func (c constraint) holds(source, target uint32, process, object level) (bool, error) {
	var stack []bool
	pop := func() (b bool) {
		if n := len(stack); n > 0 {
			b, stack = stack[n-1], stack[:n-1]
		}
		return b
	}
	for _, n := range c.expression {
		switch n.kind {
		case nodeNot:
			stack = append(stack, !pop())
		case nodeAnd:
			a, b := pop(), pop()
			stack = append(stack, a && b)
		case nodeOr:
			a, b := pop(), pop()
			stack = append(stack, a || b)
		case nodeAttribute:
			b, ok := compareLevels(n, process, object)
			if !ok {
				return false, errConstraint
			}
			stack = append(stack, b)
		case nodeNames:
			who := source
			if n.attribute&compareTarget != 0 {
				who = target
			}
			if n.attribute&^compareTarget != compareType || n.operator != opEqual && n.operator != opNotEqual {
				return false, errConstraint
			}
			stack = append(stack, n.names.has(who-1) == (n.operator == opEqual))
		default:
			return false, errConstraint
		}
	}
	if len(stack) != 1 {
		return false, errConstraint
	}
	return stack[0], nil
}

// compareLevels compares levels; process and object have one each.
func compareLevels(n node, process, object level) (result, ok bool) {
	a, b := process, object
	switch n.attribute {
	case compareL1L2, compareL1H2, compareH1L2, compareH1H2:
	case compareL1H1:
		b = process
	case compareL2H2:
		a = object
	default:
		return false, false
	}
	switch n.operator {
	case opEqual:
		return a.equal(b), true
	case opNotEqual:
		return !a.equal(b), true
	case opDominates:
		return a.dominates(b), true
	case opDominated:
		return b.dominates(a), true
	case opIncomparable:
		return !a.dominates(b) && !b.dominates(a), true
	}
	return false, false
}

package registry

import "iter"

// Map is an immutable ordered map: With and Without return another map that shares all but a path with it. So a snapshot is
// a copy of the Map, and a change costs the logarithm of the size. It is balanced by the sizes of its parts, so no choice
// of keys makes it slow. The zero Map is not ready: use NewMap.
type Map[K, V any] struct {
	compare func(K, K) int
	root    *branch[K, V]
}

type branch[K, V any] struct {
	key         K
	value       V
	left, right *branch[K, V]
	size        int
}

// NewMap creates an empty map in the order of compare.
func NewMap[K, V any](compare func(K, K) int) Map[K, V] { return Map[K, V]{compare: compare} }

// Len is the number of keys.
func (m Map[K, V]) Len() int { return m.root.len() }

// Get returns the value of a key, or the zero value if there is none. It always walks down to a leaf, so the response time
// does not show whether a key exists.
func (m Map[K, V]) Get(k K) (v V, ok bool) {
	var at *branch[K, V]
	for b := m.root; b != nil; {
		c := m.compare(k, b.key)
		if c == 0 {
			at = b
		}
		if c < 0 {
			b = b.left
		} else {
			b = b.right
		}
	}
	if at == nil {
		return v, false
	}
	return at.value, true
}

// First returns the lowest key.
func (m Map[K, V]) First() (k K, v V, ok bool) {
	if m.root == nil {
		return k, v, false
	}
	b := m.root.first()
	return b.key, b.value, true
}

// After returns the lowest key above k, which need not be in the map.
func (m Map[K, V]) After(k K) (key K, v V, ok bool) {
	var next *branch[K, V]
	for b := m.root; b != nil; {
		if m.compare(k, b.key) < 0 {
			next, b = b, b.left
		} else {
			b = b.right
		}
	}
	if next == nil {
		return key, v, false
	}
	return next.key, next.value, true
}

// Above visits the keys above k, which need not be in the map, lowest first. To begin costs
// the logarithm of the size. The map may be replaced meanwhile.
func (m Map[K, V]) Above(k K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { m.above(m.root, k, yield) }
}

// All visits all keys, lowest first. The map may be replaced meanwhile.
func (m Map[K, V]) All(yield func(K, V) bool) { m.root.all(yield) }

// With returns the map with a value for a key.
func (m Map[K, V]) With(k K, v V) Map[K, V] {
	m.root = m.insert(m.root, k, v)
	return m
}

// Without returns the map without a key.
func (m Map[K, V]) Without(k K) Map[K, V] {
	if _, ok := m.Get(k); ok {
		m.root = m.remove(m.root, k)
	}
	return m
}

func (m Map[K, V]) insert(b *branch[K, V], k K, v V) *branch[K, V] {
	if b == nil {
		return join(k, v, nil, nil)
	}
	switch c := m.compare(k, b.key); {
	case c < 0:
		return balance(b.key, b.value, m.insert(b.left, k, v), b.right)
	case c > 0:
		return balance(b.key, b.value, b.left, m.insert(b.right, k, v))
	default:
		return join(k, v, b.left, b.right)
	}
}

// remove takes out a key that is there.
func (m Map[K, V]) remove(b *branch[K, V], k K) *branch[K, V] {
	switch c := m.compare(k, b.key); {
	case c < 0:
		return balance(b.key, b.value, m.remove(b.left, k), b.right)
	case c > 0:
		return balance(b.key, b.value, b.left, m.remove(b.right, k))
	case b.left == nil:
		return b.right
	case b.right == nil:
		return b.left
	default:
		next := b.right.first()
		return balance(next.key, next.value, b.left, b.right.withoutFirst())
	}
}

func (m Map[K, V]) above(b *branch[K, V], k K, yield func(K, V) bool) bool {
	switch {
	case b == nil:
		return true
	case m.compare(b.key, k) <= 0:
		return m.above(b.right, k, yield)
	default:
		return m.above(b.left, k, yield) && yield(b.key, b.value) && b.right.all(yield)
	}
}

func (b *branch[K, V]) len() int {
	if b == nil {
		return 0
	}
	return b.size
}

func (b *branch[K, V]) first() *branch[K, V] {
	for b.left != nil {
		b = b.left
	}
	return b
}

func (b *branch[K, V]) withoutFirst() *branch[K, V] {
	if b.left == nil {
		return b.right
	}
	return balance(b.key, b.value, b.left.withoutFirst(), b.right)
}

func (b *branch[K, V]) all(yield func(K, V) bool) bool {
	return b == nil || b.left.all(yield) && yield(b.key, b.value) && b.right.all(yield)
}

func join[K, V any](k K, v V, left, right *branch[K, V]) *branch[K, V] {
	return &branch[K, V]{key: k, value: v, left: left, right: right, size: 1 + left.len() + right.len()}
}

// A part may be this many times as large as its sibling, and an inner part this many
// times as large as an outer one: the numbers for which one rotation always suffices
// (Hirai and Yamamoto, "Balancing weight-balanced trees", 2011).
const (
	outerWeight = 3
	innerWeight = 2
)

// balance joins two parts of which one may have got a key too many or too few.
func balance[K, V any](k K, v V, left, right *branch[K, V]) *branch[K, V] {
	l, r := left.len()+1, right.len()+1
	switch {
	case r > outerWeight*l:
		if right.left.len()+1 < innerWeight*(right.right.len()+1) {
			return join(right.key, right.value, join(k, v, left, right.left), right.right)
		}
		mid := right.left
		return join(mid.key, mid.value, join(k, v, left, mid.left), join(right.key, right.value, mid.right, right.right))
	case l > outerWeight*r:
		if left.right.len()+1 < innerWeight*(left.left.len()+1) {
			return join(left.key, left.value, left.left, join(k, v, left.right, right))
		}
		mid := left.right
		return join(mid.key, mid.value, join(left.key, left.value, left.left, mid.left), join(k, v, mid.right, right))
	default:
		return join(k, v, left, right)
	}
}

package topo

import (
	"iter"
	"slices"
)

// pageSize is how many values a page holds. A snapshot shares all pages with the
// one before but those that were written between them, so a smaller page makes a
// change cheaper and the directory, which is copied, too, longer.
const (
	pageBits = 7
	pageSize = 1 << pageBits
)

// Pages is an immutable list by id, of nodes or of ports, that shares what did not
// change with others. The zero Pages is empty.
type Pages[T any] struct {
	dir []*[pageSize]T
	n   int
}

// Len returns the number of values.
func (p *Pages[T]) Len() int { return p.n }

// At returns the value under an id below Len.
func (p *Pages[T]) At(i int32) T { return *p.at(i) }

func (p *Pages[T]) at(i int32) *T { return &p.dir[i>>pageBits][i&(pageSize-1)] }

// all visits the values in order; those that visit gets must not be written to.
func all[ID ~int32, T any](p *Pages[T]) iter.Seq2[ID, *T] {
	return func(yield func(ID, *T) bool) {
		for i := range ID(p.n) {
			if !yield(i, p.at(int32(i))) {
				return
			}
		}
	}
}

// OwnPages is a list with snapshots: shared pages are copied before they are written. It belongs to one goroutine. The zero
// OwnPages is empty.
type OwnPages[T any] struct {
	Pages[T]
	own    []uint64 // by page, one bit each: it is in no snapshot
	shared bool     // the directory is in a snapshot, and nothing was written since
}

// Snapshot returns the list as it is now.
func (o *OwnPages[T]) Snapshot() Pages[T] {
	clear(o.own)
	o.shared = true
	return o.Pages
}

// Grow appends zero values until there are n.
func (o *OwnPages[T]) Grow(n int) {
	if n > o.n {
		o.grow(n - o.n)
	}
}

// Set replaces the value under an id below Len.
func (o *OwnPages[T]) Set(i int32, v T) { *o.write(i) = v }

// grow appends n zero values.
func (o *OwnPages[T]) grow(n int) {
	o.ownDir()
	for o.n += n; len(o.dir)*pageSize < o.n; {
		o.dir = append(o.dir, new([pageSize]T))
		o.owns(len(o.dir) - 1)
	}
}

// write returns a value for writing.
func (o *OwnPages[T]) write(i int32) *T {
	page := int(i >> pageBits)
	if w := page / 64; w >= len(o.own) || o.own[w]&(1<<(page%64)) == 0 {
		o.ownDir()
		fresh := *o.dir[page]
		o.dir[page] = &fresh
		o.owns(page)
	}
	return o.at(i)
}

func (o *OwnPages[T]) owns(page int) {
	for page/64 >= len(o.own) {
		o.own = append(o.own, 0)
	}
	o.own[page/64] |= 1 << (page % 64)
}

func (o *OwnPages[T]) ownDir() {
	if o.shared {
		o.dir, o.shared = slices.Clone(o.dir), false
	}
}

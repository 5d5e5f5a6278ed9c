package mcast

// whole reports whether one top is above all switches with hosts.
func (b *groundBuilder) whole(island []int32) bool {
	words := (b.topsOf(island) + 63) / 64
	above := make([]uint64, len(b.pos)*words)
	row := func(s int32) []uint64 { return above[int(s)*words : (int(s)+1)*words] }
	all := make([]uint64, words)
	for i := range all {
		all[i] = ^uint64(0)
	}
	tops := 0
	for _, s := range b.inOrder(island) {
		if b.isTop(s) {
			row(s)[tops/64] |= 1 << (tops % 64)
			tops++
		}
		for e := b.g.Row[s]; e < b.g.Row[s+1]; e++ {
			if b.usable(e) {
				unite(row(s), row(b.g.To[e]))
			}
		}
		if b.g.Hosts[s] > 0 {
			intersect(all, row(s))
		}
	}
	return !isZero(all)
}

func unite(a, b []uint64) {
	for i, w := range b {
		a[i] |= w
	}
}

func intersect(a, b []uint64) {
	for i, w := range b {
		a[i] &= w
	}
}

func isZero(a []uint64) bool {
	for _, w := range a {
		if w != 0 {
			return false
		}
	}
	return true
}

package layered

// balance spreads the pairs of the layers in use over all lanes, so that each carries about the same number of routes, and
// returns how many lanes there are then. A part of a layer has no cycle if the layer has none.
func (d *dealer) balance(used int) int {
	weight := make([]int64, used)
	d.eachPair(func(p int, w int64) { weight[d.layer[p]] += w })
	share := make([]int, used)
	for i := range share {
		share[i] = 1
	}
	for range d.most - used {
		heavy := 0
		for i := range share {
			if weight[i]*int64(share[heavy]) > weight[heavy]*int64(share[i]) {
				heavy = i
			}
		}
		share[heavy]++
	}
	first := make([]int, used)
	for i := 1; i < used; i++ {
		first[i] = first[i-1] + share[i-1]
	}
	carried := make([]int64, d.most)
	d.eachPair(func(p int, w int64) {
		lane := first[d.layer[p]]
		for l := lane; l < first[d.layer[p]]+share[d.layer[p]]; l++ {
			if carried[l] < carried[lane] {
				lane = l
			}
		}
		carried[lane] += w
		d.layer[p] = uint8(lane)
	})
	return d.most
}

// eachPair calls visit for every pair with the number of its routes between
// CAs, and one more so that no pair weighs nothing.
func (d *dealer) eachPair(visit func(p int, weight int64)) {
	for a := range int32(len(d.g.IDs)) {
		for b := range a {
			visit(pair(a, b), 2*d.g.Hosts[a]*d.g.Hosts[b]+1)
		}
	}
}

package topo

import "iter"

// ChangedPorts visits the ports that may differ from those of an older snapshot of the same Builder, nil for none: all that
// lie in a page that was written, or whose node does. It may visit a port twice. Its cost grows with the changes, plus one
// comparison for each page of 128.
func (f *Fabric) ChangedPorts(old *Fabric) iter.Seq[PortID] {
	if old == nil {
		old = &Fabric{}
	}
	return func(yield func(PortID) bool) {
		for page := range f.ports.dir {
			if !f.ports.same(&old.ports, page) && !eachIn(&f.ports, page, func(i int32) bool { return yield(PortID(i)) }) {
				return
			}
		}
		for page := range f.nodes.dir {
			if f.nodes.same(&old.nodes, page) {
				continue
			}
			ok := eachIn(&f.nodes, page, func(i int32) bool {
				n := f.nodes.at(i)
				if int(i) < old.nodes.n && *n == *old.nodes.at(i) {
					return true
				}
				for j := range int(n.NumPorts) + 1 {
					if !yield(n.FirstPort + PortID(j)) {
						return false
					}
				}
				return true
			})
			if !ok {
				return
			}
		}
	}
}

// Changed visits the ids of values that may differ from those of an older snapshot of the same list: all of each page that
// was written since. Its cost grows with the changes, plus one comparison for each page of 128.
func (p *Pages[T]) Changed(old *Pages[T]) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for page := range p.dir {
			grew := p.n != old.n && (page+1)*pageSize > old.n
			if (grew || !p.same(old, page)) && !eachIn(p, page, yield) {
				return
			}
		}
	}
}

// same reports whether two lists share a page. A page that grew was written.
func (p *Pages[T]) same(old *Pages[T], page int) bool {
	return page < len(old.dir) && p.dir[page] == old.dir[page]
}

// eachIn visits the ids of a page until visit says no.
func eachIn[T any](p *Pages[T], page int, visit func(int32) bool) bool {
	for i := page * pageSize; i < min((page+1)*pageSize, p.n); i++ {
		if !visit(int32(i)) {
			return false
		}
	}
	return true
}

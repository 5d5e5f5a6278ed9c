package dor

// States of an edge in the search for circles.
const (
	unseen uint8 = iota
	onPath
	done
)

// visit is an edge on the path of the search and which step is next.
type visit struct{ edge, step int32 }

// circle reports whether edges wait for each other in a circle, if there was
// none before the last pair was added: it then goes through an edge of that
// pair, and the search, depth first, starts from those only.
func (l *layering) circle() bool {
	clear(l.state)
	for _, start := range l.touched {
		if l.state[start] == unseen && l.circleFrom(start) {
			return true
		}
	}
	return false
}

func (l *layering) circleFrom(start int32) bool {
	l.state[start] = onPath
	l.path = append(l.path[:0], visit{start, l.first[start]})
	for len(l.path) > 0 {
		top := &l.path[len(l.path)-1]
		next := l.nextEdge(top)
		if next < 0 {
			l.state[top.edge] = done
			l.path = l.path[:len(l.path)-1]
			continue
		}
		switch l.state[next] {
		case onPath:
			return true
		case unseen:
			l.state[next] = onPath
			l.path = append(l.path, visit{next, l.first[next]})
		}
	}
	return false
}

// nextEdge gives the next edge that some route uses right after the visited
// one, -1 if there is no other.
func (l *layering) nextEdge(v *visit) int32 {
	for v.step < l.first[v.edge+1] {
		step := v.step
		v.step++
		if l.count[step] > 0 {
			return l.g.Row[l.g.To[v.edge]] + step - l.first[v.edge]
		}
	}
	return -1
}

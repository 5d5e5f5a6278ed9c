package keymgr

import "time"

// timer says when an agent must be processed.
type timer struct {
	at time.Duration // since the manager was started
	x  ref
}

// timers is a heap. An entry whose agent has another time by now means nothing.
type timers []timer

func (h timers) less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	if h[i].x.dev != h[j].x.dev {
		return h[i].x.dev < h[j].x.dev
	}
	return h[i].x.class < h[j].x.class
}

func (h *timers) push(t timer) {
	*h = append(*h, t)
	for i := len(*h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.less(i, up) {
			return
		}
		(*h)[i], (*h)[up] = (*h)[up], (*h)[i]
		i = up
	}
}

func (h *timers) pop() timer {
	t, last := (*h)[0], len(*h)-1
	(*h)[0] = (*h)[last]
	*h = (*h)[:last]
	for i := 0; ; {
		least := i
		for _, j := range [2]int{2*i + 1, 2*i + 2} {
			if j < last && h.less(j, least) {
				least = j
			}
		}
		if least == i {
			return t
		}
		(*h)[i], (*h)[least] = (*h)[least], (*h)[i]
		i = least
	}
}

// after schedules an agent for that time at the latest.
func (m *Manager) after(x ref, d time.Duration) {
	_, a, _ := m.at(x)
	at := m.now.Sub(m.born) + d
	if a.due != 0 && a.due <= at {
		return
	}
	a.due = at
	m.timers.push(timer{at, x})
}

// fire processes all agents whose time has come.
func (m *Manager) fire() {
	now := m.now.Sub(m.born)
	for len(m.timers) > 0 && m.timers[0].at <= now {
		t := m.timers.pop()
		if _, a, _ := m.at(t.x); a.due == t.at {
			a.due = 0
			m.due(t.x)
		}
	}
}

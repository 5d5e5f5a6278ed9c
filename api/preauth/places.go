package preauth

import "sync"

// MaxOpen bounds the connections that one source may hold open at once, and its requests
// whose body is on the way: HTTP/2 carries many of these over one connection.
const MaxOpen = 128

// Places bounds how much of something each of many may hold at once, to MaxOpen. The zero Places is empty.
type Places[K comparable] struct {
	mu   sync.Mutex
	held map[K]int
}

// Enter takes a place, and reports whether there was one left for key.
func (p *Places[K]) Enter(key K) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[key] >= MaxOpen {
		return false
	}
	if p.held == nil {
		p.held = map[K]int{}
	}
	p.held[key]++
	return true
}

// Leave frees a place of key.
func (p *Places[K]) Leave(key K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[key]--; p.held[key] == 0 {
		delete(p.held, key)
	}
}

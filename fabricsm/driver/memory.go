package driver

import (
	"slices"
	"sync"

	"portcullis/fabricsm/sm"
)

// Memory is a Store whose facts last as long as it does: for a run that must leave nothing behind. The zero value is empty. Its
// methods may be called from any goroutine.
type Memory struct {
	mu    sync.Mutex
	facts []sm.Fact
}

// Load implements Store.
func (m *Memory) Load() ([]sm.Fact, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.facts), nil
}

// Save implements Store.
func (m *Memory) Save(facts []sm.Fact) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.facts = append(m.facts, facts...)
	return nil
}

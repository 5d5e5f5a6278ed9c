package softhcaserver

import "testing"

// TestRegisteredAndGone: a host that registered an adapter and then went away has registered it.
func TestRegisteredAndGone(t *testing.T) {
	a := &Adapter{registered: make(chan struct{}), done: make(chan struct{})}
	close(a.registered)
	close(a.done)
	for range 100 { // a select chooses at random
		if err := a.Registered(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

package driver

import (
	"errors"
	"fmt"
	"time"

	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// kept is what must be durable before the rest of it is done.
type kept struct {
	facts  []sm.Fact
	send   []transport.Packet
	tell   []sm.Input
	events []sm.Event
}

// loaded is what the store has.
type loaded struct {
	facts []sm.Fact
	err   error
}

// keep makes durable what hosts registered, all that there is at once, and then does what
// waits for that. It does not wait for the core.
func (a *administration) keep() {
	var owed told
	for {
		var tell chan told
		if len(owed.tell)+len(owed.events) > 0 {
			tell = a.told
		}
		var back chan<- loaded // receives the facts of the store, once all is kept
		select {
		case <-a.wake:
		case back = <-a.reload:
		case tell <- owed:
			owed = told{}
			a.owes(&owed)
			continue
		case <-a.ended:
			return
		}
		if !a.awaitLease() {
			return
		}
		a.mu.Lock()
		k := a.keeps
		a.keeps = kept{}
		a.mu.Unlock()
		if facts := a.durable(k.facts); len(facts) > 0 {
			if err := a.save(facts); err != nil {
				a.fail(fmt.Errorf("save what hosts registered: %w", err)) // unless it is ending
				return
			}
		}
		if back != nil {
			facts, err := a.store.Load()
			back <- loaded{facts, err}
		}
		owed.tell, owed.events = append(owed.tell, k.tell...), append(owed.events, k.events...)
		a.owes(&owed)
		if a.barred() {
			k.send = nil // it would confirm what another instance may know otherwise: they ask again
		}
		a.mu.Lock()
		err := a.push(k.send)
		a.mu.Unlock()
		if err != nil {
			a.fail(err)
			return
		}
	}
}

// save makes facts durable. Until the store can take them, requests to register something
// are answered as busy.
func (a *administration) save(facts []sm.Fact) error {
	defer a.full.Store(false)
	for {
		err := a.store.Save(facts)
		if !errors.Is(err, ErrLater) {
			return err
		}
		if !a.full.Swap(true) {
			a.log.Error("what hosts register cannot be saved: they are asked to try again", "error", err)
		}
		select {
		case <-time.After(retrySave):
		case <-a.ended:
			return err
		}
	}
}

// owes records how many inputs and events are still to be passed to the core.
func (a *administration) owes(t *told) {
	a.mu.Lock()
	a.owed = len(t.tell) + len(t.events)
	a.mu.Unlock()
}

// sealer is a store that keeps secrets.
type sealer interface{ Seals() bool }

// durable leaves out facts that the store cannot keep. Without a root for keys there is nothing to seal secrets with, and
// registrations with a key end with the process.
func (a *administration) durable(facts []sm.Fact) []sm.Fact {
	if a.store == nil {
		return nil
	}
	if s, ok := a.store.(sealer); ok && s.Seals() {
		return facts
	}
	kept := facts[:0]
	for _, f := range facts {
		switch {
		case f.Private.IsZero():
			kept = append(kept, f)
		case !a.toldSecrets:
			a.toldSecrets = true
			a.log.Warn("services that were registered with a ServiceKey will have to be registered again after a restart: there is no root to seal the key with (fabric.keys.root)")
		}
	}
	return kept
}

// again replaces the known state by that of the store: the master before kept it there, if it has the same store.
func (a *administration) again() error {
	if a.store == nil {
		return nil
	}
	back := make(chan loaded, 1)
	select {
	case a.reload <- back:
	case <-a.ended:
		return nil
	}
	select {
	case l := <-back:
		if l.err != nil {
			return fmt.Errorf("load what hosts registered: %w", l.err)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.agent.Restore(time.Now(), l.facts, &a.out) // turn does what follows
	case <-a.ended:
		return nil
	}
}

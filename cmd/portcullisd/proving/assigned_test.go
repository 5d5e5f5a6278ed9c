package proving_test

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/proving"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
)

// assign has a port be granted a P_Key, in the store and in the fabric.
func (s *seenSite) assign(host, tenant string, key ib.PKey) {
	s.t.Helper()
	g := s.stage.GrantOf(host, 1, key)
	s.update(func(tx *store.Tx) error { return s.grant(tx, &g, host, tenant) })
	s.manage(func() { s.stage.Grant(g) })
}

// withdraw has it taken away again; the record stays.
func (s *seenSite) withdraw(host, tenant string, key ib.PKey) {
	s.t.Helper()
	g := s.stage.GrantOf(host, 1, key)
	name := records.Key{PKey: g.PKey.Base(), GUID: g.GUID, Place: g.Place}
	s.update(func(tx *store.Tx) error {
		return records.Grants().Put(tx, name.String(), records.Grant{Host: host, Tenant: tenant, Withdrawn: true})
	})
	s.manage(func() { s.stage.Withdraw(g) })
}

// ended removes the record.
func (s *seenSite) ended(host string, key ib.PKey) {
	s.t.Helper()
	g := s.stage.GrantOf(host, 1, key)
	name := records.Key{PKey: g.PKey.Base(), GUID: g.GUID, Place: g.Place}
	s.update(func(tx *store.Tx) error { records.Grants().Delete(tx, name.String()); return nil })
}

func (s *seenSite) update(do func(tx *store.Tx) error) {
	s.t.Helper()
	if _, err := s.store.Update(s.t.Context(), do); err != nil {
		s.t.Fatal(err)
	}
}

// A host that is assigned or released is in the proof as by a proof of everything, at the cost of a few requests and without reading all
// records.
func TestCatchesUpWithAssignments(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		loads := 0
		s := newSeenSite(t, proving.Pace{Every: 100 * time.Hour, Rate: 1000}, func(s *seenSite) {
			s.Topology = func(context.Context) (*topospec.Spec, error) { loads++; return nil, nil }
		})
		defer s.stop()
		at := 10 * time.Minute
		s.after(at)
		for i, change := range []struct {
			do      func()
			free    bool   // no device need be asked
			party   string // that has a port
			ports   int
			verdict string
		}{
			{func() { s.assign("h5", "green", 0x8303) }, false, "green", 1, v1.Isolated},
			{func() { s.withdraw("h1", "red", 0x8101) }, false, "red", 2, v1.Isolated},
			{func() { s.ended("h1", 0x8101) }, true, "red", 1, v1.Isolated},
			{func() { s.assign("h1", "green", 0x8303) }, false, "green", 2, v1.Isolated},
			{func() { s.assign("h2", "blue", 0x8303) }, false, "blue", 2, v1.Leaks},
			{func() { s.withdraw("h2", "blue", 0x8303) }, false, "blue", 2, v1.Isolated},
			{func() { s.ended("h2", 0x8303) }, true, "blue", 2, v1.Isolated},
		} {
			before := loads
			change.do()
			at += time.Minute
			s.after(at)
			found := s.found()
			if loads != before {
				t.Errorf("change %d: all records were read", i)
			}
			if found.Bounds.Again == nil || found.Bounds.Again.Sub(s.began) < at-time.Minute || found.Bounds.Requests > 24 || change.free != (found.Bounds.Requests == 0) {
				t.Errorf("change %d: bounds %+v", i, found.Bounds)
			}
			declared := 0
			for _, p := range found.Parties {
				if p.Name == change.party {
					declared = p.Declared
				}
			}
			if declared != change.ports || found.Verdict != change.verdict {
				t.Errorf("change %d: %s has %d ports, want %d; verdict %v, want %v", i, change.party, declared, change.ports, found.Verdict, change.verdict)
			}
			ports, drift := s.rows()
			if _, err := s.Prove(t.Context(), "", v1.IsolationQuery{}); err != nil {
				t.Fatal(err)
			}
			whole := *s.found()
			allPorts, allDrift := s.rows()
			whole.Bounds, whole.Examples, whole.Administration = found.Bounds, found.Examples, found.Administration
			if !reflect.DeepEqual(&whole, found) || !reflect.DeepEqual(ports, allPorts) || !reflect.DeepEqual(drift, allDrift) {
				t.Errorf("change %d: %+v, %v, %v; of everything %+v, %v, %v", i, found, ports, drift, whole, allPorts, allDrift)
			}
		}
	})
}

// What is declared and did not reach the fabric yet is no drift: it is taken in at the second look.
func TestDeclaredIsTakenInLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSeenSite(t, proving.Pace{Every: 100 * time.Hour, Rate: 1000}, nil)
		defer s.stop()
		s.after(10 * time.Minute)
		s.update(func(tx *store.Tx) error {
			g := s.stage.GrantOf("h5", 1, 0x8303)
			return s.grant(tx, &g, "h5", "green")
		})
		s.after(10*time.Minute + 2*time.Second)
		if found := s.found(); found.Bounds.Again != nil {
			t.Errorf("what was declared a moment ago is taken in: %+v", found.Bounds)
		}
		s.after(11 * time.Minute)
		if found := s.found(); found.Bounds.Again == nil {
			t.Error("what was declared a minute ago is not taken in")
		}
	})
}

// What is declared is taken in after some looks, also where something else is declared before each of them.
func TestDeclaredAgainAndAgainIsTakenIn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSeenSite(t, proving.Pace{Every: 100 * time.Hour, Rate: 1000}, nil)
		defer s.stop()
		at := 10 * time.Minute
		s.after(at)
		taken := 0
		for i := range 40 {
			s.update(func(tx *store.Tx) error {
				g := s.stage.GrantOf("h5", 1, 0x8303)
				return s.grant(tx, &g, "h5", fmt.Sprint("tenant", i))
			})
			at += time.Second
			s.after(at)
			if found := s.found(); found.Bounds.Again != nil && s.began.Add(at).Sub(*found.Bounds.Again) < time.Second {
				taken++
			}
		}
		if taken == 0 || taken > 4 {
			t.Errorf("what is declared each second was taken in %d times in 40 seconds", taken)
		}
	})
}

// Keys that are opened serve until the ones in the store may be others, also where a grant was written with them.
func TestKeysAreOpenedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := store.New(memory.New(time.Now), "")
		p := proving.New(proving.Options{Store: s, Log: storetest.Quiet(), Now: time.Now, Topology: func(context.Context) (*topospec.Spec, error) { return nil, nil }, SealedIn: other().Name()})
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { p.FollowRecords(ctx) })
		defer run.Wait()
		defer cancel()
		write := func(do func(tx *store.Tx) error) {
			t.Helper()
			if _, err := s.Update(ctx, do); err != nil {
				t.Fatal(err)
			}
		}
		for _, w := range writes[:3] {
			write(w.write)
		}
		grant := func(tx *store.Tx) error {
			return records.Grants().Put(tx, grantKey, records.Grant{Host: "h", Tenant: "red"})
		}
		synctest.Wait()
		has := func(what string, want bool) {
			t.Helper()
			if got, err := p.HasKeys(ctx); err != nil || got != want {
				t.Errorf("%s: keys serve: %t, %v, want %t", what, got, err, want)
			}
		}
		has("nothing was opened", false)
		if err := p.OpenKeys(ctx); err != nil {
			t.Fatal(err)
		}
		has("opened", true)
		write(grant)
		has("a grant was written", true)
		write(func(tx *store.Tx) error {
			records.Grants().Delete(tx, grantKey)
			return other().Put(tx, "x", struct{}{})
		})
		has("a grant and keys were written", false)
		has("once more", false)
	})
}

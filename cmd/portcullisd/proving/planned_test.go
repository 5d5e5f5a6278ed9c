package proving_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/api/inventory"
	"portcullis/api/isolation/outsiders"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/proving"
	"portcullis/fabricsm/ib"
)

// forget removes a host and its grants from the records.
func (s *site) forget(t *testing.T, host string, key ib.PKey) {
	t.Helper()
	g := s.stage.GrantOf(host, 1, key)
	_, err := s.store.Update(t.Context(), func(tx *store.Tx) error {
		records.Grants().Delete(tx, records.Key{PKey: key.Base(), GUID: g.GUID, Place: g.Place}.String())
		inventory.Hosts().Delete(tx, host)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// revision returns the newest revision of the store.
func (s *site) revision(t *testing.T) int64 {
	t.Helper()
	_, rev, err := records.Grants().List(t.Context(), s.store, "")
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

// What is declared otherwise is proven by the newest examination before it is in force.
func TestPlannedTopology(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, proving.Pace{Every: time.Hour, Rate: 100}, nil)
		defer k.stop()
		if err := k.Opens(t.Context(), nil); err != nil {
			t.Errorf("before the first examination: %v", err)
		}
		k.after(20 * time.Minute)
		if err := k.Opens(t.Context(), nil); err != nil {
			t.Errorf("nothing changes: %v", err)
		}
		k.forget(t, "h1", 0x8101)
		err := k.Opens(t.Context(), nil)
		no, ok := errors.AsType[*refusal.Error](err)
		if !ok || no.Code != v1.CodeOpensPath || no.Hint == "" || len(no.Problems) != 2 {
			t.Fatalf("%+v", err)
		}
		if said := strings.Join(no.Problems, "\n"); !strings.Contains(said, "0x8101") || !strings.Contains(said, "red to (undeclared devices)") || !strings.Contains(said, "out by port") {
			t.Errorf("the packets are %s", said)
		}
		k.set(true, nil) // no examination follows
		k.after(4 * time.Hour)
		if err := k.Opens(t.Context(), nil); err != nil {
			t.Errorf("by an examination that is too old: %v", err)
		}
	})
}

// The instance that leads records ports at which packets pass that no membership explains, and what it does not find any more it removes.
func TestRecordsOutsiders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, proving.Pace{Every: time.Hour, Rate: 100}, nil)
		defer k.stop()
		refused := func() bool {
			_, err := k.store.Update(t.Context(), func(tx *store.Tx) error {
				return outsiders.Check(t.Context(), tx, outsiders.Asked{Key: 0x8101, Subject: "host h9"})
			})
			no, ok := errors.AsType[*refusal.Error](err)
			if err != nil && (!ok || no.Code != v1.CodeOpensPath) {
				t.Fatal(err)
			}
			return err != nil
		}
		k.after(20 * time.Minute)
		if refused() {
			t.Error("a clean partition is refused")
		}
		k.forget(t, "h1", 0x8101)
		k.after(80 * time.Minute)
		written := k.revision(t)
		k.after(90 * time.Minute)
		if now := k.revision(t); now != written {
			t.Errorf("the store went from revision %d to %d without a new examination", written, now)
		}
		if !refused() {
			t.Error("a port that is no member any more, and has the P_Key, was not recorded")
		}
		g := k.stage.GrantOf("h1", 1, 0x8101)
		_, err := k.store.Update(t.Context(), func(tx *store.Tx) error { return k.grant(tx, &g, "h1", "red") })
		if err != nil {
			t.Fatal(err)
		}
		if refused() {
			t.Error("refused, though the port is a member by now")
		}
		k.after(140 * time.Minute)
		_, err = k.store.Update(t.Context(), func(tx *store.Tx) error {
			records.Grants().Delete(tx, records.Key{PKey: 0x101, GUID: g.GUID, Place: g.Place}.String())
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if refused() {
			t.Error("a port that was a member at the newest examination is recorded")
		}
	})
}

// A request that shares a reading has nothing recorded again: all records would be written for each such request.
func TestSharedReadingIsRecordedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, proving.Pace{Every: time.Hour, Rate: 100}, nil)
		defer k.stop()
		k.after(20 * time.Minute)
		k.forget(t, "h1", 0x8101)
		examine := func() time.Time {
			out, err := k.Examine(t.Context(), v1.IsolationQuery{}, true)
			if err != nil {
				t.Fatal(err)
			}
			return out.Records
		}
		begun := examine()
		k.after(22 * time.Minute)
		written := k.revision(t)
		if again := examine(); !again.Equal(begun) {
			t.Fatalf("the reading of %v is not shared: %v", begun, again)
		}
		k.after(24 * time.Minute)
		if now := k.revision(t); now != written {
			t.Errorf("the store went from revision %d to %d for a reading that was shared", written, now)
		}
	})
}

// An instance that leads again does not replace what another one found since by what it found itself before.
func TestLeadsAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keep(t, proving.Pace{Every: time.Hour, Rate: 100}, nil)
		k.after(20 * time.Minute)
		k.end()
		<-k.over
		newer := &outsiders.Found{Begun: time.Now(), Outsiders: []outsiders.Outsider{{Port: outsiders.Port{Name: "h9"}, PKeys: []ib.PKey{0x101}}}}
		if err := outsiders.Record(t.Context(), k.store, newer); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); k.keeper.Keep(ctx) }()
		k.after(25 * time.Minute)
		stop()
		<-over
		snap, err := k.store.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if held, err := outsiders.Held(t.Context(), snap); err != nil || !held[0x101] {
			t.Errorf("%v, %v: what was found since is gone", held, err)
		}
	})
}

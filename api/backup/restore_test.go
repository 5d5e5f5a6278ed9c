package backup

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"portcullis/api/audit"
	"portcullis/api/audit/chain"
	"portcullis/api/fabric/records"
	"portcullis/api/leader"
	"portcullis/api/review"
	"portcullis/api/store"
	"portcullis/api/store/storetest"
	"portcullis/api/tenancy"
)

// file makes a backup of f and returns it.
func (f *fixture) file(t *testing.T) []byte {
	t.Helper()
	b, err := f.service.Create(t.Context(), "ann")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(f.dir, b.Name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (f *fixture) options(to *store.Store, data []byte) RestoreOptions {
	return RestoreOptions{
		Store: to, File: bytes.NewReader(data), Size: int64(len(data)), Identities: []age.Identity{f.id}, State: 1, Actor: "root", Now: began.Add(time.Hour),
	}
}

// TestRestore brings a store back with each engine: all records but what the fabric was seen to be and what has
// ended, in review, with an audit log that goes on.
func TestRestore(t *testing.T) {
	for name, to := range map[string]func() *store.Store{"memory": inMemory, "embedded": func() *store.Store { return storetest.Open(t) }} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, inMemory())
			const n = 2*maxBatch + 3
			tenants(t, f.store, n)
			gone := "0x0001/0x0000000000000001/0x0000000000000009-1"
			if _, err := f.store.Update(t.Context(), func(tx *store.Tx) error {
				return records.Memberships().Put(tx, gone, records.Membership{State: records.Applied, Revision: 1 << 40})
			}); err != nil {
				t.Fatal(err)
			}
			head, err := audit.Latest(t.Context(), f.store)
			if err != nil {
				t.Fatal(err)
			}
			restored := to()
			mark, written, err := Restore(t.Context(), f.options(restored, f.file(t)))
			if err != nil {
				t.Fatal(err)
			}
			if written != 2*n+1 || mark.Audit != head || mark.Incomplete {
				t.Errorf("%d records, want %d; mark %+v, want audit head %+v", written, 2*n+1, mark, head)
			}
			now, err := review.Current(t.Context(), restored)
			if err != nil || now == nil || !reflect.DeepEqual(now, mark) {
				t.Errorf("mark in the store: %+v, %v; want %+v", now, err, mark)
			}
			list, _, err := tenancy.Tenants().List(t.Context(), restored, "")
			if err != nil || len(list) != n {
				t.Errorf("%d tenants, %v; want %d", len(list), err, n)
			}
			if _, err := records.Memberships().Get(t.Context(), restored, gone); err == nil {
				t.Error("what was read back under a revision of another store counts still")
			}
			end, err := audit.Verify(t.Context(), restored)
			if e := lastEntry(t, restored); err != nil || end.Seq != head.Seq+1 || e.Action != "state.restore" || e.Actor != "root" || e.Prev != head.Hash {
				t.Errorf("audit log to %+v, %v, with %+v", end, err, e)
			}
			if _, _, err := Restore(t.Context(), f.options(restored, f.file(t))); err == nil || !strings.Contains(err.Error(), "not empty") {
				t.Errorf("restored over a state: %v", err)
			}
		})
	}
}

// A file that is not right in all leaves an empty store as it was.
func TestRestoreRefuses(t *testing.T) {
	f := newFixture(t, inMemory())
	tenants(t, f.store, 3)
	data := f.file(t)
	damaged := bytes.Clone(data)
	damaged[len(damaged)/2] ^= 1
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		edit func(*RestoreOptions)
		want string
	}{
		{"damaged", func(o *RestoreOptions) { o.File = bytes.NewReader(damaged) }, "damaged"},
		{"another identity", func(o *RestoreOptions) { o.Identities = []age.Identity{other} }, "none of the 1 identities"},
		{"of a later program", func(o *RestoreOptions) { o.State = 0 }, "install version"},
		{"another history", func(o *RestoreOptions) { o.Anchors = []chain.Anchor{{Seq: 2, Hash: "x"}} }, "anchored"},
	} {
		to := inMemory()
		o := f.options(to, data)
		tt.edit(&o)
		if _, _, err := Restore(t.Context(), o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		snap, err := to.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if items, err := snap.Items(t.Context(), "", 1); err != nil || len(items) != 0 {
			t.Errorf("%s: the store holds %+v, %v", tt.name, items, err)
		}
	}
}

// A restore that breaks off leaves a mark that no service starts on.
func TestBrokenRestoreShows(t *testing.T) {
	f := newFixture(t, inMemory())
	tenants(t, f.store, 3*maxBatch)
	failing := &storetest.Failing{Backend: inMemory().Backend()}
	to := store.New(failing, "")
	failing.FailAt(3, storetest.Before)
	if _, _, err := Restore(t.Context(), f.options(to, f.file(t))); err == nil {
		t.Fatal("no error")
	}
	failing.Heal()
	if mark, err := review.Current(context.Background(), to); err != nil || mark == nil || !mark.Incomplete {
		t.Errorf("mark %+v, %v; want one of an incomplete restore", mark, err)
	}
}

// Collections that are left out are ones that there are.
func TestSeenCollections(t *testing.T) {
	list, err := os.ReadFile("../../packaging/state/1.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, prefix := range review.Seen() {
		if !strings.Contains(string(list), `"`+strings.TrimSuffix(prefix, "/")+`" `) {
			t.Errorf("there is no collection %s", prefix)
		}
	}
}

// A restored state has no leader: no lease would end the former leader's record, and all instances would stand by without
// end.
func TestRestoredHasNoLeader(t *testing.T) {
	f := newFixture(t, inMemory())
	lead := func(s *store.Store, name string, then func()) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		led := false
		c := leader.New(leader.Options{Store: s, Role: "sm", Instance: name, TTL: time.Second})
		_ = c.Run(ctx, func(context.Context, *leader.Term) error { // its error is the end of ctx
			led = true
			then()
			cancel()
			return nil
		})
		if !led {
			t.Errorf("%s does not lead", name)
		}
	}
	var data []byte
	lead(f.store, "a", func() { data = f.file(t) })
	to := inMemory()
	if _, _, err := Restore(t.Context(), f.options(to, data)); err != nil {
		t.Fatal(err)
	}
	lead(to, "b", func() {})
}

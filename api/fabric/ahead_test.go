package fabric_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/fabric"
	"portcullis/api/fabric/records"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/mirror"
	"portcullis/api/store/storetest"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
)

// TestReadAhead: a Link with copies says what one without says, reads none of the copied records from the store, and takes the
// changes that came after the copies.
func TestReadAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		backend := &storetest.Stalling{Backend: memory.New(time.Now)}
		s := store.New(backend, "")
		grant := func(n int) int64 {
			k := records.Key{PKey: 0x8001, GUID: ib.GUID(n), Place: ib.Place{Switch: 1, Port: ib.PortNum(n)}}
			rev, err := s.Update(t.Context(), func(tx *store.Tx) error {
				return errors.Join(
					records.Grants().Put(tx, k.String(), records.Grant{Host: fmt.Sprint("h", n)}),
					fabric.Facts().Put(tx, fmt.Sprintf("lid/%d", n), sm.Fact{Kind: sm.FactLID, GUID: ib.GUID(n), LID: ib.LID(n)}),
				)
			})
			if err != nil {
				t.Fatal(err)
			}
			return rev
		}
		for n := range 3 {
			grant(n + 1)
		}
		m := mirror.New(s, storetest.Quiet(), fabric.Ahead()...)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go m.Run(ctx)
		<-time.After(10 * time.Second)
		rev := grant(4)
		copies := m.Take(ctx, rev)
		if copies == nil {
			t.Fatalf("no copies of revision %d", rev)
		}
		grant(5) // later than the copies
		plain := fabric.New(fabric.Options{Store: s, Log: storetest.Quiet()})
		want, err := plain.Load()
		if err != nil {
			t.Fatal(err)
		}
		want = want[:4]
		link := fabric.New(fabric.Options{Store: s, Log: storetest.Quiet(), Ahead: copies})
		backend.Stall(true)
		got, err := link.Load()
		backend.Stall(false)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("facts %v, %v; want %v", got, err, want)
		}
		if again, err := link.Load(); err != nil || len(again) != 5 {
			t.Errorf("loaded again: %v, %v; want all 5 of the store", again, err)
		}
		go func() { _ = link.Run(ctx) }()
		for in := range link.Intents() {
			if len(in.Grants) == 5 {
				break
			}
			if len(in.Grants) != 4 || in.Revision != rev {
				t.Fatalf("the first intent has revision %d and %d grants, want %d and 4", in.Revision, len(in.Grants), rev)
			}
		}
		cancel()
		synctest.Wait()
	})
}

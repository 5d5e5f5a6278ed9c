package fabric_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"portcullis/api/fabric"
	"portcullis/api/fabric/owed"
	"portcullis/api/leader"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
)

// TestGuardedRecords: a leader that another has replaced saves no facts, and the one that leads does.
func TestGuardedRecords(t *testing.T) {
	s := member.Open(t)
	lead := func(name string) (*leader.Term, func()) {
		c := leader.New(leader.Options{Store: s, Role: "sm", Instance: name, TTL: time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		terms, ended := make(chan *leader.Term, 1), make(chan error, 1)
		go func() {
			ended <- c.Run(ctx, func(ctx context.Context, term *leader.Term) error { terms <- term; <-ctx.Done(); return nil })
		}()
		return <-terms, func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	link := func(term *leader.Term) *fabric.Link {
		return fabric.New(fabric.Options{Store: s, Log: storetest.Quiet(), Guard: term.Guard})
	}
	first, end := lead("first")
	old := link(first)
	fact := func(lid ib.LID) []sm.Fact { return []sm.Fact{{Kind: sm.FactLID, GUID: 7, LID: lid}} }
	if err := old.Save(fact(3)); err != nil {
		t.Fatalf("the leader saves: %v", err)
	}
	end()
	second, end := lead("second")
	defer end()
	if second.Epoch <= first.Epoch {
		t.Errorf("epoch %d after %d", second.Epoch, first.Epoch)
	}
	now := link(second)
	if err := now.Save(fact(4)); err != nil {
		t.Errorf("the next leader saves: %v", err)
	}
	if err := old.Save(fact(5)); !errors.Is(err, leader.ErrDeposed) {
		t.Errorf("the leader before saves: %v, want ErrDeposed", err)
	}
	facts, err := now.Load()
	if err != nil || len(facts) != 1 || facts[0].LID != 4 {
		t.Errorf("facts %+v, %v; want LID 4 alone", facts, err)
	}
}

// TestTermOwesNothing: facts of a term that the store does not take stay with the driver,
// which sends nothing before they are saved. A journal of this machine would keep them from
// the next leader.
func TestTermOwesNothing(t *testing.T) {
	f := &storetest.Failing{Backend: memory.New(time.Now)}
	keeper := owed.New(storetest.Quiet())
	always := func(context.Context, *store.Tx) error { return nil }
	of := func(guard func(context.Context, *store.Tx) error) *fabric.Link {
		return fabric.New(fabric.Options{Store: store.New(f, ""), Log: storetest.Quiet(), Owed: keeper, Guard: guard})
	}
	fact := []sm.Fact{{Kind: sm.FactLID, GUID: 7, LID: 3}}
	f.FailAt(1, storetest.Before)
	if err := of(always).Save(fact); !errors.Is(err, driver.ErrLater) || keeper.Owes() {
		t.Errorf("in a term: %v, owed: %v; want ErrLater, and nothing owed", err, keeper.Owes())
	}
	if err := of(nil).Save(fact); err != nil || !keeper.Owes() {
		t.Errorf("without a term: %v, owed: %v; want it owed", err, keeper.Owes())
	}
}

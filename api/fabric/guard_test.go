package fabric_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"portcullis/api/fabric"
	"portcullis/api/leader"
	"portcullis/api/store/storetest"
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

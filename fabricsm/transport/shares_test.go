package transport_test

import (
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/transport"
)

// A source that floods a queue without a reader gets half of it. All others still have places, and the source has its
// places again when the queue is emptied.
func TestSharesOfAFullQueue(t *testing.T) {
	const places, flooder = 4096, ib.LID(7)
	s := transport.NewShares(places)
	waiting := 0
	put := func(from ib.LID, times int) (taken int) {
		for range times {
			if s.Take(from, waiting) {
				taken, waiting = taken+1, waiting+1
			}
		}
		return taken
	}
	if got := put(flooder, 2*places); got != places/2 {
		t.Errorf("who floods has %d places, want %d", got, places/2)
	}
	for lid := ib.LID(100); lid < 107; lid++ {
		if got := put(lid, 2*places); got != places/16 {
			t.Errorf("another has %d places, want %d", got, places/16)
		}
	}
	for lid := ib.LID(1000); lid < 1256; lid++ {
		if got := put(lid, 1); got != 1 {
			t.Errorf("%v has no place while %d of %d wait", lid, waiting, places)
		}
	}
	if put(ib.PermissiveLID, 1) != 0 || waiting != places {
		t.Errorf("%d wait, want %d and no more", waiting, places)
	}
	for range places / 2 {
		s.Release(flooder)
		waiting--
	}
	if got := put(flooder, places); got != places/16 {
		t.Errorf("he has %d places of a queue that others fill half, want %d", got, places/16)
	}
}

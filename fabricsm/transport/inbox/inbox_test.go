package inbox_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/inbox"
)

// port has what arrives from a channel.
type port struct {
	transport.Port
	in chan transport.Packet
}

var errGone = errors.New("gone")

func (p port) Receive(out []transport.Packet) (int, error) {
	first, ok := <-p.in
	if !ok {
		return 0, errGone
	}
	out[0] = first
	return 1, nil
}

func numbered(n int) transport.Packet {
	var p transport.Packet
	p.MAD.SetTID(ib.TID(n))
	return p
}

// TestOrderAndEnd takes packets in their order, also by buffers that were used before, and then the error of the port.
func TestOrderAndEnd(t *testing.T) {
	p := port{in: make(chan transport.Packet)}
	b := inbox.Open(p, 2)
	for i := range 10 {
		p.in <- numbered(i)
		batch := <-b.Batches()
		if len(batch) != 1 || batch[0].MAD.TID() != ib.TID(i) {
			t.Fatalf("batch %d: %d packets, first with transaction %v", i, len(batch), batch[0].MAD.TID())
		}
		b.Release(batch)
	}
	close(p.in)
	if batch, ok := <-b.Batches(); ok {
		t.Fatalf("%d packets after the port failed", len(batch))
	}
	if !errors.Is(b.Err(), errGone) {
		t.Errorf("error %v, want %v", b.Err(), errGone)
	}
}

// TestFull loses what finds no room, keeps what came before it, and never waits for its reader.
func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := port{in: make(chan transport.Packet)}
		b := inbox.Open(p, 3)
		for i := range 100 {
			p.in <- numbered(i)
		}
		synctest.Wait()
		for i := range 3 {
			if batch := <-b.Batches(); batch[0].MAD.TID() != ib.TID(i) {
				t.Errorf("batch %d has transaction %v", i, batch[0].MAD.TID())
			}
		}
		p.in <- numbered(100)
		synctest.Wait()
		if batch := <-b.Batches(); batch[0].MAD.TID() != 100 {
			t.Errorf("after room was made: transaction %v, want 100", batch[0].MAD.TID())
		}
		close(p.in)
		b.Drain()
	})
}

// TestBuffersAreUsedAgain receives without an allocation once there are buffers.
func TestBuffersAreUsedAgain(t *testing.T) {
	p := port{in: make(chan transport.Packet)}
	b := inbox.Open(p, 2)
	one := func() {
		p.in <- numbered(1)
		b.Release(<-b.Batches())
	}
	for range 8 {
		one()
	}
	if n := testing.AllocsPerRun(100, one); n != 0 {
		t.Errorf("%v allocations for a batch, want none", n)
	}
	close(p.in)
	b.Drain()
}

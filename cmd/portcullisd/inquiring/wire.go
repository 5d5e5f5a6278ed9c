package inquiring

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/inquiry"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// batch is how many packets are received at a time.
const batch = 64

// wire exchanges requests for answers by a port.
type wire struct {
	port transport.Port
	over chan struct{} // is closed when nothing is received any more

	mu   sync.Mutex
	next uint32 // transaction id
	out  map[uint32]*pending
	err  error // why nothing is received any more
}

// pending is a set of requests that wait for their answers.
type pending struct {
	answers []*transport.Packet // by request; nil: none came
	index   map[uint32]int
	left    int
	done    chan struct{} // is closed when none is left
}

// newWire returns a wire that has the port until close is called.
func newWire(port transport.Port) *wire {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails
	w := &wire{port: port, over: make(chan struct{}), next: binary.BigEndian.Uint32(b[:]), out: map[uint32]*pending{}}
	go w.receive()
	return w
}

// close detaches from the port, and waits until nothing is received.
func (w *wire) close() error {
	err := w.port.Close()
	<-w.over
	return err
}

func (w *wire) receive() {
	defer close(w.over)
	in := make([]transport.Packet, batch)
	for {
		n, err := w.port.Receive(in)
		if err != nil {
			w.fail(err)
			return
		}
		for i := range in[:n] {
			w.take(&in[i])
		}
	}
}

// fail ends all requests that are out.
func (w *wire) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	for id, p := range w.out {
		delete(w.out, id)
		p.settle()
	}
}

// take hands a packet to the request that it answers. The kernel has the upper half of a transaction id.
func (w *wire) take(in *transport.Packet) {
	id := uint32(in.MAD.TID())
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.out[id]
	if p == nil || !in.Undelivered && in.MAD.Method() != mad.MethodGetResp {
		return // what others ask is not for us
	}
	delete(w.out, id)
	if !in.Undelivered {
		came := *in
		p.answers[p.index[id]] = &came
	}
	p.settle()
}

func (p *pending) settle() {
	if p.left--; p.left == 0 {
		close(p.done)
	}
}

// exchange sends requests, and returns what came within the timeout, by request. It sets their transaction ids.
func (w *wire) exchange(ctx context.Context, out []inquiry.Sent, timeout time.Duration) ([]*transport.Packet, error) {
	p := &pending{answers: make([]*transport.Packet, len(out)), index: map[uint32]int{}, left: len(out), done: make(chan struct{})}
	if len(out) == 0 {
		return nil, nil
	}
	packets := make([]transport.Packet, len(out))
	w.mu.Lock()
	if w.err != nil {
		defer w.mu.Unlock()
		return nil, w.err
	}
	for i := range out {
		id := w.free()
		out[i].MAD.SetTID(ib.TID(id))
		w.out[id], p.index[id] = p, i
		packets[i] = transport.Packet{MAD: out[i].MAD, LID: out[i].LID}
		if !out[i].MAD.IsSMP() {
			packets[i].QP = 1
		}
	}
	w.mu.Unlock()
	defer w.drop(p)
	if _, err := w.port.Send(packets); err != nil {
		return nil, err
	}
	t := time.NewTimer(timeout)
	defer t.Stop()
	select {
	case <-p.done:
	case <-t.C:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	w.drop(p)
	return p.answers, nil
}

// free returns a transaction id that is not out. Zero is none.
func (w *wire) free() uint32 {
	for {
		w.next++
		if _, taken := w.out[w.next]; !taken && w.next != 0 {
			return w.next
		}
	}
}

// drop has nothing wait any longer.
func (w *wire) drop(p *pending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range p.index {
		if w.out[id] == p {
			delete(w.out, id)
		}
	}
}

//go:build vm

package host_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"portcullis/packaging/vm/inside/guest"
	"portcullis/packaging/vm/inside/verbs"
)

// pair are two queue pairs of the adapter that are connected with each other: packets from one go out to the switch and
// come back.
type pair struct {
	cq       *verbs.CQ
	from, to *verbs.QP
	memory   *verbs.Memory
}

// newPair connects two queue pairs in the partition of an entry of the P_Key table.
func newPair(t *testing.T, pkeyIndex uint16) *pair {
	t.Helper()
	c, err := verbs.Open("mlx5_0")
	must(t, err)
	t.Cleanup(c.Close)
	p := &pair{}
	p.memory, err = c.Register(8192)
	must(t, err)
	p.cq, err = c.NewCQ(64)
	must(t, err)
	p.from, err = c.NewQP(verbs.RC, p.cq)
	must(t, err)
	p.to, err = c.NewQP(verbs.RC, p.cq)
	must(t, err)
	lid, err := strconv.ParseUint(strings.TrimPrefix(guest.Read(t, adapter+"/ports/1/lid"), "0x"), 16, 16)
	must(t, err)
	for _, ends := range [][2]*verbs.QP{{p.from, p.to}, {p.to, p.from}} {
		path := verbs.Path{Port: 1, PKeyIndex: pkeyIndex, LID: uint16(lid), QP: ends[1].Number, Timeout: 16, Retries: 3} // 270 ms
		must(t, ends[0].Init(path))
		must(t, ends[0].Connect(path))
	}
	return p
}

// send sends a message and tests how that ends.
func (p *pair) send(t *testing.T, want verbs.Status) {
	t.Helper()
	const id, size = 7, 256
	must(t, p.to.Receive(1, p.memory, 4096, size))
	must(t, p.from.Send(id, p.memory, 0, size))
	var got *verbs.Completion
	guest.Eventually(t, 20*time.Second, "the message was not completed", func() bool {
		done, err := p.cq.Poll()
		must(t, err)
		for i := range done {
			if done[i].ID == id && !done[i].Recv {
				got = &done[i]
			}
		}
		return got != nil
	})
	if got.Status != want {
		t.Errorf("the message ended with status %d, want %d", got.Status, want)
	}
}

func (p *pair) wantState(t *testing.T, want verbs.State) {
	t.Helper()
	got, err := p.from.State()
	must(t, err)
	if got != want {
		t.Errorf("the queue pair is in state %d, want %d", got, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

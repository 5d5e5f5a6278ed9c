package rmpp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"portcullis/fabricsm/mad"
)

// kernel receives as a Linux kernel does: it acknowledges segment 1, the end of each
// window and the last segment; a segment that it has acknowledged, again; and is
// silent to one that it has but has not acknowledged. It looks at the PayloadLength of
// the last segment only.
type kernel struct {
	window  uint32
	have    map[uint32]*mad.MAD
	inOrder uint32
	told    uint32
	end     uint32 // of the window
	done    bool
}

func (k *kernel) ack(m *mad.MAD) *mad.MAD {
	k.told = k.inOrder
	return control(m, mad.RMPPAck, mad.RMPPNormal, k.inOrder, k.end)
}

func (k *kernel) take(m *mad.MAD) *mad.MAD {
	if m.RMPPType() != mad.RMPPData {
		return nil
	}
	n := m.SegmentNumber()
	if k.have == nil {
		if n != 1 {
			return nil
		}
		k.have, k.inOrder, k.end = map[uint32]*mad.MAD{1: m}, 1, 1
		if k.done = m.RMPPFlags().Has(mad.RMPPLast); !k.done {
			k.end += k.window
		}
		return k.ack(m)
	}
	switch {
	case n > k.end:
		return nil
	case n <= k.told || k.done:
		return k.ack(m)
	case k.have[n] != nil:
		return nil
	}
	k.have[n] = m
	for k.have[k.inOrder+1] != nil {
		k.inOrder++
	}
	switch {
	case k.have[k.inOrder].RMPPFlags().Has(mad.RMPPLast):
		k.done = true
		return k.ack(m)
	case k.inOrder == k.end:
		k.end += k.window
		return k.ack(m)
	}
	return nil
}

func (k *kernel) data() []byte {
	var b []byte
	for n := uint32(1); n <= k.inOrder; n++ {
		b = append(b, k.have[n].SAData()...)
	}
	pad := 220 - int(k.have[k.inOrder].PayloadLength())
	if pad < 0 || pad > 220 {
		pad = 0
	}
	return b[:len(b)-pad]
}

// TestKernel sends to kernels with receive queues of many lengths, below and above our own window, without and with loss.
// Without loss, no side may have to wait.
func TestKernel(t *testing.T) {
	for _, queue := range []uint32{8, 64, 512, 1024, 8192} {
		for _, ours := range []int{2, 3, 16, 64, 100} {
			for _, loss := range []float64{0, 0.02} {
				name := fmt.Sprintf("queue %d window %d loss %g", queue, ours, loss)
				table, s := newTable(t, Config{Window: ours, Retries: 8}), &sink{}
				rng := rand.New(rand.NewPCG(uint64(queue), uint64(ours)))
				data := noise(rng, 100_000+rng.IntN(1000))
				k := &kernel{window: queue / 8}
				if err := table.Send(epoch, party(7), head(5, mad.MethodGetTableResp), NewBytes(data), Unknown, s); err != nil {
					t.Fatal(err)
				}
				now := epoch
				for len(s.ended) == 0 {
					sent := s.take()
					if len(sent) == 0 {
						now = later(now, table.Next())
						table.Expire(now, s)
						continue
					}
					for i := range sent {
						if rng.Float64() < loss {
							continue
						}
						if ack := k.take(&sent[i]); ack != nil && rng.Float64() >= loss {
							table.Take(now, ack, party(7), s)
						}
					}
				}
				if s.ended[0].Cause != Done || !k.done || !bytes.Equal(k.data(), data) {
					t.Fatalf("%s: ended %v after %v, all here: %v", name, s.ended[0], now.Sub(epoch), k.done)
				}
				if st := table.Stats(); loss == 0 && (now.Sub(epoch) > time.Second || st.Segments > uint64(600+600/ours)) {
					t.Errorf("%s: took %v and %d segments", name, now.Sub(epoch), st.Segments)
				}
			}
		}
	}
}

package ibsim_test

import (
	"fmt"
	"sync"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// BenchmarkLane is questions to subnet administration that are answered at once, with
// so many of a host's under way, while the subnet manager waits: by the lane, and by the
// port itself without lanes.
func BenchmarkLane(b *testing.B) {
	for _, window := range []int{1, 16, 256} {
		for _, lanes := range []bool{false, true} {
			b.Run(fmt.Sprintf("window %d, lanes %v", window, lanes), func(b *testing.B) {
				l := newLabWith(b, lanes)
				var work sync.WaitGroup
				defer work.Wait()
				defer l.port.Close()
				if lanes {
					work.Go(func() { serve(b, l.port) })
					work.Go(func() { serve(b, l.sa) })
				} else {
					work.Go(func() { serve(b, l.port) })
				}
				ask, in := make([]transport.Packet, window), make([]transport.Packet, window)
				for i := range ask {
					ask[i] = l.question(mad.ClassSubnAdm, ib.TID(i))
				}
				l.host.Send(ask...)
				b.ResetTimer()
				for got := 0; got < b.N; {
					n, err := l.host.Port().Receive(in)
					if err != nil {
						b.Fatal(err)
					}
					got += n
					l.host.Send(ask[:n]...)
				}
				b.StopTimer()
			})
		}
	}
}

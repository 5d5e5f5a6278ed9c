//go:build vm

package turns

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Labs begin by length, as many at once as may, and not before each that was announced waits.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(2)
		lengths := []int{1, 7, 3, 9, 2}
		for range lengths {
			q.Announce()
		}
		begun := time.Now()
		const late = 4 * time.Hour // until the last waits
		var mu sync.Mutex
		starts := map[int]time.Duration{}
		var all sync.WaitGroup
		for i, length := range lengths {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Hour)
				end := q.Wait(length)
				mu.Lock()
				starts[length] = time.Since(begun) - late
				mu.Unlock()
				time.Sleep(time.Duration(length) * time.Second)
				end()
				end() // a second end is none
			})
		}
		all.Wait()
		want := map[int]time.Duration{9: 0, 7: 0, 3: 7 * time.Second, 2: 9 * time.Second, 1: 10 * time.Second}
		if diff := cmp.Diff(want, starts); diff != "" {
			t.Errorf("when labs began (-want +got):\n%s", diff)
		}
	})
}

// A lab that is announced while others run takes its turn by its length, too.
func TestLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(1)
		q.Announce()
		end := q.Wait(1)
		begun := make(chan int, 2)
		for _, length := range []int{2, 5} {
			q.Announce()
			go func() {
				end := q.Wait(length)
				begun <- length
				end()
			}()
		}
		synctest.Wait()
		if len(begun) != 0 {
			t.Fatal("a lab began while another ran")
		}
		end()
		if first, second := <-begun, <-begun; first != 5 || second != 2 {
			t.Errorf("labs began in the order %d, %d, want 5, 2", first, second)
		}
	})
}

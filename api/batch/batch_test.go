package batch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/batch"
	"portcullis/api/ifmatch"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
)

func TestCheckNamesHostsThatAreTwice(t *testing.T) {
	t.Parallel()
	hosts := func(ids ...string) (out []batch.Host) {
		for _, id := range ids {
			out = append(out, batch.Host{ID: id})
		}
		return out
	}
	if err := batch.Check(hosts("b", "a", "c")); err != nil {
		t.Error(err)
	}
	err := batch.Check(hosts("b", "a", "b", "c", "a", "b"))
	if !refusal.IsKind(err, refusal.Invalid) || err.Error() != "the batch names hosts more than once: a, b; nothing was done" {
		t.Errorf("twice: %v", err)
	}
}

// TestDoHandlesEachByItself: results are in the order of the request, whatever order they came in, each host is asked for with its
// version alone, and at most AtOnce are under way.
func TestDoHandlesEachByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var hosts []batch.Host
		for i := range 50 {
			hosts = append(hosts, batch.Host{ID: fmt.Sprint("h", i)})
			if i%2 == 0 {
				hosts[i].Version = fmt.Sprint(i)
			}
		}
		var under, most atomic.Int32
		fault := errors.New("the disk is full")
		out, faults := batch.Do(t.Context(), hosts, func(ctx context.Context, id string) (*v1.Host, error) {
			if n := under.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer under.Add(-1)
			var i int
			if _, err := fmt.Sscanf(id, "h%d", &i); err != nil {
				return nil, err
			}
			time.Sleep(time.Duration(50-i) * time.Millisecond) // virtual time
			if got, want := ifmatch.Matches(ctx, "999"), i%2 == 1; got != want || !ifmatch.Matches(ctx, fmt.Sprint(i)) {
				t.Errorf("%s: any version matches: %v, want %v", id, got, want)
			}
			switch {
			case i == 7:
				return nil, fault
			case i%5 == 0:
				return nil, refusal.New(refusal.Conflict, "no", "do", "host %s is refused", id)
			}
			return &v1.Host{ID: id, Epoch: int64(i)}, nil
		})
		if most.Load() != batch.AtOnce {
			t.Errorf("%d at once, want %d", most.Load(), batch.AtOnce)
		}
		if len(out.Changed) != 39 || len(out.Refused) != 11 || !slices.IsSortedFunc(out.Changed, func(a, b v1.BatchedHost) int { return int(a.Epoch - b.Epoch) }) {
			t.Errorf("changed %v, refused %v", out.Changed, out.Refused)
		}
		if got, want := out.Refused[1], (v1.RefusedHost{ID: "h5", Status: 409, Code: "no", Detail: "host h5 is refused", Hint: "do"}); got != want {
			t.Errorf("refused %+v, want %+v", got, want)
		}
		if got := out.Refused[2]; got.ID != "h7" || got.Code != v1.CodeInternal || len(faults) != 1 || !errors.Is(faults[0], fault) {
			t.Errorf("a fault: %+v, %v; its text is for the log alone", got, faults)
		}
	})
}

// TestDoBeginsNoMoreAfterTheEnd: hosts whose turn comes after the end of the request are refused.
func TestDoBeginsNoMoreAfterTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		hosts := make([]batch.Host, 3*batch.AtOnce)
		for i := range hosts {
			hosts[i].ID = fmt.Sprint("h", i)
		}
		var begun atomic.Int32
		out, _ := batch.Do(ctx, hosts, func(context.Context, string) (*v1.Host, error) {
			begun.Add(1)
			time.Sleep(1500 * time.Millisecond) // virtual time
			return &v1.Host{}, nil
		})
		if begun.Load() != batch.AtOnce || len(out.Changed) != batch.AtOnce || len(out.Refused) != 2*batch.AtOnce || out.Refused[0].Code != "not_begun" {
			t.Errorf("%d were begun, %d changed, %d refused, the first: %+v", begun.Load(), len(out.Changed), len(out.Refused), out.Refused[0])
		}
	})
}

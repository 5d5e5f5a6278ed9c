package proving_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"syscall"
	"testing"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/proving"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

// BenchmarkCatchUp has a P_Key written at a port, or a host assigned to another tenant, and measures how long it takes until it is in the proof
// of all tenants: to read it, and to prove. Each tenant has ten hosts. A P_Key that is written is of another tenant: every second change is a
// leak, and every other one ends it. everything-ms
// is what it took in the same run to load all records and to prove everything, without reading the fabric, and ratio is how many times as long
// that is. best-ms is the shortest time to catch up: other load of the machine makes it longer. cpu-ms is the least processor time that the
// process took meanwhile, which that makes longer by less.
func BenchmarkCatchUp(b *testing.B) {
	for _, hosts := range []int{1944, 10368} {
		b.Run(fmt.Sprintf("hosts=%d/written", hosts), func(b *testing.B) { benchmarkCatchUp(b, hosts, (*benched).write) })
		b.Run(fmt.Sprintf("hosts=%d/assigned", hosts), func(b *testing.B) { benchmarkCatchUp(b, hosts, (*benched).assign) })
	}
}

// benched is a site whose hosts change.
type benched struct {
	*site
	tenants map[string]string
	pkeys   map[string]ib.PKey
}

// write has a port get a P_Key of another tenant, and lose it again. It returns the verdict from then on.
func (s *benched) write(i int, before string) (string, error) {
	stray := s.stage.GrantOf("h1", 1, s.pkeys[s.tenants["h500"]])
	if i%2 == 0 {
		s.stage.Grant(stray)
		return v1.Leaks, nil
	}
	s.stage.Withdraw(stray)
	return before, nil
}

// assign has a host be of another tenant, and of its own one again.
func (s *benched) assign(i int, before string) (string, error) {
	from, to := s.tenants["h1"], s.tenants["h500"]
	if i%2 == 1 {
		from, to = to, from
	}
	old, grant := s.stage.GrantOf("h1", 1, s.pkeys[from]), s.stage.GrantOf("h1", 1, s.pkeys[to])
	_, err := s.store.Update(context.Background(), func(tx *store.Tx) error {
		records.Grants().Delete(tx, records.Key{PKey: old.PKey.Base(), GUID: old.GUID, Place: old.Place}.String())
		return s.grant(tx, &grant, "h1", to)
	})
	s.stage.Withdraw(old)
	s.stage.Grant(grant)
	return before, err
}

func benchmarkCatchUp(b *testing.B, hosts int, change func(s *benched, i int, before string) (string, error)) {
	list, err := netlist.FatTree3(netlist.Shape{Hosts: hosts, Radix: 36})
	if err != nil {
		b.Fatal(err)
	}
	tenants, pkeys := map[string]string{}, map[string]ib.PKey{}
	for i := range list.Nodes {
		if n := &list.Nodes[i]; n.Type == ib.NodeCA && n.Name != "sm" {
			tenant := fmt.Sprintf("t%d", i/10)
			tenants[n.Name], pkeys[tenant] = tenant, ib.PKey(0x8001+i/10)
		}
	}
	s := &benched{siteOf(b, list, tenants, pkeys), tenants, pkeys}
	s.View = func() (*sm.View, error) { return s.stage.View(), nil }
	s.Pace = proving.Pace{Every: time.Hour, Rate: 1_000_000}
	ctx, cancel := context.WithCancel(context.Background())
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel()
	beside.Go(func() { s.FollowRecords(ctx) })
	everything := time.Duration(math.MaxInt64)
	whole, err := s.Prove(context.Background(), "", v1.IsolationQuery{})
	if err != nil || whole.Verdict == v1.Leaks {
		b.Fatalf("%v, %v", whole, err)
	}
	k := &proving.Keeper{Prover: s.Prover, Settled: func() bool { return true }}
	best, least := everything, everything
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		want, err := change(s, i, whole.Verdict)
		if err != nil {
			b.Fatal(err)
		}
		s.stage.Run(time.Second)
		if err := s.stage.Settle(time.Minute); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		began, took := time.Now(), processorTime(b)
		if err := k.CatchUp(context.Background()); err != nil {
			b.Fatal(err)
		}
		best, least = min(best, time.Since(began)), min(least, processorTime(b)-took)
		if found, _ := s.Last(); found.Verdict != want {
			b.Fatalf("after change %d the verdict is %v, want %v", i, found.Verdict, want)
		}
	}
	found, _ := s.Last()
	b.ReportMetric(float64(found.Bounds.Requests), "requests")
	b.ReportMetric(best.Seconds()*1e3, "best-ms")
	b.ReportMetric(least.Seconds()*1e3, "cpu-ms")
	b.StopTimer()
	for range 3 {
		began := time.Now()
		if err := s.ProveEverything(ctx); err != nil {
			b.Fatal(err)
		}
		everything = min(everything, time.Since(began))
	}
	b.ReportMetric(everything.Seconds()*1e3, "everything-ms")
	b.ReportMetric(everything.Seconds()/best.Seconds(), "ratio")
}

// processorTime returns how long the process has run on processors.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

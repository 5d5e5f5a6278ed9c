package route_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/dfsssp"
	"portcullis/fabricsm/route/ftree"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/route/updn"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// cpuTime returns the processor time that this process has used. Other work on the machine changes it less than the elapsed
// time.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// change is something that a fabric loses and gets back.
type change struct {
	name   string
	cables []topo.PortID // one end of each
	sw     topo.NodeID   // a switch that is lost with them, None
}

// changes returns a cable of a leaf, one further up, and a switch at the top, of a fat tree of three levels.
func changes(f *topo.Fabric) []change {
	port := func(level, i, n int) topo.PortID {
		return f.PortOf(f.NodeByGUID(topotest.SwitchGUID(level, i)), ib.PortNum(n))
	}
	n := f.NodeByGUID(topotest.SwitchGUID(3, 7))
	spine := change{name: "spine", sw: n}
	for i := 1; i <= int(f.Node(n).NumPorts); i++ {
		if p := f.PortOf(n, ib.PortNum(i)); f.Port(p).Peer != topo.None {
			spine.cables = append(spine.cables, p)
		}
	}
	up := int(f.NodeOf(port(1, 1, 1)).NumPorts)/2 + 4
	return []change{{"leaf", []topo.PortID{port(1, 32, up)}, topo.None}, {"middle", []topo.PortID{port(2, 32, up)}, topo.None}, spine}
}

// loseAndReturn returns the fabric without it, and the whole fabric again.
func (c change) loseAndReturn(k *topotest.Kit) (cut, whole *topo.Fabric) {
	peers := make([]topo.PortID, len(c.cables))
	for i, p := range c.cables {
		peers[i] = k.Port(p).Peer
		k.Disconnect(p)
	}
	restore := func() {}
	if c.sw != topo.None {
		restore = removeSwitch(k, c.sw)
	}
	cut = k.Fabric()
	restore()
	for i, p := range c.cables {
		k.Connect(p, peers[i])
	}
	return cut, k.Fabric()
}

// removeSwitch removes a switch without cables. restore brings it back as it was.
func removeSwitch(k *topotest.Kit, id topo.NodeID) (restore func()) {
	n := k.Node(id)
	ports := make([]topo.Port, int(n.NumPorts)+1)
	for i := range ports {
		ports[i] = k.Port(n.FirstPort + topo.PortID(i))
	}
	k.RemoveNode(id)
	return func() {
		k.AddNode(n)
		for i, p := range ports {
			k.SetPort(n.FirstPort+topo.PortID(i), p)
		}
	}
}

// BenchmarkChange routes and judges after something is lost, and after it is back,
// each time from the tables before. cpu-ms is of both.
func BenchmarkChange(b *testing.B) {
	for _, hosts := range []int{648, 5184, 10368} {
		for _, e := range []route.Engine{minhop.Engine{}, updn.Engine{}, ftree.Engine{}, dfsssp.Engine{Lanes: 4}} {
			k := topotest.FatTree3(hosts, 36)
			var first *route.Tables
			for _, c := range changes(k.Fabric()) {
				b.Run(fmt.Sprintf("%s/hosts=%d/%s", e.Name(), hosts, c.name), func(b *testing.B) {
					if first == nil {
						first = firstOf(b, e, k.Fabric(), nil)
					}
					benchmarkChange(b, e, k, c, first)
				})
			}
		}
	}
}

func benchmarkChange(b *testing.B, e route.Engine, k *topotest.Kit, c change, now *route.Tables) {
	b.ReportAllocs()
	var lost, back, least time.Duration
	for b.Loop() {
		b.StopTimer()
		cut, whole := c.loseAndReturn(k)
		b.StartTimer()
		t0 := cpuTime()
		now = firstOf(b, e, cut, now)
		t1 := cpuTime()
		now = firstOf(b, e, whole, now)
		t2 := cpuTime()
		if lost == 0 || t2-t0 < least {
			lost, back, least = t1-t0, t2-t1, t2-t0
		}
	}
	b.ReportMetric(float64(lost.Microseconds())/1000, "lost-cpu-ms")
	b.ReportMetric(float64(back.Microseconds())/1000, "back-cpu-ms")
}

func firstOf(b *testing.B, e route.Engine, f *topo.Fabric, prev *route.Tables) *route.Tables {
	b.Helper()
	c, err := route.First(f, prev, e)
	if err != nil {
		b.Fatal(err)
	}
	return c.Tables
}

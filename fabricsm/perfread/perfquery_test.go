package perfread_test

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/perfmgr"
	"portcullis/fabricsm/perfread"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/simtest"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/transport/ibsim"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// querier runs infiniband-diags against a simulator.
type querier interface {
	Diag(ctx context.Context, node, tool string, args ...string) ([]byte, error)
}

// perfquery returns what perfquery prints, by name.
func perfquery(t *testing.T, lab querier, args ...string) map[string]uint64 {
	t.Helper()
	out, err := lab.Diag(t.Context(), "sm", "perfquery", args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	all := map[string]uint64{}
	for _, m := range regexp.MustCompile(`(?m)^(\w+):\.*(\d+)$`).FindAllStringSubmatch(string(out), -1) {
		if all[m[1]], err = strconv.ParseUint(m[2], 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	if len(all) < 6 {
		t.Fatalf("perfquery %s:\n%s", strings.Join(args, " "), out)
	}
	return all
}

// names are the counters as perfquery prints them: those of perfquery -x, and the others.
var (
	extended = map[string]perfmgr.Counter{
		"PortXmitData": perfmgr.XmitData, "PortRcvData": perfmgr.RcvData, "PortXmitPkts": perfmgr.XmitPkts, "PortRcvPkts": perfmgr.RcvPkts,
		"PortUnicastXmitPkts": perfmgr.UnicastXmitPkts, "PortUnicastRcvPkts": perfmgr.UnicastRcvPkts,
		"PortMulticastXmitPkts": perfmgr.MulticastXmitPkts, "PortMulticastRcvPkts": perfmgr.MulticastRcvPkts,
	}
	plain = map[string]perfmgr.Counter{
		"SymbolErrorCounter": perfmgr.SymbolErrors, "LinkErrorRecoveryCounter": perfmgr.LinkErrorRecovery, "LinkDownedCounter": perfmgr.LinkDowned,
		"PortRcvErrors": perfmgr.RcvErrors, "PortRcvRemotePhysicalErrors": perfmgr.RcvRemotePhysicalErrors,
		"PortRcvSwitchRelayErrors": perfmgr.RcvSwitchRelayErrors, "PortXmitDiscards": perfmgr.XmitDiscards,
		"PortXmitConstraintErrors": perfmgr.XmitConstraintErrors, "PortRcvConstraintErrors": perfmgr.RcvConstraintErrors,
		"LocalLinkIntegrityErrors": perfmgr.LocalLinkIntegrityErrors, "ExcessiveBufferOverrunErrors": perfmgr.ExcessiveBufferOverrunErrors,
		"VL15Dropped": perfmgr.VL15Dropped, "PortXmitWait": perfmgr.XmitWait,
	}
)

// shown is what perfquery reads of a port.
type shown map[string]uint64

func show(t *testing.T, lab querier, lid ib.LID, port ib.PortNum) shown {
	t.Helper()
	all := shown(perfquery(t, lab, lid.String(), fmt.Sprint(port)))
	for name, v := range perfquery(t, lab, "-x", lid.String(), fmt.Sprint(port)) {
		all[name] = v
	}
	return all
}

// compare compares what was read of a port with what perfquery read before and afterwards. In between, nothing has passed the port
// but the requests of the reader.
func compare(t *testing.T, r *perfmgr.Reading, before, after shown) {
	t.Helper()
	for name, c := range extended {
		v, ok := after[name]
		if !ok {
			t.Errorf("perfquery does not show %s", name)
		}
		if r.Has.Has(c) && (r.Totals[c] < before[name] || r.Totals[c] > v || v-before[name] > 4*72) { // requests of at most 72 words
			t.Errorf("%v port %d: %s is %d, perfquery says %d, then %d", r.GUID, r.Port, name, r.Totals[c], before[name], v)
		}
	}
	for name, c := range plain {
		v, ok := after[name]
		if !ok && c != perfmgr.XmitWait {
			t.Errorf("perfquery does not show %s", name)
		}
		if !r.Has.Has(c) && c != perfmgr.XmitWait || r.Has.Has(c) && r.Totals[c] != v {
			t.Errorf("%v port %d: %s is %d, perfquery says %d", r.GUID, r.Port, name, r.Totals[c], v)
		}
	}
}

// running is a collector that reads by a port of a simulator.
type running struct {
	*perfread.Collector
	t     *testing.T
	stop  context.CancelFunc
	ended chan error
}

// run has a collector read a fabric by a port of a simulator.
func run(t *testing.T, socket string, f *topo.Fabric, o perfread.Options) *running {
	t.Helper()
	port, err := ibsim.Dial(t.Context(), ibsim.Options{Socket: socket, Node: "sm"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	r := &running{newCollector(t, o), t, stop, make(chan error, 1)}
	r.See(f)
	go func() { r.ended <- r.Run(ctx, port) }()
	return r
}

// await waits for the end of so many passes.
func (r *running) await(passes uint64) {
	r.t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for r.Stats().Passes < passes {
		select {
		case err := <-r.ended:
			r.t.Fatalf("it ended with %v", err)
		case <-r.t.Context().Done():
			r.t.Fatalf("the pass does not end: %+v", r.Stats())
		case <-look.C:
		}
	}
}

// end has it read no more.
func (r *running) end() {
	r.t.Helper()
	r.stop()
	if err := <-r.ended; err != nil {
		r.t.Error(err)
	}
}

// once reads a fabric once by a port of a simulator.
func once(t *testing.T, socket string, f *topo.Fabric) *perfread.Collector {
	t.Helper()
	r := run(t, socket, f, perfread.Options{Every: time.Hour, Timeout: 5 * time.Second})
	r.await(1)
	r.end()
	return r.Collector
}

// onIbsim returns an ibsim of a fabric, and what a Subnet Manager has made of it.
func onIbsim(t *testing.T, l *netlist.Netlist) (*ibsimlab.Lab, *topo.Fabric) {
	t.Helper()
	ibsimtest.Need(t, "perfquery")
	var text bytes.Buffer
	if _, err := l.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	lab := ibsimtest.Start(t, text.Bytes())
	return lab, managed(t, lab)
}

// lidOf returns the LID by which a node answers for a port.
func lidOf(f *topo.Fabric, guid ib.GUID, num ib.PortNum) ib.LID {
	id := f.NodeByGUID(guid)
	if f.Node(id).Type == ib.NodeSwitch {
		num = 0
	}
	return f.Port(f.PortOf(id, num)).LID
}

// Of ibsim, the same counters are read as by perfquery, beside a Subnet Manager at the same port.
func TestReadsIbsim(t *testing.T) {
	t.Parallel()
	l := plan(t)
	lab, seen := onIbsim(t, l)
	want := map[perfmgr.Counter]uint64{}
	for i, name := range []string{
		"SymbolErrorCounter", "LinkErrorRecoveryCounter", "LinkDownedCounter", "PortRcvErrors", "PortRcvRemotePhysicalErrors", "PortRcvSwitchRelayErrors",
		"PortXmitDiscards", "PortXmitConstraintErrors", "PortRcvConstraintErrors", "LocalLinkIntegrityErrors", "ExcessiveBufferOverrunErrors", "VL15Dropped",
	} {
		want[plain[name]] = uint64(i + 3)
		ibsimtest.Console(t, lab, fmt.Sprintf(`PerformanceSet "leaf2"[2] PortCounters.%s=%d`, name, i+3))
	}
	lid := lidOf(seen, guidOf(t, l, "leaf2"), 2)
	before := show(t, lab, lid, 2)
	c := once(t, lab.Socket(), seen)
	if s := c.Stats(); s.Current != links(l) || s.TimedOut+s.Refused+s.Invalid+s.Strays+s.Resets != 0 {
		t.Errorf("%+v, want %d ports", s, links(l))
	}
	r := of(t, c, l, "leaf2", 2)
	for counter, v := range want {
		if r.Totals[counter] != v {
			t.Errorf("counter %d is %d, want %d", counter, r.Totals[counter], v)
		}
	}
	if r.Totals[perfmgr.XmitPkts] == 0 || r.Totals[perfmgr.XmitData] == 0 {
		t.Errorf("no traffic: %v", r.Totals)
	}
	compare(t, &r, before, show(t, lab, lid, 2))
}

// Of our simulator, perfquery reads the same.
func TestPerfqueryAgreesOnSimulator(t *testing.T) {
	t.Parallel()
	ibsimtest.Need(t, "perfquery")
	l := plan(t)
	f, seen := settled(t, l)
	client := simtest.Serve(t, f)
	lid := lidOf(seen, guidOf(t, l, "leaf2"), 2)
	before := show(t, client, lid, 2)
	c := once(t, client.Socket, seen)
	r := of(t, c, l, "leaf2", 2)
	compare(t, &r, before, show(t, client, lid, 2))
}

func guidOf(t *testing.T, l *netlist.Netlist, node string) ib.GUID {
	t.Helper()
	for i := range l.Nodes {
		if l.Nodes[i].Name == node {
			return l.Nodes[i].GUID
		}
	}
	t.Fatalf("there is no %s", node)
	return 0
}

// managed runs a Subnet Manager until the fabric is settled, and to the end of the test.
func managed(t *testing.T, lab *ibsimlab.Lab) *topo.Fabric {
	t.Helper()
	port, err := ibsim.Dial(t.Context(), ibsim.Options{Socket: lab.Socket(), Node: "sm", AsSM: true})
	if err != nil {
		t.Fatal(err)
	}
	settled := make(chan *topo.Fabric, 1)
	var first sync.Once
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() {
		ended <- driver.Run(ctx, driver.Options{
			Port: port, Core: sm.Config{Enforcement: sm.Accepted, AuditPeriod: -1, LIDPeriod: -1}, Store: &forgetful{},
			OnView: func(v *sm.View) {
				if v.Settled {
					first.Do(func() { settled <- v.Fabric })
				}
			},
		}, nil)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the Subnet Manager ended: %v", err)
		}
	})
	select {
	case f := <-settled:
		return f
	case err := <-ended:
		ended <- nil
		t.Fatalf("the Subnet Manager ended: %v", err)
	case <-t.Context().Done():
		t.Fatal("the Subnet Manager does not settle the fabric")
	}
	return nil
}

// forgetful is a store of facts that keeps none.
type forgetful struct{}

func (*forgetful) Load() ([]sm.Fact, error) { return nil, nil }
func (*forgetful) Save([]sm.Fact) error     { return nil }

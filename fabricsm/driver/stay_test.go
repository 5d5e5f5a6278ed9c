package driver_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/simtest"
	"portcullis/fabricsm/sm"
)

// TestStayAnswers: after the end of its term a Subnet Manager answers path queries as before, until Stay ends. It
// confirms no registration, changes no device, and is announced no more.
func TestStayAnswers(t *testing.T) {
	list := pairFabric(t)
	fabric := sim.New(list)
	lease, until, begun := &leased{}, make(chan struct{}), make(chan struct{})
	lease.hold(time.Hour)
	p := &pair{t: t, list: list, sock: simtest.Serve(t, fabric).Socket, change: func(o *driver.Options) {
		o.Fence = lease
		o.Stay = &driver.Stay{Until: until, Begin: func() bool { close(begun); return true }}
	}}
	m := p.run("sm", 9, "h2", &driver.Memory{})
	m.until("a settled fabric", rested)
	if fabric.PortInfo("sm", 1).CapabilityMask&mad.IsSM == 0 {
		t.Fatal("no Subnet Manager is announced")
	}
	h1 := p.client("h1")
	path := func() (record []byte) {
		t.Helper()
		gid := func(node string) ib.GID { return ib.MakeGID(ib.DefaultPrefix, list.Find(node).PortGUID(1)) }
		a := h1.ask(mad.MethodGet, mad.AttrPathRecord, mad.PathComponentSGID|mad.PathComponentDGID|mad.PathComponentNumbPath|mad.PathComponentReversible, of(mad.PathRecord{
			SGID: gid("h1"), DGID: gid("h3"), Reversible: true, NumbPath: 1,
		}))
		if a.Status != mad.StatusOK {
			t.Fatalf("the query of a path is answered with status %v", a.Status)
		}
		return a.Data
	}
	before, sets := path(), fabric.Sets()
	m.cancel()
	<-begun
	lease.hold(0)
	for range 3 {
		if d := cmp.Diff(before, path()); d != "" {
			t.Errorf("after the term the path is another one (-before +after):\n%s", d)
		}
	}
	guid := list.Find("h1").PortGUID(1)
	a := h1.ask(mad.MethodSet, mad.AttrServiceRecord, 0x17, of(mad.ServiceRecord{
		ServiceID: 0x1234, ServiceGID: ib.MakeGID(ib.DefaultPrefix, guid), ServicePKey: 0x8001, ServiceLease: 0xFFFFFFFF,
	}))
	if a.Status != mad.StatusBusy {
		t.Errorf("a registration after the term is answered with status %v, want busy", a.Status)
	}
	if d := cmp.Diff(sets, fabric.Sets()); d != "" {
		t.Errorf("devices were changed after the term (-before +after):\n%s", d)
	}
	if fabric.PortInfo("sm", 1).CapabilityMask&mad.IsSM != 0 {
		t.Error("the port still announces a Subnet Manager")
	}
	close(until)
	m.stop()
}

// TestStayUnpolled: on a port that cannot be polled the run goes on, too, and leaves no goroutine behind. It ends with its
// context where nothing is to follow.
func TestStayUnpolled(t *testing.T) {
	list, err := netlist.Single(netlist.Shape{Hosts: 2, Radix: 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, follows := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			port, err := sim.New(list).Attach("sm", true)
			if err != nil {
				t.Fatal(err)
			}
			config := sa.DefaultConfig()
			config.Key = pairKey
			agent, err := sa.New(config)
			if err != nil {
				t.Fatal(err)
			}
			lease, until := &leased{}, make(chan struct{})
			lease.hold(time.Hour)
			ctx, cancel := context.WithCancel(t.Context())
			began, want := time.Now(), time.Duration(0)
			if follows {
				want = time.Minute
			}
			err = driver.Run(ctx, driver.Options{
				Port: port, Core: sm.Config{Enforcement: sm.Accepted}, SA: agent, Store: &driver.Memory{}, Fence: lease,
				Stay: &driver.Stay{Until: until, Begin: func() bool {
					began = time.Now()
					time.AfterFunc(time.Minute, func() { close(until) })
					return follows
				}},
				OnView: func(v *sm.View) {
					if v.Settled {
						cancel()
					}
				},
			}, nil)
			if took := time.Since(began); err != nil || took != want {
				t.Errorf("the run ended %v after its context, want %v; %v", took, want, err)
			}
		})
	}
}

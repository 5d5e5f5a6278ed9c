package driver_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/transport"
)

// answerAll answers all packets of a lane until its port is closed.
func answerAll(t *testing.T, l transport.Lane) {
	buf := make([]transport.Packet, 16)
	for {
		n, err := l.TryReceive(buf)
		if err == nil && n == 0 {
			err = l.Wait()
		}
		for i := range buf[:n] {
			buf[i].MAD.Respond(mad.StatusOK)
		}
		for sent := 0; sent < n && err == nil; {
			var k int
			if k, err = l.TrySend(buf[sent:n]); err == nil && k == 0 {
				err = l.Pause(100 * time.Microsecond)
			}
			sent += k
		}
		if errors.Is(err, transport.ErrClosed) {
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
	}
}

// TestSubnetAdministrationBesideABusyManager: while the subnet manager is in one long step, requests of hosts to subnet
// administration are answered. Afterwards the manager goes on.
func TestSubnetAdministrationBesideABusyManager(t *testing.T) {
	for name, dial := range map[string]func(*testing.T, *sim.Fabric) transport.Port{
		"in process":      attachTo,
		"ibsim's sockets": dialTo,
	} {
		t.Run(name, func(t *testing.T) {
			l, err := netlist.FatTree2(netlist.Shape{Hosts: 4, Radix: 4})
			if err != nil {
				t.Fatal(err)
			}
			f := sim.New(l)
			port := dial(t, f)
			lane, err := port.(transport.Laned).SA()
			if err != nil {
				t.Fatal(err)
			}
			var work sync.WaitGroup
			defer work.Wait()
			work.Go(func() { answerAll(t, lane) })

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			busy, goOn := make(chan *sm.View), make(chan bool)
			work.Go(func() {
				err := driver.Run(ctx, driver.Options{
					Port: port, Core: sm.Config{Enforcement: sm.Accepted},
					OnView: func(v *sm.View) {
						if !v.Settled {
							return
						}
						select {
						case busy <- v:
						case <-ctx.Done():
						}
						select {
						case <-goOn:
						case <-ctx.Done():
						}
					},
				}, nil)
				if err != nil {
					t.Error(err)
				}
			})
			host, err := f.Station("h1", false)
			if err != nil {
				t.Fatal(err)
			}
			gone := l.Find("h3").PortGUID(1)
			for _, there := range []bool{true, false} {
				v := <-busy
				for v.Fabric.PortByGUID(gone) != topo.None != there {
					goOn <- true
					v = <-busy
				}
				ask(t, f, host, 50)
				if there {
					err = f.Unlink("h3", 1)
				}
				if err != nil {
					t.Fatal(err)
				}
				goOn <- true
			}
			if lane.Dropped() != 0 {
				t.Errorf("%d dropped", lane.Dropped())
			}
		})
	}
}

// ask has a host ask so many questions, each when the one before is answered.
func ask(t *testing.T, f *sim.Fabric, host *sim.Station, count ib.TID) {
	t.Helper()
	q := transport.Packet{LID: f.PortInfo("sm", 1).LID, QP: 1}
	in := make([]transport.Packet, 1)
	for tid := range count {
		q.MAD.SetHeader(mad.Header{
			Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: mad.MethodGet, Attr: mad.AttrPathRecord, TID: tid,
		})
		host.Send(q)
		n, err := host.Port().Receive(in)
		if n != 1 || err != nil || in[0].Undelivered || in[0].MAD.Method() != mad.MethodGetResp || uint32(in[0].MAD.TID()) != uint32(tid) {
			t.Fatalf("question %d: %d, %v, %+v", tid, n, err, in[0].MAD.Header())
		}
	}
}

// TestFloodDoesNotHoldTheManager: a flood of requests without answers, as if subnet administration hung, does not delay the
// manager's reaction to the fabric.
func TestFloodDoesNotHoldTheManager(t *testing.T) {
	for name, dial := range map[string]func(*testing.T, *sim.Fabric) transport.Port{
		"in process":      attachTo,
		"ibsim's sockets": dialTo,
	} {
		t.Run(name, func(t *testing.T) {
			l, err := netlist.FatTree2(netlist.Shape{Hosts: 4, Radix: 4})
			if err != nil {
				t.Fatal(err)
			}
			f := sim.New(l)
			port := dial(t, f)
			lane, err := port.(transport.Laned).SA()
			if err != nil {
				t.Fatal(err)
			}
			var work sync.WaitGroup
			defer work.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			views := make(chan *sm.View, 1)
			work.Go(func() {
				err := driver.Run(ctx, driver.Options{
					Port: port, Core: sm.Config{Enforcement: sm.Accepted},
					OnView: func(v *sm.View) {
						select {
						case <-views: // an older one
						default:
						}
						views <- v
					},
				}, nil)
				if err != nil {
					t.Error(err)
				}
			})
			host, err := f.Station("h1", false)
			if err != nil {
				t.Fatal(err)
			}
			gone := l.Find("h3").PortGUID(1)
			until := func(there bool) {
				for v := range views {
					if v.Settled && v.Fabric.PortByGUID(gone) != topo.None == there {
						return
					}
				}
			}
			until(true)
			var once sync.Once
			full := make(chan struct{})
			work.Go(func() {
				q := transport.Packet{LID: f.PortInfo("sm", 1).LID, QP: 1}
				q.MAD.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: mad.MethodGet, Attr: mad.AttrPathRecord})
				for ctx.Err() == nil {
					if host.Send(q); lane.Dropped() > 0 {
						once.Do(func() { close(full) })
					}
				}
			})
			<-full
			if err := f.Unlink("h3", 1); err != nil {
				t.Fatal(err)
			}
			until(false)
		})
	}
}

//go:build vm

package softhca_test

import (
	"sync"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/softhcaserver"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/umad"
	"portcullis/packaging/vm/inside/adapter"
	"portcullis/packaging/vm/inside/verbs"
)

// rounds is how often the adapter is pulled.
const rounds = 8

// An adapter is pulled while programs send MADs and data, read its files and hold queue pairs and memory, and comes back,
// again and again.
func TestUnplugUnderLoad(t *testing.T) {
	f := adapter.NewFabric(t)
	for round := range rounds {
		a := f.Plug(t, "quad", "mlx5_0")
		var load sync.WaitGroup
		sent := make(chan struct{}, 64)
		var open sync.WaitGroup
		open.Add(6)
		for port := 1; port <= 4; port++ {
			load.Go(func() { sendMADs(t, uint8(port), sent, open.Done) })
		}
		load.Go(func() { sendData(t, sent, open.Done) })
		load.Go(func() { sendData(t, sent, open.Done) })
		load.Go(func() {
			for read("/sys/class/infiniband/mlx5_0/ports/1/pkeys/0") == nil {
				sent <- struct{}{}
			}
		})
		stop := make(chan struct{})
		var drain sync.WaitGroup
		busy := make(chan struct{})
		drain.Go(func() {
			for n := 0; ; n++ {
				if n == 200 {
					close(busy)
				}
				select {
				case <-sent:
				case <-stop:
					return
				}
			}
		})
		open.Wait()
		select {
		case <-busy:
		case <-time.After(3 * soon):
			t.Fatal("there is no load")
		}
		if round%2 == 1 {
			a.Behave(softhcaserver.Behavior{Silent: true})
		}
		adapter.Pull(t, a, "mlx5_0")
		ended := make(chan struct{})
		go func() { load.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(3 * soon):
			t.Fatalf("round %d: a program still waits for an adapter that was pulled", round)
		}
		close(stop)
		drain.Wait()
	}
}

// sendMADs asks the switch for its identity until the adapter is gone.
func sendMADs(t *testing.T, port uint8, sent chan<- struct{}, open func()) {
	p, err := umad.Dial(t.Context(), umad.Options{Device: "mlx5_0", Port: ib.PortNum(port), AsSM: true})
	if err != nil {
		t.Errorf("port %d: %v", port, err)
	}
	open()
	if err != nil {
		return
	}
	defer p.Close()
	var receive sync.WaitGroup
	receive.Go(func() {
		in := make([]transport.Packet, 16)
		for {
			if _, err := p.Receive(in); err != nil {
				return
			}
		}
	})
	out := transport.Packet{LID: ib.PermissiveLID}
	route := mad.MakeRoute(ib.PortNum(port))
	for tid := ib.TID(1); ; tid++ {
		mad.NewSMP(&out.MAD, mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo, TID: tid}, &route, ib.MKey{})
		if _, err := p.Send([]transport.Packet{out}); err != nil {
			break
		}
		sent <- struct{}{}
	}
	receive.Wait()
}

// sendData makes and ends queue pairs that send to themselves until the adapter is gone.
func sendData(t *testing.T, sent chan<- struct{}, open func()) {
	c, err := verbs.Open("mlx5_0")
	if err != nil {
		t.Error(err)
	}
	open()
	if err != nil {
		return
	}
	defer c.Close()
	for {
		cq, err := c.NewCQ(64)
		if err != nil {
			return
		}
		qp, err := c.NewQP(verbs.UD, cq)
		if err != nil {
			return
		}
		memory, err := c.Register(8192)
		if err != nil {
			return
		}
		if qp.Init(verbs.Path{Port: 1, QKey: datagramKey}) != nil || qp.Receive(1, memory, 4096, 4096) != nil || qp.Connect(verbs.Path{}) != nil {
			return
		}
		to, err := c.Address(1, 1)
		if err != nil {
			return
		}
		for range 8 {
			if qp.SendTo(2, memory, 0, 64, to, qp.Number, datagramKey) != nil {
				return
			}
			sent <- struct{}{}
		}
		if _, err := cq.Poll(); err != nil {
			return
		}
		if qp.Destroy() != nil {
			return
		}
	}
}

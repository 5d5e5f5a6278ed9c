package driver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/ibsimserver"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim"
)

// A flooder is another host. So it is a process of its own, with its own client of the
// simulator's socket, which sends as fast as that takes packets.

const flooderEnv = "PORTCULLIS_TEST_FLOODER"

// floodOrder is the order that a flooder reads when it starts.
type floodOrder struct {
	Socket, Node string
	Kind         string
	To           ib.LID         // of the manager
	Routes       [][]ib.PortNum // to the manager
}

// startFlooder starts a flooder. The function that it returns ends it.
func startFlooder(t *testing.T, o *floodOrder) (stop func()) {
	t.Helper()
	order, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return startOther(t, "flooder at "+o.Node, flooderEnv+"="+string(order), "GOMAXPROCS=1")
}

// startOther runs this program as another process, which reports when it is ready, and its result when it is to end.
func startOther(t *testing.T, what string, env ...string) (stop func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), env...)
	in, out := startPiped(t, cmd)
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return func() {
		_ = in.Close()
		said, err := io.ReadAll(out)
		if err := errors.Join(err, cmd.Wait()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		t.Logf("%s: %s", what, said)
	}
}

const simulatorEnv = "PORTCULLIS_TEST_SIMULATOR"

// floodFabric is where it is played.
func floodFabric() (*netlist.Netlist, error) {
	return netlist.FatTree2(netlist.Shape{Hosts: 36, Radix: 12})
}

// beSimulator is the process that serves the fabric.
func beSimulator() error {
	l, err := floodFabric()
	if err != nil {
		return err
	}
	server, err := ibsim.Listen(os.Getenv(simulatorEnv))
	if err != nil {
		return err
	}
	f := sim.New(l)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- ibsimserver.Serve(ctx, server, f) }()
	if _, err := os.Stdout.WriteString("."); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	s := f.Stats()
	_, err = fmt.Printf("%d packets sent, %d received, %d overflowed", s.Sent, s.Received, s.Overflowed)
	return errors.Join(err, <-done)
}

// beFlooder is the process.
func beFlooder() error {
	var o floodOrder
	if err := json.Unmarshal([]byte(os.Getenv(flooderEnv)), &o); err != nil {
		return err
	}
	port, err := ibsim.Dial(context.Background(), ibsim.Options{Socket: o.Socket, Node: o.Node})
	if err != nil {
		return err
	}
	go func() { // drops all that is received, until the order to end
		buf := make([]transport.Packet, 64)
		for {
			if _, err := port.Receive(buf); err != nil {
				return
			}
		}
	}()
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	if _, err := os.Stdout.WriteString("."); err != nil {
		return err
	}
	sent, packets := 0, make([]transport.Packet, 64)
	for n := uint64(0); ; {
		select {
		case <-ended:
			_, err := fmt.Print(sent, " packets sent")
			return errors.Join(err, port.Close())
		default:
		}
		for i := range packets {
			n++
			o.fill(&packets[i], n)
		}
		k, err := port.Send(packets)
		if sent += k; err != nil {
			return err
		}
	}
}

// fill makes a packet of the flood.
func (o *floodOrder) fill(p *transport.Packet, n uint64) {
	*p = transport.Packet{LID: o.To}
	switch o.Kind {
	case "SMInfo":
		var r mad.Route
		for _, out := range o.Routes[int(n)%len(o.Routes)] {
			r, _ = r.Append(out)
		}
		p.LID = ib.PermissiveLID
		mad.NewSMP(&p.MAD, mad.Header{Method: mad.MethodGet, Attr: mad.AttrSMInfo, TID: ib.TID(n)}, &r, ib.MKey{})
		back := p.MAD.ReturnPath()
		for i := len(back) - 8; i < len(back); i++ {
			back[i] = byte(rand.Uint32()) // behind what switches write
		}
	case "traps":
		p.MAD.SetHeader(mad.Header{Class: mad.ClassSubn, ClassVersion: 1, Method: mad.MethodTrap, Attr: mad.AttrNotice, TID: ib.TID(n)})
		_ = mad.Encode(p.MAD.Data(), &mad.Notice{NoticeHeader: mad.NoticeHeader{IsGeneric: true, TrapNumber: mad.TrapLinkStateChange}})
	default:
		p.QP = 1
		p.MAD.SetHeader(mad.Header{Class: mad.ClassComMgt, ClassVersion: 2, Method: mad.MethodSend, Attr: 0x0010, TID: ib.TID(n)})
	}
}

// wanderings are so many ways from a host to another, over switches, of at most 12 hops.
func wanderings(t *testing.T, l *netlist.Netlist, from, to string, count int) (routes [][]ib.PortNum) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, 17))
	seen := make(map[string]bool)
	for range 1 << 20 {
		if len(routes) == count {
			return routes
		}
		route, at := []ib.PortNum{1}, l.Find(l.Find(from).Ports[1].Peer)
		for len(route) < 12 {
			num := ib.PortNum(1 + rnd.IntN(len(at.Ports)-1))
			peer := at.Ports[num].Peer
			if peer == "" {
				continue
			}
			next := l.Find(peer)
			if next.Type != ib.NodeSwitch && peer != to {
				continue
			}
			route = append(route, num)
			if at = next; peer == to {
				break
			}
		}
		if key := string(route); at.Name == to && !seen[key] {
			seen[key] = true
			routes = append(routes, route)
		}
	}
	t.Fatalf("%d ways from %s to %s, want %d", len(routes), from, to, count)
	return nil
}

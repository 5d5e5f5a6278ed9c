// Package softhcaserver plugs adapters of the kernel module softhca into a simulated fabric: a node of the fabric is then
// the adapter of a Linux host, with all its ports. The agents of the node answer for the adapter's firmware. Changes at its
// ports are reported to the kernel of the host at once.
package softhcaserver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/transport/softhca"
)

// Server has the adapters of one fabric, which exchange data packets with each other.
type Server struct {
	fabric *sim.Fabric

	mu    sync.Mutex
	ports map[sim.Endpoint]*port
}

// New returns a server without adapters.
func New(f *sim.Fabric) *Server {
	return &Server{fabric: f, ports: map[sim.Endpoint]*port{}}
}

// Options say how a node appears in the host.
type Options struct {
	Node     string               // of the fabric; "" is the first
	Name     string               // of the device in the host; mlx5_0 if empty
	Flags    softhca.AdapterFlags // a virtual function, a plane
	Hold     time.Duration        // how long the host sees the device without its ports
	HCAType  string               // of the kernel's files; MT4129 if empty
	Board    string               // PSID
	PCI      string               // address of the PCI function that it is on; empty: none
	Firmware [3]uint16            // version; 28.43.1014 if zero
}

// Behavior is how an adapter's firmware answers its driver. The zero Behavior answers at once.
type Behavior struct {
	Delay  time.Duration
	Silent bool
}

// Adapter is a node that is plugged into a host.
type Adapter struct {
	server *Server
	conn   *softhca.Conn
	ports  []*port
	out    chan softhca.Message // bounded: messages without room are lost, as on a full link
	done   chan struct{}        // closed at the end

	mu       sync.Mutex
	behavior Behavior
	late     map[*time.Timer]struct{} // answers that wait for their time

	registered chan struct{} // closed when the host has the device, or refused it
	refused    error         // guarded by registered

	end  sync.Once
	work sync.WaitGroup
	err  error // guarded by done
}

// port is one of an adapter's ports.
type port struct {
	adapter *Adapter
	number  ib.PortNum
	host    *sim.HostPort

	mu    sync.Mutex
	table []byte // P_Keys that the host has
}

// mostOut is how many messages wait for a host that does not read.
const mostOut = 4096

// Plug plugs a node into the host that has the other end of a connection, and serves it until the connection ends, ctx
// does, or Unplug is called. It closes the connection in any case.
func (s *Server) Plug(ctx context.Context, conn *softhca.Conn, o Options) (*Adapter, error) {
	a := &Adapter{
		server: s, conn: conn, out: make(chan softhca.Message, mostOut), done: make(chan struct{}), registered: make(chan struct{}),
		late: map[*time.Timer]struct{}{},
	}
	attach, err := a.takePorts(&o)
	if err == nil {
		err = conn.Write(&softhca.Message{Type: softhca.TypeAttach, Payload: attach})
	}
	if err != nil {
		a.release()
		return nil, errors.Join(fmt.Errorf("plug in %q: %w", o.Node, err), conn.Close())
	}
	s.add(a)
	a.work.Go(a.write)
	a.work.Go(a.read)
	for _, p := range a.ports {
		a.work.Go(p.receive)
		a.work.Go(p.watch)
	}
	stop := context.AfterFunc(ctx, func() { a.stop(nil) })
	go func() {
		a.work.Wait()
		stop()
	}()
	return a, nil
}

// takePorts takes all ports of a node for the host, and describes the adapter to its kernel.
func (a *Adapter) takePorts(o *Options) ([]byte, error) {
	f, function := a.server.fabric, o.Flags&softhca.Function != 0
	first, err := f.HostPort(o.Node, 1, function)
	if err != nil {
		return nil, err
	}
	a.ports = []*port{{adapter: a, number: 1, host: first}}
	var info mad.NodeInfo
	if err := ask(first, mad.AttrNodeInfo, &info); err != nil {
		return nil, err
	}
	var description mad.NodeDescription
	if err := ask(first, mad.AttrNodeDescription, &description); err != nil {
		return nil, err
	}
	if info.NumPorts > softhca.MaxPorts {
		return nil, fmt.Errorf("it has %d ports: a host knows %d at most", info.NumPorts, softhca.MaxPorts)
	}
	for num := ib.PortNum(2); num <= ib.PortNum(info.NumPorts); num++ {
		h, err := f.HostPort(o.Node, num, function)
		if err != nil {
			return nil, err
		}
		a.ports = append(a.ports, &port{adapter: a, number: num, host: h})
	}
	attach := softhca.Attach{
		Name: o.Name, Flags: o.Flags, Ports: int(info.NumPorts), NodeType: info.NodeType, PKeys: int(info.PartitionCap), Hold: o.Hold,
		Vendor: info.VendorID, Device: uint32(info.DeviceID), Revision: info.Revision, Firmware: o.Firmware,
		NodeGUID: info.NodeGUID, SystemGUID: info.SystemImageGUID, Description: cut(description.String(), 63), HCAType: o.HCAType, Board: o.Board, PCI: o.PCI,
	}
	if attach.Name == "" {
		attach.Name = "mlx5_0"
	}
	if attach.HCAType == "" {
		attach.HCAType = "MT4129"
	}
	if attach.Firmware == [3]uint16{} {
		attach.Firmware = [3]uint16{28, 43, 1014}
	}
	return attach.Payload()
}

// cut shortens a text to most bytes.
func cut(s string, most int) string { return s[:min(len(s), most)] }

// ask gets an attribute from the node's own agent.
func ask[T any](h *sim.HostPort, attr mad.AttrID, to *T) error {
	var m mad.MAD
	mad.NewSMP(&m, mad.Header{Method: mad.MethodGet, Attr: attr}, nil, ib.MKey{})
	if !h.Ask(&m, false) || m.Status() != mad.StatusOK {
		return fmt.Errorf("its agent does not answer %v", attr)
	}
	return mad.Decode(m.Data(), to)
}

func (s *Server) add(a *Adapter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range a.ports {
		s.ports[p.host.Endpoint()] = p
	}
}

// Registered waits until the host has the device, and returns an error if it refused it or went away.
func (a *Adapter) Registered(ctx context.Context) error {
	select {
	case <-a.registered:
		return a.refused
	case <-a.done:
		select {
		case <-a.registered: // a host that went away afterwards
			return a.refused
		default:
			return errors.Join(errors.New("the host went away before it registered the adapter"), a.err)
		}
	case <-ctx.Done():
		return fmt.Errorf("the host has not registered the adapter: %w", context.Cause(ctx))
	}
}

// Behave changes how the adapter's firmware answers. Answers that wait already come when they were due.
func (a *Adapter) Behave(b Behavior) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.behavior = b
}

// Fatal reports to the host that the adapter has failed.
func (a *Adapter) Fatal() {
	a.send(softhca.Message{Type: softhca.TypeEvent, Port: 1, Value: uint32(softhca.EventFatal)})
}

// Unplug pulls the adapter out of its host and waits until nothing serves it any more.
func (a *Adapter) Unplug() {
	a.stop(nil)
	a.work.Wait()
}

// Done is closed when the adapter is out of its host.
func (a *Adapter) Done() <-chan struct{} { return a.done }

// Wait waits for the end of the adapter. The error is nil if Unplug or the context ended it.
func (a *Adapter) Wait() error {
	<-a.done
	a.work.Wait()
	return a.err
}

// stop ends all goroutines that serve the adapter, because of err.
func (a *Adapter) stop(err error) {
	a.end.Do(func() {
		a.err = err
		close(a.done)
		a.release()
		_ = a.conn.Close()
		a.mu.Lock()
		defer a.mu.Unlock()
		for t := range a.late {
			t.Stop()
		}
		clear(a.late)
	})
}

// release returns the ports to the fabric.
func (a *Adapter) release() {
	s := a.server
	s.mu.Lock()
	for _, p := range a.ports {
		if at := p.host.Endpoint(); s.ports[at] == p {
			delete(s.ports, at)
		}
	}
	s.mu.Unlock()
	for _, p := range a.ports {
		p.host.Close()
	}
}

// send queues a message for the host. One that finds no room is lost.
func (a *Adapter) send(m softhca.Message) {
	select {
	case a.out <- m:
	default:
	}
}

// must sends a message that may not be lost: it waits for room.
func (a *Adapter) must(m softhca.Message) {
	select {
	case a.out <- m:
	case <-a.done:
	}
}

// write sends the queued messages.
func (a *Adapter) write() {
	for {
		select {
		case m := <-a.out:
			if err := a.conn.Write(&m); err != nil && !softhca.IsRefusal(err) {
				a.stop(err)
				return
			}
		case <-a.done:
			return
		}
	}
}

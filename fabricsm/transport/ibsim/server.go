package ibsim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

const (
	// maxClients is how many clients a server takes. ibsim takes 10, but the
	// clients do not care.
	maxClients = 128
	// reapInterval is how often a server looks for clients that died.
	reapInterval = time.Second
)

// Network is the simulated fabric that a server serves.
type Network interface {
	// Attach puts a client at a node, "" meaning the first one; with asSM it
	// also receives requests.
	Attach(node string, asSM bool) (Attachment, error)
}

// Attachment is one client's place in the fabric.
type Attachment interface {
	// Node is the name of the node.
	Node() string
	// Query answers a Get of an SM attribute of the node itself.
	Query(attr mad.AttrID, mod uint32) (data [mad.DataSize]byte, ok bool)
	// Exchange sends packets and appends to arrived those that have come so far.
	Exchange(packets, arrived []transport.Packet) []transport.Packet
	// Receive waits for packets that others cause, and fails after Close.
	Receive(packets []transport.Packet) (int, error)
	SetIsSM(on bool)
	Close()
}

// InUseError means that another simulator has the socket base.
type InUseError struct{ Socket string }

func (e *InUseError) Error() string {
	return fmt.Sprintf("a simulator listens on socket %q already: stop it or choose another socket name", e.Socket)
}

// Server answers clients of the socket protocol in place of ibsim. Abstract names belong
// to a network namespace: Listen and Serve open sockets in that of the calling thread, so
// a goroutine that is locked to a thread in another namespace serves the clients there.
type Server struct {
	base string
	ctl  *net.UnixConn

	mu      sync.Mutex
	clients [maxClients]*serverClient
}

// Listen opens the control socket of a base name, "" meaning DefaultSocket.
// The error is an *InUseError if another simulator has it.
func Listen(base string) (*Server, error) {
	if base == "" {
		base = DefaultSocket
	}
	if len(base) > maxSocketName {
		return nil, fmt.Errorf("simulator socket name %.20q...: want at most %d bytes", base, maxSocketName)
	}
	ctl, err := net.ListenUnixgram("unixgram", address(base+":ctl"))
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return nil, &InUseError{Socket: base}
	case err != nil:
		return nil, fmt.Errorf("open simulator socket %q: %w", base, err)
	}
	return &Server{base: base, ctl: ctl}, nil
}

// Socket is the base of the socket names.
func (s *Server) Socket() string { return s.base }

// Serve answers clients until ctx ends, then closes every socket and returns
// nil. Every reapInterval it removes the clients that died without a word.
func (s *Server) Serve(ctx context.Context, network Network) error {
	var work sync.WaitGroup
	defer work.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	work.Go(func() {
		<-ctx.Done()
		_ = s.ctl.Close()
	})
	defer s.closeAll()
	var b [ctlSize + 1]byte
	next := time.Now().Add(reapInterval)
	for {
		if !time.Now().Before(next) {
			s.reap()
			next = time.Now().Add(reapInterval)
		}
		_ = s.ctl.SetReadDeadline(next) // of a socket that is closed, the read fails
		n, from, err := s.ctl.ReadFromUnix(b[:])
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read simulator socket %q: %w", s.base, err)
		}
		req, ok := decodeControl(b[:n])
		if !ok || from == nil || from.Name == "" {
			continue // as ibsim: no answer to data that is not a request
		}
		// The library wrote the terminating zero off the name.
		s.handle(&work, network, req, address(from.Name[1:]))
	}
}

// handle answers one control request. A client that does not take its answer
// loses it.
func (s *Server) handle(work *sync.WaitGroup, network Network, req control, from *net.UnixAddr) {
	reply := control{client: req.client, typ: req.typ}
	if req.typ == ctlConnect {
		if err := s.connect(work, network, req, from, &reply); err != nil {
			reply = control{typ: ctlError}
		}
	} else if c := s.client(req.client, from); c != nil {
		c.control(req, &reply)
		if req.typ == ctlDisconnect {
			s.remove(c)
		}
	} else {
		reply.typ = ctlError
	}
	_ = s.ctl.SetWriteDeadline(time.Now().Add(disconnectTimeout))
	_, _ = s.ctl.WriteToUnix(reply.encode(), from)
}

// client finds the client with a slot and checks that the request is its own.
func (s *Server) client(slot uint32, from *net.UnixAddr) *serverClient {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slot >= maxClients || s.clients[slot] == nil || s.clients[slot].ctl.Name != from.Name {
		return nil
	}
	return s.clients[slot]
}

var errNoSlot = errors.New("all client slots are taken")

// connect takes a client: it opens the data socket and connects it to the
// client's, which must be there.
func (s *Server) connect(work *sync.WaitGroup, network Network, req control, from *net.UnixAddr, reply *control) error {
	s.reap()
	info := decodeClientInfo(&req.data)
	slot, data, err := s.openSlot()
	if err != nil {
		return err
	}
	if err := connect(data, fmt.Sprintf("%s:in%d", s.base, info.number)); err != nil {
		return errors.Join(err, data.Close())
	}
	at, err := network.Attach(info.node, info.asSM)
	if err != nil {
		return errors.Join(err, data.Close())
	}
	c := &serverClient{slot: slot, ctl: from, at: at, data: data, recv: newReceiver(data), send: newSender(data)}
	s.mu.Lock()
	s.clients[slot] = c
	s.mu.Unlock()
	work.Go(func() { defer s.remove(c); c.readLoop() })
	work.Go(func() { defer s.remove(c); c.writeLoop() })
	reply.client, reply.length = uint32(slot), clientInfoSize
	(&clientInfo{number: uint32(slot), asSM: info.asSM, node: at.Node()}).encode(&reply.data)
	return nil
}

// openSlot opens the data socket of the first free slot. The name of a socket
// that was closed can be in use for a moment longer: a process that is just being
// started by this one still has it. Then the next slot will do.
func (s *Server) openSlot() (int, *socket, error) {
	for slot := range s.clients {
		if !s.free(slot) {
			continue
		}
		data, err := openSocket(fmt.Sprintf("%s:out%d", s.base, slot))
		if !errors.Is(err, unix.EADDRINUSE) {
			return slot, data, err
		}
	}
	return 0, nil, errNoSlot
}

func (s *Server) free(slot int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clients[slot] == nil
}

// remove takes a client away; its loops end. It is idempotent.
func (s *Server) remove(c *serverClient) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clients[c.slot] != c {
		return
	}
	s.clients[c.slot] = nil
	_ = c.data.Close()
	c.at.Close()
}

func (s *Server) closeAll() {
	for _, c := range s.list() {
		s.remove(c)
	}
}

func (s *Server) list() (all []*serverClient) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		if c != nil {
			all = append(all, c)
		}
	}
	return all
}

// reap removes the clients whose control socket is gone.
func (s *Server) reap() {
	for _, c := range s.list() {
		probe, err := net.DialUnix("unixgram", nil, c.ctl)
		if err == nil {
			_ = probe.Close()
			continue
		}
		// A client connected to us refuses others with EPERM: it lives.
		if errors.Is(err, unix.ECONNREFUSED) {
			s.remove(c)
		}
	}
}

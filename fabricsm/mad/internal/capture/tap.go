// Package capture is a tap for tests: it stands between unchanged libibumad
// programs and ibsim and records every MAD that passes.
package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
)

// Sizes and offsets of ibsim's datagrams. Control messages are in host byte
// order, which is little-endian wherever ibsim runs.
const (
	FrameSize   = 288 // a MAD with what ibsim puts in front
	FrameHeader = 32  // length of that part

	controlSize = 80
	offType     = 8
	offID       = 16 // of the client info in a CONNECT

	typeError      = 0
	typeConnect    = 1
	typeDisconnect = 2
)

// Frame is one datagram that passed the tap.
type Frame struct {
	Label  string // as SetLabel said when it passed
	ToSim  bool   // sent by the program; false: by the simulator
	Packet [FrameSize]byte
}

// Tap relays between programs that use the socket base it listens on and the
// simulator behind another base.
type Tap struct {
	base, sim string
	ctl       *net.UnixConn
	wait      sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	label   string
	alter   func(*Frame)
	frames  []Frame
	clients map[string]*client // by the address of the program's control socket
	last    int                // number of the newest client
	closed  bool
}

// client is one attached program.
type client struct {
	number int           // ours, in the place of the program's PID
	ctl    *net.UnixConn // to the simulator's control socket
	in     *net.UnixConn // MADs from and to the simulator
	out    *net.UnixConn // MADs from and to the program; nil until it is connected
}

func address(format string, args ...any) *net.UnixAddr {
	// The zero byte at the end of the name counts.
	return &net.UnixAddr{Net: "unixgram", Name: "@" + fmt.Sprintf(format, args...) + "\x00"}
}

// Listen makes a tap: programs attach to base, the simulator is at sim.
func Listen(base, sim string) (*Tap, error) {
	ctl, err := net.ListenUnixgram("unixgram", address("%s:ctl", base))
	if err != nil {
		return nil, fmt.Errorf("tap %s: %w", base, err)
	}
	t := &Tap{base: base, sim: sim, ctl: ctl, clients: map[string]*client{}}
	t.wait.Go(t.serveControl)
	return t, nil
}

// SetLabel names the frames to come.
func (t *Tap) SetLabel(s string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.label = s
}

// SetAlter sets a function that changes every frame before it is recorded and sent on. So programs can get answers that the
// simulator never sends. Nil ends this. f must not call the tap.
func (t *Tap) SetAlter(f func(*Frame)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.alter = f
}

// Frames returns the frames that passed so far.
func (t *Tap) Frames() []Frame {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Frame(nil), t.frames...)
}

// Close ends all relaying.
func (t *Tap) Close() error {
	t.mu.Lock()
	t.closed = true
	for _, c := range t.clients {
		c.close()
	}
	t.mu.Unlock()
	err := t.ctl.Close()
	t.wait.Wait()
	return err
}

func (c *client) close() {
	_ = c.ctl.Close()
	_ = c.in.Close()
	if c.out != nil {
		_ = c.out.Close()
	}
}

// serveControl hands each control message on and its answer back, one at a
// time. A message that cannot be handed on is answered with an error, because
// libibumad waits for an answer without end.
func (t *Tap) serveControl() {
	var msg [controlSize]byte
	for {
		n, from, err := t.ctl.ReadFromUnix(msg[:])
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n != controlSize {
			continue
		}
		from.Name += "\x00" // which package net takes off
		if err := t.control(msg[:], from); err != nil {
			binary.LittleEndian.PutUint32(msg[offType:], typeError)
		}
		_, _ = t.ctl.WriteToUnix(msg[:], from)
	}
}

func (t *Tap) control(msg []byte, from *net.UnixAddr) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return net.ErrClosed
	}
	kind := binary.LittleEndian.Uint32(msg[offType:])
	c := t.clients[from.Name]
	if kind == typeConnect {
		return t.connect(msg, from)
	}
	if c == nil {
		return fmt.Errorf("control message before CONNECT")
	}
	if err := c.ask(msg); err != nil {
		return err
	}
	if kind == typeDisconnect {
		c.close()
		delete(t.clients, from.Name)
	}
	return nil
}

// ask sends msg to the simulator and replaces it by the answer.
func (c *client) ask(msg []byte) error {
	if _, err := c.ctl.Write(msg); err != nil {
		return err
	}
	_, err := c.ctl.Read(msg)
	return err
}

func (t *Tap) connect(msg []byte, from *net.UnixAddr) error {
	pid := binary.LittleEndian.Uint32(msg[offID:])
	t.last++
	c := &client{number: t.last}
	var err error
	if c.ctl, err = net.DialUnix("unixgram", address("%s:ctl%d", t.sim, c.number), address("%s:ctl", t.sim)); err != nil {
		return err
	}
	if c.in, err = net.ListenUnixgram("unixgram", address("%s:in%d", t.sim, c.number)); err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(msg[offID:], uint32(c.number))
	if err := c.ask(msg); err != nil {
		c.close()
		return err
	}
	if binary.LittleEndian.Uint32(msg[offType:]) != typeConnect {
		c.close()
		return nil // refused, and the answer says so
	}
	slot := binary.LittleEndian.Uint32(msg[offID:])
	if c.out, err = net.ListenUnixgram("unixgram", address("%s:out%d", t.base, slot)); err != nil {
		c.close()
		return err
	}
	t.clients[from.Name] = c
	t.wait.Go(func() { t.relay(c.out, c.in, address("%s:out%d", t.sim, slot), true) })
	t.wait.Go(func() { t.relay(c.in, c.out, address("%s:in%d", t.base, pid), false) })
	return nil
}

// relay copies MADs from one socket to an address, through another socket, and
// records them before they are sent.
func (t *Tap) relay(from, by *net.UnixConn, to *net.UnixAddr, toSim bool) {
	for {
		f := Frame{ToSim: toSim}
		n, err := from.Read(f.Packet[:])
		if err != nil {
			return
		}
		if n == FrameSize {
			t.record(&f)
		}
		if _, err := by.WriteToUnix(f.Packet[:n], to); errors.Is(err, net.ErrClosed) {
			return
		}
	}
}

func (t *Tap) record(f *Frame) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f.Label = t.label
	if t.alter != nil {
		t.alter(f)
	}
	t.frames = append(t.frames, *f)
}

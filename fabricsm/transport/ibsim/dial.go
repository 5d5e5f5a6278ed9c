package ibsim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// DefaultSocket is the base name that ibsim and its clients use when
// IBSIM_SOCKNAME is not set.
const DefaultSocket = "sim"

const (
	// controlTimeout bounds a control request. ibsim answers in microseconds
	// unless it is busy with a client that does not read.
	controlTimeout = 5 * time.Second
	// disconnectTimeout bounds the courtesy of a DISCONNECT.
	disconnectTimeout = 200 * time.Millisecond
	// maxSocketName keeps a name with its longest suffix within the kernel's
	// 108 bytes.
	maxSocketName = 80
	// maxAttachments is how many ports one process can have on one simulator.
	maxAttachments = 256
	// pidBits is the width of the largest process number of Linux.
	pidBits = 22
)

// Options say where to attach.
type Options struct {
	Socket string // base of the socket names; empty means DefaultSocket
	Node   string // node id or description, up to 31 bytes; empty means the first of the netlist

	// AsSM asks for the requests that arrive on QP0 and QP1 of the port, not
	// only for answers to our own. It does not set the IsSM bit. A node has at
	// most one such client.
	AsSM bool
}

// NotRunningError means that no simulator listens on a socket base.
type NotRunningError struct{ Socket string }

func (e *NotRunningError) Error() string {
	return fmt.Sprintf("no simulator listens on socket %q: start portcullis-sim or ibsim, or check the name of the socket (IBSIM_SOCKNAME)", e.Socket)
}

// RefusedError means that the simulator answered CONNECT with a refusal, for
// which the protocol knows no reason.
type RefusedError struct {
	Socket string
	Node   string
	AsSM   bool
}

func (e *RefusedError) Error() string {
	why := "the node is unknown or all client slots are taken"
	if e.AsSM {
		why = "the node is unknown, it has an SM client already, or all client slots are taken"
	}
	return fmt.Sprintf("simulator on socket %q refuses to attach to node %q: %s", e.Socket, e.Node, why)
}

// Port is an attachment to one port of a simulated fabric. It implements
// transport.Port.
type Port struct {
	socket string
	node   string
	guid   ib.GUID
	slot   uint32

	ctlMu sync.Mutex // one control request at a time
	ctl   *net.UnixConn

	data *socket
	send *sender
	recv *receiver

	watch watch
	lanes *lanes // nil: subnet administration has none of its own

	closeOnce sync.Once
	closed    chan struct{}
}

var _ transport.Port = (*Port)(nil)

// Dial attaches to a node of the simulator. The errors it can return include
// *NotRunningError and *RefusedError. ctx bounds the handshake only.
func Dial(ctx context.Context, o Options) (*Port, error) {
	if o.Socket == "" {
		o.Socket = DefaultSocket
	}
	if len(o.Socket) > maxSocketName {
		return nil, fmt.Errorf("simulator socket name %.20q...: want at most %d bytes", o.Socket, maxSocketName)
	}
	if len(o.Node) >= nodeIDSize {
		return nil, fmt.Errorf("simulator node name %q: want at most %d bytes", o.Node, nodeIDSize-1)
	}
	return dialOver(ctx, o)
}

// dialOnce attaches with options that have been checked.
func dialOnce(ctx context.Context, o Options) (*Port, error) {
	ctl, number, err := bindControl(ctx, o.Socket)
	if err != nil {
		return nil, err
	}
	p := &Port{socket: o.Socket, ctl: ctl, closed: make(chan struct{})}
	if err := p.attach(ctx, o, number); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// address makes an abstract socket name. The terminating zero byte is part of
// the names of this protocol.
func address(name string) *net.UnixAddr {
	return &net.UnixAddr{Name: "@" + name + "\x00", Net: "unixgram"}
}

// bindControl binds the control socket under the first free client number and
// connects it. The number starts with the process number, as other clients'
// does, so that processes do not meet.
func bindControl(ctx context.Context, base string) (*net.UnixConn, uint32, error) {
	for k := range uint32(maxAttachments) {
		number := uint32(os.Getpid()) | k<<pidBits
		local := address(fmt.Sprintf("%s:ctl%d", base, number))
		d := net.Dialer{LocalAddr: local}
		conn, err := d.DialContext(ctx, "unixgram", address(base+":ctl").Name)
		switch {
		case err == nil:
			return conn.(*net.UnixConn), number, nil
		case errors.Is(err, unix.EADDRINUSE):
		case errors.Is(err, unix.ECONNREFUSED):
			return nil, 0, &NotRunningError{Socket: base}
		default:
			return nil, 0, fmt.Errorf("open control socket of simulator %q: %w", base, err)
		}
	}
	return nil, 0, fmt.Errorf("attach to simulator %q: this process has %d attachments, the most it can have", base, maxAttachments)
}

// attach runs the handshake. The data socket must be bound before CONNECT:
// ibsim connects back to it, and ends when it is not there.
func (p *Port) attach(ctx context.Context, o Options, number uint32) error {
	data, err := openSocket(fmt.Sprintf("%s:in%d", o.Socket, number))
	if err != nil {
		return fmt.Errorf("bind data socket of simulator %q: %w", o.Socket, err)
	}
	p.data = data
	req := control{typ: ctlConnect, length: clientInfoSize}
	(&clientInfo{number: number, asSM: o.AsSM, node: o.Node}).encode(&req.data)
	reply, err := p.control(ctx, req)
	if err != nil {
		return err
	}
	if reply.typ == ctlError {
		return &RefusedError{Socket: o.Socket, Node: o.Node, AsSM: o.AsSM}
	}
	info := decodeClientInfo(&reply.data)
	p.slot, p.node = info.number, info.node
	if err := connect(data, fmt.Sprintf("%s:out%d", o.Socket, p.slot)); err != nil {
		return fmt.Errorf("connect data socket of simulator %q: %w", o.Socket, err)
	}
	p.send, p.recv = newSender(data), newReceiver(data)
	return p.learnGUID(ctx)
}

// learnGUID asks our own node for its NodeInfo, by an SMP that does not leave
// it. The control requests will not do: ibsim 0.10 answers GET_GUID with bytes
// in no usable order and GET_NODEINFO with the GUID of the node.
func (p *Port) learnGUID(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = p.data.Close() })
	defer stop()
	packets := make([]transport.Packet, 1)
	packets[0].LID = ib.PermissiveLID
	mad.NewSMP(&packets[0].MAD, mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo, TID: guidTID}, &mad.Route{}, ib.MKey{})
	_, err := p.Send(packets)
	for err == nil {
		_, err = p.Receive(packets)
		if m := &packets[0].MAD; err == nil && uint32(m.TID()) == guidTID && m.Attr() == mad.AttrNodeInfo {
			p.guid = ib.GUID(binary.BigEndian.Uint64(m.Data()[nodeInfoPortGUID:]))
			return nil
		}
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("ask simulator %q for our port GUID: %w", p.socket, err)
}

const (
	// nodeInfoPortGUID is the offset of PortGUID in NodeInfo.
	nodeInfoPortGUID = 20
	// guidTID marks the answer to learnGUID among requests of others.
	guidTID = 0x706F7274
)

func connect(c syscall.RawConn, name string) error {
	var inner error
	err := c.Control(func(fd uintptr) {
		inner = unix.Connect(int(fd), &unix.SockaddrUnix{Name: address(name).Name})
	})
	return errors.Join(err, inner)
}

// GUID is the port GUID of the port we sit on.
func (p *Port) GUID() ib.GUID { return p.guid }

// Node is the node id that the simulator attached us to.
func (p *Port) Node() string { return p.node }

// Slot returns the client number that the simulator assigned, 0 to 9. ibsim writes it into the upper 16 bits of the
// transaction identifier of our requests.
func (p *Port) Slot() int { return int(p.slot) }

// SetIsSM sets or clears the IsSM bit in the port's capability mask. The port must have been dialed AsSM to receive the
// packets that arrive because of it.
func (p *Port) SetIsSM(on bool) error {
	req := control{client: p.slot, typ: ctlSetIsSM, length: 4}
	if on {
		binary.NativeEndian.PutUint32(req.data[:], 1)
	}
	_, err := p.control(context.Background(), req)
	return err
}

// Close detaches from the simulator and wakes a blocked Receive. It is
// idempotent.
func (p *Port) Close() error {
	p.closeOnce.Do(func() {
		close(p.closed)
		if p.send != nil {
			p.disconnect()
		}
		_ = p.ctl.Close()
		if p.lanes != nil {
			p.lanes.close()
		}
		if p.data != nil {
			_ = p.data.Close()
		}
		if p.lanes != nil {
			p.lanes.free()
		}
	})
	return nil
}

// disconnect frees our slot. It waits for the answer, but not long: the
// simulator may be gone, or unable to answer before we close the data socket.
func (p *Port) disconnect() {
	if !p.ctlMu.TryLock() {
		return // a request is under way and will fail when the socket closes
	}
	defer p.ctlMu.Unlock()
	_ = p.ctl.SetDeadline(time.Now().Add(disconnectTimeout))
	_, _ = p.exchange(control{client: p.slot, typ: ctlDisconnect})
}

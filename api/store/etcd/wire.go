package etcd

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// The member's process is reached over socket pairs alone, which no other process can
// open: a caller makes a pair and sends one end over a control socket, itself a pair that
// the process inherited.

// pair returns the two ends of a new connection.
func pair() (ours *net.UnixConn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the store: %w", os.NewSyscallError("socketpair", err))
	}
	theirs = os.NewFile(uintptr(fds[1]), "store")
	ours, err = connOf(os.NewFile(uintptr(fds[0]), "store"))
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return ours, theirs, nil
}

// connOf turns a socket into a connection. It closes f.
func connOf(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("connect to the store: %w", err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("connect to the store: descriptor %v is no unix socket", f.Fd()), c.Close())
	}
	return u, nil
}

// dialOver connects to the process at the other end of a control socket.
func dialOver(control *net.UnixConn) (net.Conn, error) {
	ours, theirs, err := pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	if _, _, err := control.WriteMsgUnix([]byte{0}, unix.UnixRights(int(theirs.Fd())), nil); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the store: %w", err), ours.Close())
	}
	return ours, nil
}

// handed is the listener at the other end: it accepts the connections that dialOver sends.
type handed struct {
	control *net.UnixConn
	once    sync.Once
}

// Accept implements net.Listener.
func (h *handed) Accept() (net.Conn, error) {
	var b [1]byte
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := h.control.ReadMsgUnix(b[:], oob)
	if err == nil && n == 0 && oobn == 0 {
		err = io.EOF
	}
	if err != nil {
		return nil, fmt.Errorf("accept a connection to the store: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err == nil && len(messages) != 1 {
		err = fmt.Errorf("%d control messages came, not one", len(messages))
	}
	if err != nil {
		return nil, fmt.Errorf("accept a connection to the store: %w", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, fmt.Errorf("accept a connection to the store: %d descriptors came, not one (%w)", len(fds), errors.Join(err))
	}
	unix.CloseOnExec(fds[0])
	return connOf(os.NewFile(uintptr(fds[0]), "store"))
}

// Close implements net.Listener.
func (h *handed) Close() error {
	var err error
	h.once.Do(func() { err = h.control.Close() })
	return err
}

// Addr implements net.Listener.
func (h *handed) Addr() net.Addr { return h.control.LocalAddr() }

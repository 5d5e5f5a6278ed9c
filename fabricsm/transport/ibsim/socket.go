package ibsim

import (
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// socket is a datagram socket that the Go runtime does not watch. A watched socket wakes a thread of ours with every
// datagram, also while a goroutine takes them without waiting. That would cost ibsim and us a third of all our time. Its
// descriptor blocks; a caller that must not wait requests that in each call.
type socket struct {
	fd, bell int          // Close rings the bell
	using    sync.RWMutex // read-locked while the descriptors are in use
	closed   atomic.Bool
	deadline atomic.Int64 // of Read, in nanoseconds since 1970; 0: none
}

var _ syscall.RawConn = (*socket)(nil)

// openSocket opens a socket and binds it to a name.
func openSocket(name string) (*socket, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: address(name).Name}); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("bind", err)
	}
	bell, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("eventfd", err)
	}
	return &socket{fd: fd, bell: bell}, nil
}

// Control implements syscall.RawConn. Close waits for f, and lets it go on if it
// waits for something to receive.
func (s *socket) Control(f func(fd uintptr)) error {
	s.using.RLock()
	defer s.using.RUnlock()
	if s.closed.Load() {
		return net.ErrClosed
	}
	f(uintptr(s.fd))
	return nil
}

// Read implements syscall.RawConn: it calls f until f returns true, and waits
// before each further call until there is something to receive.
func (s *socket) Read(f func(fd uintptr) bool) error { return s.attempt(f, unix.POLLIN) }

// Write implements syscall.RawConn; it waits for room to send.
func (s *socket) Write(f func(fd uintptr) bool) error { return s.attempt(f, unix.POLLOUT) }

func (s *socket) attempt(f func(fd uintptr) bool, event int16) error {
	s.using.RLock()
	defer s.using.RUnlock()
	for {
		if s.closed.Load() {
			return net.ErrClosed
		}
		if f(uintptr(s.fd)) {
			return nil
		}
		var patience *unix.Timespec
		if at := s.deadline.Load(); at != 0 && event == unix.POLLIN {
			left := at - time.Now().UnixNano()
			if left <= 0 {
				return os.ErrDeadlineExceeded
			}
			t := unix.NsecToTimespec(left)
			patience = &t
		}
		watched := []unix.PollFd{{Fd: int32(s.fd), Events: event}, {Fd: int32(s.bell), Events: unix.POLLIN}}
		if _, err := unix.Ppoll(watched, patience, nil); err != nil && err != unix.EINTR {
			return os.NewSyscallError("ppoll", err)
		}
	}
}

// SetReadDeadline bounds the next Read.
func (s *socket) SetReadDeadline(t time.Time) error {
	s.deadline.Store(t.UnixNano())
	return nil
}

// Close wakes waiting callers and frees the descriptors when they are no longer in use.
func (s *socket) Close() error {
	if s.closed.Swap(true) {
		return net.ErrClosed
	}
	_ = unix.Shutdown(s.fd, unix.SHUT_RD)
	_, _ = unix.Write(s.bell, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	s.using.Lock()
	defer s.using.Unlock()
	_ = unix.Close(s.bell)
	return os.NewSyscallError("close", unix.Close(s.fd))
}

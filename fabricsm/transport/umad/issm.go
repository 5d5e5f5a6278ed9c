package umad

import (
	"errors"
	"sync"

	"golang.org/x/sys/unix"

	"portcullis/fabricsm/transport"
)

// issm is the file that sets the IsSM bit while it is open.
type issm struct {
	path string

	mu    sync.Mutex
	fd    int // -1 while the bit is not set by us
	ended bool
}

// SetIsSM sets or clears the IsSM bit in the port's capability mask. The errors
// it can return include *OpenError, and *TakenError when another subnet manager
// of this machine has set the bit.
func (p *Port) SetIsSM(on bool) error {
	s := &p.issm
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return transport.ErrClosed
	case on == (s.fd >= 0):
		return nil
	case !on:
		return s.clear()
	}
	fd, err := p.sys.open(s.path)
	if errors.Is(err, unix.EAGAIN) {
		return &TakenError{Path: s.path}
	}
	if err != nil {
		return &OpenError{Path: s.path, Err: err}
	}
	s.fd = fd
	return nil
}

// clear closes the file. The descriptor is closed even if the kernel returns an error for the bit.
func (s *issm) clear() error {
	fd := s.fd
	s.fd = -1
	return unix.Close(fd)
}

// end clears the bit permanently.
func (s *issm) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.fd < 0 {
		return nil
	}
	return s.clear()
}

package agent_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"portcullis/attest/tpm/tpmtest"
)

// spy passes commands to a software TPM, one client at a time.
type spy struct {
	t    *testing.T
	path string
	to   string

	mu       sync.Mutex // guards what follows
	commands int
	// onAnswer is called after the TPM has done each command. The answer is passed on when onAnswer returns, but not if it
	// returns false.
	onAnswer func(n int, command uint32) bool
}

func newSpy(t *testing.T, device string) *spy {
	t.Helper()
	s := &spy{t: t, path: filepath.Join(tpmtest.ShortDir(t), "spy"), to: strings.TrimPrefix(device, "unix:")}
	l, err := net.Listen("unix", s.path)
	must(t, err)
	tpmtest.ServeInTurn(t, l, s.serve)
	return s
}

func (s *spy) device() string { return "unix:" + s.path }

// observe has f called for each command from now on, counted from 1. Nil ends that; the count goes on.
func (s *spy) observe(f func(n int, command uint32) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.onAnswer = f; f != nil {
		s.commands = 0
	}
}

func (s *spy) serve(ctx context.Context, c net.Conn) {
	dev, err := new(net.Dialer).DialContext(ctx, "unix", s.to)
	if err != nil {
		return
	}
	defer dev.Close()
	for {
		command, err := readTPM(c)
		if err != nil {
			return
		}
		if _, err := dev.Write(command); err != nil {
			return
		}
		answer, err := readTPM(dev)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.commands++
		n, f := s.commands, s.onAnswer
		s.mu.Unlock()
		if f != nil && !f(n, binary.BigEndian.Uint32(command[6:])) {
			return
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

// readTPM reads one command or answer: tag, size, code, and the rest.
func readTPM(r io.Reader) ([]byte, error) {
	b := make([]byte, 10, 4096)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	b = b[:min(binary.BigEndian.Uint32(b[2:]), 4096)]
	_, err := io.ReadFull(r, b[10:])
	return b, err
}

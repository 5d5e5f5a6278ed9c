package softhca

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
)

// Device is the file of the module.
const Device = "/dev/softhca"

// Conn carries messages. One goroutine reads; any may write and close.
type Conn struct {
	stream io.ReadWriteCloser
	name   string

	in   []byte // room for two messages: a device returns one at a time, and only if all of it fits
	have int    // bytes of it that were read
	used int    // of these, by the message read last

	mu  sync.Mutex // of writes
	out []byte
}

// Open opens a device file, or with unix:PATH connects to a socket.
func Open(ctx context.Context, name string) (*Conn, error) {
	if path, ok := strings.CutPrefix(name, "unix:"); ok {
		var d net.Dialer
		c, err := d.DialContext(ctx, "unix", path)
		if err != nil {
			return nil, fmt.Errorf("open adapter %s: %w", name, err)
		}
		return NewConn(c, name), nil
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open adapter: %w: is the module softhca loaded?", err)
	}
	return NewConn(f, name), nil
}

// NewConn carries messages over a stream, or over a device that transfers one message per call. The name is for errors.
func NewConn(stream io.ReadWriteCloser, name string) *Conn {
	return &Conn{stream: stream, name: name, in: make([]byte, 2*MaxMessage)}
}

// Read waits for the next message. Its payload is good until the next call.
func (c *Conn) Read() (Message, error) {
	c.have = copy(c.in, c.in[c.used:c.have])
	c.used = 0
	for {
		m, size, err := Parse(c.in[:c.have])
		if err != nil {
			return Message{}, fmt.Errorf("adapter %s: %w", c.name, err)
		}
		if size > 0 {
			c.used = size
			return m, nil
		}
		n, err := c.stream.Read(c.in[c.have:])
		c.have += n
		if n == 0 && err != nil {
			return Message{}, fmt.Errorf("adapter %s: %w", c.name, err)
		}
	}
}

// Write sends a message.
func (c *Conn) Write(m *Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = m.Append(c.out[:0])
	if _, err := c.stream.Write(c.out); err != nil {
		return fmt.Errorf("adapter %s: %w", c.name, err)
	}
	return nil
}

// IsRefusal reports whether the module refused a single message: for an adapter that it has not registered yet, or a port
// that it does not have.
func IsRefusal(err error) bool {
	return errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.EINVAL)
}

// Close ends the connection, which pulls the adapter.
func (c *Conn) Close() error { return c.stream.Close() }

package tpm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	headerSize     = 10   // of commands and responses: tag, size, code
	maxResponse    = 4096 // no TPM answers more
	commandTimeout = 60 * time.Second
	closeTimeout   = 5 * time.Second
	maxRetries     = 12 // with retryFirst doubling to retryMost: about 5 s
	retryFirst     = 5 * time.Millisecond
	retryMost      = 640 * time.Millisecond
)

// Response codes that ask to send the command again (TPM 2.0 part 2, 6.6.3).
const (
	rcYielded = 0x908
	rcTesting = 0x90a
	rcRetry   = 0x922
)

// conn is one connection to a TPM: commands one at a time, each with a deadline.
// After a fault of the stream it stays closed, because the next answer could be that
// of an earlier command.
type conn struct {
	name string
	rw   io.ReadWriteCloser
	// left is called for a call that was left behind, with a channel that is closed when it returns. It is nil where
	// closing rw ends every call and takes no time.
	left func(returned <-chan struct{})

	turn  chan struct{} // holds a value while no command is under way
	dead  error         // why there are no more commands; belongs to the command under way
	ended chan struct{} // is closed by Close

	end, release sync.Once
}

func newConn(name string, rw io.ReadWriteCloser, left func(<-chan struct{})) *conn {
	c := &conn{name: name, rw: rw, left: left, turn: make(chan struct{}, 1), ended: make(chan struct{})}
	c.turn <- struct{}{}
	return c
}

// bound is a conn under a context; it implements transport.TPM.
type bound struct {
	ctx context.Context
	c   *conn
}

// Send implements transport.TPM.
func (b bound) Send(command []byte) ([]byte, error) { return b.c.send(b.ctx, command) }

func (c *conn) send(ctx context.Context, command []byte) ([]byte, error) {
	select {
	case <-c.turn:
		defer func() { c.turn <- struct{}{} }()
	case <-c.ended:
		return nil, c.closed()
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: another command is under way: %w", c.name, context.Cause(ctx))
	}
	wait := retryFirst
	for try := 0; ; try++ {
		answer, err := c.once(ctx, command)
		if err != nil || !wantsRetry(answer) || try == maxRetries {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-c.ended:
			return nil, c.closed()
		case <-time.After(wait):
		}
		wait = min(2*wait, retryMost)
	}
}

// once runs a command unless an earlier one failed. Only one goroutine may.
func (c *conn) once(ctx context.Context, command []byte) ([]byte, error) {
	switch {
	case c.isClosed():
		return nil, c.closed()
	case ctx.Err() != nil: // nothing was sent: the connection stays good
		return nil, context.Cause(ctx)
	case c.dead != nil:
		return nil, fmt.Errorf("%s: closed, because an earlier command failed; open the TPM again: %w", c.name, c.dead)
	}
	answer, err := c.exchange(ctx, command)
	switch {
	case err == nil:
		return answer, nil
	case c.isClosed():
		return nil, c.closed()
	}
	c.dead = err
	return nil, fmt.Errorf("%s: %w", c.name, err)
}

func wantsRetry(answer []byte) bool {
	switch binary.BigEndian.Uint32(answer[6:headerSize]) {
	case rcYielded, rcTesting, rcRetry:
		return true
	default:
		return false
	}
}

// exchange runs one command in a goroutine of its own, since a device's calls have no deadline. When time is up, or the
// connection is closed, the caller is free. Closing ends the calls of a socket. Those of a device return when the driver
// times out, and are left behind until then.
func (c *conn) exchange(ctx context.Context, command []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, commandTimeout, ErrSilent)
	defer cancel()
	var answer []byte
	var err error
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		answer, err = roundTrip(c.rw, command)
	}()
	var abandoned error
	select {
	case <-returned:
		if err != nil {
			return nil, errors.Join(err, c.shut())
		}
		return answer, nil
	case <-ctx.Done():
		abandoned = context.Cause(ctx)
	case <-c.ended:
		abandoned = io.ErrClosedPipe
	}
	if c.left != nil {
		c.left(returned)
	}
	return nil, errors.Join(abandoned, c.shut())
}

// roundTrip writes a command and reads its answer. The device returns an answer in one read; a stream may return it in
// pieces.
func roundTrip(rw io.ReadWriter, command []byte) ([]byte, error) {
	if _, err := rw.Write(command); err != nil {
		return nil, fmt.Errorf("write command: %w", err)
	}
	buf, n := make([]byte, maxResponse), 0
	for {
		m, err := rw.Read(buf[n:])
		n += m
		whole, sizeErr := complete(buf[:n])
		switch {
		case sizeErr != nil:
			return nil, sizeErr
		case whole:
			return buf[:n], nil
		case err != nil:
			return nil, fmt.Errorf("%w: read answer: %w", ErrSilent, noEOF(err))
		case m == 0:
			return nil, fmt.Errorf("%w: empty answer", ErrBroken)
		}
	}
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// complete reports whether b is exactly one response.
func complete(b []byte) (bool, error) {
	if len(b) < headerSize {
		return false, nil
	}
	size := binary.BigEndian.Uint32(b[2:6])
	switch {
	case size < headerSize || size > maxResponse:
		return false, fmt.Errorf("%w: response of %d bytes", ErrBroken, size)
	case len(b) > int(size):
		return false, fmt.Errorf("%w: %d bytes after a response of %d", ErrBroken, len(b)-int(size), size)
	}
	return len(b) == int(size), nil
}

// Close ends the connection, and the command that is under way with it. It waits for
// neither: the descriptor of a device is closed when its last call returns.
func (c *conn) Close() error {
	c.end.Do(func() { close(c.ended) })
	return c.shut()
}

func (c *conn) isClosed() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

func (c *conn) closed() error { return fmt.Errorf("%s: %w", c.name, io.ErrClosedPipe) }

// shut closes the file or socket, once. Linux closes a device with resource manager
// when the TPM is done with the command that it has, even another process's, so a
// close that takes long is left behind too.
func (c *conn) shut() (err error) {
	c.release.Do(func() {
		if c.left == nil {
			err = c.rw.Close()
			return
		}
		closed, returned := make(chan error, 1), make(chan struct{})
		go func() {
			defer close(returned)
			closed <- c.rw.Close()
		}()
		select {
		case err = <-closed:
		case <-time.After(closeTimeout):
			c.left(returned)
			err = fmt.Errorf("%s: close: %w", c.name, ErrStuck)
		}
	})
	return err
}

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

// conn is one connection to a TPM: commands one at a time, each with a
// deadline. After a fault of the stream it stays closed, because the next
// answer could be that of an earlier command.
type conn struct {
	name string

	mu   sync.Mutex
	rw   io.ReadWriteCloser
	dead error
}

// bound is a conn under a context; it implements transport.TPM.
type bound struct {
	ctx context.Context
	c   *conn
}

// Send implements transport.TPM.
func (b bound) Send(command []byte) ([]byte, error) { return b.c.send(b.ctx, command) }

func (c *conn) send(ctx context.Context, command []byte) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wait := retryFirst
	for try := 0; ; try++ {
		if c.dead != nil {
			return nil, c.dead
		}
		answer, err := c.exchange(ctx, command)
		if err != nil {
			c.dead = fmt.Errorf("%s: %w", c.name, err)
			return nil, c.dead
		}
		if !wantsRetry(answer) || try == maxRetries {
			return answer, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(wait):
		}
		wait = min(2*wait, retryMost)
	}
}

func wantsRetry(answer []byte) bool {
	switch binary.BigEndian.Uint32(answer[6:headerSize]) {
	case rcYielded, rcTesting, rcRetry:
		return true
	default:
		return false
	}
}

// exchange runs one command in a goroutine of its own: reading from a device
// file has no deadline. When time is up the file is closed; a read that does
// not return even then is left behind, and the process is about to end.
func (c *conn) exchange(ctx context.Context, command []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, commandTimeout, ErrSilent)
	defer cancel()
	type result struct {
		answer []byte
		err    error
	}
	done := make(chan result, 1)
	go func() {
		answer, err := roundTrip(c.rw, command)
		done <- result{answer, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			c.rw.Close()
		}
		return r.answer, r.err
	case <-ctx.Done():
		c.rw.Close()
		return nil, context.Cause(ctx)
	}
}

// roundTrip writes a command and reads its answer. The device gives an answer
// in one read; a stream may give it in pieces.
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

// Close ends the connection.
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead != nil {
		return nil
	}
	c.dead = fmt.Errorf("%s: %w", c.name, io.ErrClosedPipe)
	return c.rw.Close()
}

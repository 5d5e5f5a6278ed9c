package tpm

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

// serve answers each command on the other end of a pipe with the next answer.
func serve(t *testing.T, answers ...[]byte) *conn {
	t.Helper()
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		buf := make([]byte, maxResponse)
		for _, a := range answers {
			if _, err := server.Read(buf); err != nil {
				return
			}
			for _, c := range a { // one byte at a time: a stream may do that
				if _, err := server.Write([]byte{c}); err != nil {
					return
				}
			}
		}
		// The next command is taken and never answered.
		if _, err := server.Read(buf); err != nil {
			return
		}
		<-t.Context().Done()
	}()
	return newConn("test", client, nil)
}

func answer(code byte, extra ...byte) []byte {
	return append([]byte{0x80, 1, 0, 0, 0, byte(headerSize + len(extra)), 0, 0, 9 * boolByte(code != 0), code}, extra...)
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func TestSendRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := serve(t, answer(0x22), answer(0x08), answer(0x0a), answer(0, 1, 2))
		defer c.Close()
		got, err := c.send(t.Context(), []byte{1})
		if err != nil || len(got) != headerSize+2 {
			t.Errorf("got %x, %v", got, err)
		}
	})
}

func TestSendTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := serve(t)
		if _, err := c.send(ctx, []byte{1}); !errors.Is(err, ErrSilent) {
			t.Errorf("got %v, want %v", err, ErrSilent)
		}
		switch _, err := c.send(ctx, []byte{1}); {
		case !errors.Is(err, ErrSilent), !strings.Contains(err.Error(), "closed, because an earlier command failed"):
			t.Errorf("after the fault: got %v, want the connection refused, with %v", err, ErrSilent)
		}
	})
}

// A command whose context is over before its turn leaves the connection as it is.
func TestSendNotBegun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := serve(t, answer(0))
		defer c.Close()
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.send(over, []byte{1}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		if _, err := c.send(t.Context(), []byte{1}); err != nil {
			t.Errorf("the next command: %v", err)
		}
	})
}

// stuck is a device whose close waits for another process's command.
type stuck struct {
	net.Conn
	done chan struct{}
}

func (s stuck) Close() error {
	<-s.done
	return s.Conn.Close()
}

func TestCloseIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer server.Close()
		done := make(chan struct{})
		var left <-chan struct{}
		c := newConn("test", stuck{client, done}, func(returned <-chan struct{}) { left = returned })
		if err := c.Close(); !errors.Is(err, ErrStuck) || left == nil {
			t.Errorf("close: %v, left behind: %v; want %v", err, left != nil, ErrStuck)
		}
		close(done)
		<-left
	})
}

func TestSendRefusesMalformed(t *testing.T) {
	t.Parallel()
	for name, a := range map[string][]byte{
		"size below a header": {0x80, 1, 0, 0, 0, 9, 0, 0, 0, 0},
		"size of 4 GiB":       {0x80, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := serve(t, a)
			defer c.Close()
			if _, err := c.send(t.Context(), []byte{1}); !errors.Is(err, ErrBroken) {
				t.Errorf("%s: got %v, want %v", name, err, ErrBroken)
			}
		})
	}
}

func TestOpenFaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		device string
		want   error
	}{
		"no device":        {filepath.Join(dir, "tpmrm0"), ErrMissing},
		"no socket":        {"unix:" + filepath.Join(dir, "tpm.sock"), ErrMissing},
		"a plain file":     {file, ErrNotTPM},
		"a folder":         {dir, ErrNotTPM},
		"a file as socket": {"unix:" + file, ErrMissing}, // connection refused
	} {
		if _, err := Open(t.Context(), tc.device); !errors.Is(err, tc.want) {
			t.Errorf("%s: got %v, want %v", name, err, tc.want)
		}
	}
}

func FuzzComplete(f *testing.F) {
	f.Add(answer(0, 1, 2, 3))
	f.Add([]byte{0x80, 1, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		whole, err := complete(b)
		if whole && (err != nil || len(b) < headerSize || len(b) > maxResponse) {
			t.Errorf("complete(%x) = %v, %v", b, whole, err)
		}
	})
}

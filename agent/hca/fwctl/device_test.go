package fwctl

import (
	"bytes"
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"portcullis/agent/hca/register"
	"portcullis/fabricsm/ib"
)

// firmware answers commands in the process.
type firmware func(register.RPC) (register.Reply, error)

func (f firmware) rpc(_ context.Context, r register.RPC) (register.Reply, error) { return f(r) }
func (firmware) close() error                                                    { return nil }

func answer(status register.Status, data []byte) (register.Reply, error) {
	return register.Reply{Out: register.Answer{Status: status, Data: data}.Encode()}, nil
}

// TestBusy: a busy firmware is asked again, and not without end.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, busy := range []int{0, 1, busyTries - 1, busyTries} {
			asked := 0
			d := newDevice("card", firmware(func(register.RPC) (register.Reply, error) {
				if asked++; asked <= busy {
					return answer(register.Busy, nil)
				}
				return answer(register.OK, make([]byte, 16))
			}))
			_, err := d.Access(t.Context(), register.IDMLOCK, register.Read, make([]byte, 16))
			if busy < busyTries && (err != nil || asked != busy+1) {
				t.Errorf("busy %d times: asked %d times, %v", busy, asked, err)
			}
			if busy == busyTries && (!errors.Is(err, register.ErrBusy) || asked != busyTries) {
				t.Errorf("always busy: asked %d times, %v", asked, err)
			}
		}
	})
}

// TestBusyCanceled: waiting for a busy firmware ends with its context.
func TestBusyCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		d := newDevice("card", firmware(func(register.RPC) (register.Reply, error) {
			cancel()
			return answer(register.Busy, nil)
		}))
		if _, err := d.Access(ctx, register.IDMLOCK, register.Read, make([]byte, 16)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestVport(t *testing.T) {
	t.Parallel()
	want := register.VportContext{
		HasSMI: true, NodeGUID: 0xb83fd2030000a100, PortGUID: 0xb83fd2030000a101,
		SystemImageGUID: 0xb83fd2030000a100, LID: 27, SMLID: 1,
	}
	table := []ib.PKey{0xffff, 0x8012, 0}
	d := newDevice("card", firmware(func(r register.RPC) (register.Reply, error) {
		q, err := register.DecodeVportQuery(r.In)
		if err != nil || q.Vport.Port != 2 {
			t.Errorf("got %+v, %v", q, err)
		}
		if q.Opcode == register.QueryHCAVportPKey {
			return answer(register.OK, register.EncodePKeys(table))
		}
		b, err := register.Encode(want)
		if err != nil {
			t.Error(err)
		}
		return answer(register.OK, b)
	}))
	got, err := d.VportContext(t.Context(), 2)
	if diff := cmp.Diff(got, want); err != nil || diff != "" {
		t.Errorf("context: %v\n%s", err, diff)
	}
	keys, err := d.PKeys(t.Context(), 2)
	if diff := cmp.Diff(keys, table); err != nil || diff != "" {
		t.Errorf("P_Keys: %v\n%s", err, diff)
	}
	short := newDevice("card", firmware(func(register.RPC) (register.Reply, error) { return answer(register.OK, make([]byte, 6)) }))
	if _, err := short.VportContext(t.Context(), 1); !errors.Is(err, register.ErrShort) {
		t.Errorf("short context: got %v", err)
	}
	if _, err := short.PKeys(t.Context(), 1); err == nil {
		t.Error("6 bytes of P_Keys: got no error")
	}
}

// serve answers on a socket as often as there are answers, then closes it.
func serve(t *testing.T, replies ...[]byte) (path string, asked chan register.RPC) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "card")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	asked = make(chan register.RPC, len(replies))
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for _, reply := range replies {
			r, err := register.ReadRPC(conn)
			if err != nil {
				return
			}
			asked <- r
			if _, err := conn.Write(reply); err != nil {
				return
			}
		}
		_, _ = conn.Read(make([]byte, 1)) // until the other side ends
	}()
	return path, asked
}

func bytesOf(t *testing.T, r register.Reply) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := r.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func dial(t *testing.T, path string) *Device {
	t.Helper()
	d, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func TestSocket(t *testing.T) {
	t.Parallel()
	good, _ := answer(register.OK, []byte("0123456789abcdef"))
	long, _ := answer(register.OK, make([]byte, 32))
	path, asked := serve(t, bytesOf(t, good), bytesOf(t, register.Reply{Errno: 74}), bytesOf(t, long))
	d := dial(t, path)
	b, err := d.Access(t.Context(), register.IDMLOCK, register.Read, make([]byte, 16))
	if err != nil || string(b) != "0123456789abcdef" {
		t.Errorf("got %q, %v", b, err)
	}
	if r := <-asked; r.Scope != register.DebugReadOnly || r.Room != 32 || len(r.In) != 32 {
		t.Errorf("asked %+v", r)
	}
	if _, err := d.Access(t.Context(), register.IDMLOCK, register.Read, make([]byte, 16)); err == nil || !strings.Contains(err.Error(), "does not allow this command") {
		t.Errorf("error number 74: got %v", err)
	}
	if _, err := d.Access(t.Context(), register.IDMLOCK, register.Read, make([]byte, 16)); err == nil || !strings.Contains(err.Error(), "returned 48 bytes, the buffer has 32") {
		t.Errorf("too long: got %v", err)
	}
	if _, err := d.Access(t.Context(), register.IDMLOCK, register.Read, make([]byte, 16)); err == nil || !strings.Contains(err.Error(), "cannot be used after") {
		t.Errorf("after an error: got %v", err)
	}
}

// TestSocketCanceled: an answer that never comes is waited for until the
// context ends.
func TestSocketCanceled(t *testing.T) {
	t.Parallel()
	path, asked := serve(t, nil)
	d := dial(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if _, err := d.Access(ctx, register.IDMLOCK, register.Read, make([]byte, 16)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestDialNothing(t *testing.T) {
	t.Parallel()
	if _, err := Dial(t.Context(), filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "connect") {
		t.Errorf("got %v", err)
	}
}

package cardsocket_test

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"

	"portcullis/agent/hca/hcasim"
	"portcullis/agent/hca/hcasim/cardsocket"
	"portcullis/agent/hca/register"
)

// served is a card on a socket until the test ends.
func served(t *testing.T) (*hcasim.Card, string) {
	t.Helper()
	c := hcasim.New(hcasim.ConnectX7(0xb83fd20300123400, 0xb83fd20300123400))
	path := filepath.Join(t.TempDir(), "card")
	l, err := cardsocket.Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- cardsocket.Serve(ctx, l, c) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return c, path
}

func dial(t *testing.T, path string) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

var mgir = register.RPC{
	Scope: register.DebugReadOnly, Room: register.HeaderSize + 0xA0,
	In: register.Access{ID: register.IDMGIR, Method: register.Read, Data: make([]byte, 0xA0)}.Encode(),
}

func ask(conn net.Conn) (register.MGIR, error) {
	if _, err := mgir.WriteTo(conn); err != nil {
		return register.MGIR{}, err
	}
	reply, err := register.ReadReply(conn)
	if err != nil {
		return register.MGIR{}, err
	}
	answer, err := register.DecodeAnswer(reply.Out)
	if err != nil {
		return register.MGIR{}, err
	}
	return register.Decode[register.MGIR](answer.Data)
}

// Clients are answered on as many connections as they like.
func TestServe(t *testing.T) {
	_, path := served(t)
	first, second := dial(t, path), dial(t, path)
	for _, conn := range []net.Conn{first, second, first} {
		if m, err := ask(conn); err != nil || m.Hardware.DeviceID != 0x1021 {
			t.Errorf("%+v, %v", m.Hardware, err)
		}
	}
	if _, err := cardsocket.Listen(t.Context(), path); err == nil {
		t.Error("a second one listens at the same place")
	}
}

// A card that loses power ends the connection, and answers the next.
func TestPowerLoss(t *testing.T) {
	c, path := served(t)
	c.Inject(hcasim.Fault{Kind: hcasim.PowerLoss, Times: 1})
	if _, err := ask(dial(t, path)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want the end", err)
	}
	if _, err := ask(dial(t, path)); err != nil {
		t.Error(err)
	}
}

// A silent card keeps one client waiting, and no other.
func TestSilence(t *testing.T) {
	c, path := served(t)
	c.Inject(hcasim.Fault{Kind: hcasim.Silence, ID: register.IDMLOCK, Method: register.Read})
	silent := dial(t, path)
	lock := register.Access{ID: register.IDMLOCK, Method: register.Read, Data: make([]byte, 16)}
	if _, err := (register.RPC{Scope: register.DebugReadOnly, In: lock.Encode(), Room: 32}).WriteTo(silent); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(dial(t, path)); err != nil {
		t.Error(err)
	}
}

// TestNonsense checks that a client that sends no command is disconnected.
func TestNonsense(t *testing.T) {
	_, path := served(t)
	conn := dial(t, path)
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

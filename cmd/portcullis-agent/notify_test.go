package main

import (
	"log/slog"
	"net"
	"path/filepath"
	"testing"
)

// TestSystemd sends to a socket as systemd listens on.
func TestSystemd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	log := slog.New(slog.DiscardHandler)
	for _, tc := range []struct{ send, want string }{
		{"READY=1", "READY=1"},
		{"STATUS=waiting: seen\nREADY=1", "STATUS=waiting: seen\ufffdREADY=1"}, // one assignment only
	} {
		systemd{log}.Notify(tc.send)
		buf := make([]byte, 256)
		n, err := l.Read(buf)
		if err != nil || string(buf[:n]) != tc.want {
			t.Errorf("got %q, %v; want %q", buf[:n], err, tc.want)
		}
	}
}

package systemd

import (
	"net"
	"strings"
	"testing"

	"portcullis/cmd/portcullisd/command"
)

func open(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// A passed socket comes before the configured address.
func TestListenPassed(t *testing.T) {
	t.Parallel()
	passed, busy := open(t), open(t)
	l, err := listen(map[string][]net.Listener{"api": {passed}}, busy.Addr().String(), "f.yaml")
	if err != nil || l != passed {
		t.Errorf("listen: %v, %v", l, err)
	}
}

func TestListenRefuses(t *testing.T) {
	t.Parallel()
	a, b := open(t), open(t)
	for _, tt := range []struct {
		name    string
		passed  map[string][]net.Listener
		address string
		says    string
		hint    string
	}{
		{"another name", map[string][]net.Listener{"other": {a}}, "127.0.0.1:0", `not one stream socket named "api"`, "FileDescriptorName=api"},
		{"two of the name", map[string][]net.Listener{"api": {a, b}}, "127.0.0.1:0", `not one stream socket named "api"`, "FileDescriptorName=api"},
		{"a datagram socket", map[string][]net.Listener{"api": {nil}}, "127.0.0.1:0", `not one stream socket named "api"`, "FileDescriptorName=api"},
		{"a port that is taken", nil, a.Addr().String(), "listen on " + a.Addr().String() + ": another program listens there", "change listen in f.yaml"},
		{"an address of another machine", nil, "192.0.2.1:1", "listen on 192.0.2.1:1: this machine has no such address", "change listen in f.yaml"},
	} {
		l, err := listen(tt.passed, tt.address, "f.yaml")
		if err == nil {
			l.Close()
			t.Errorf("%s: taken", tt.name)
			continue
		}
		if !strings.Contains(err.Error(), tt.says) || !strings.Contains(command.HintOf(err), tt.hint) {
			t.Errorf("%s: %v; hint %q", tt.name, err, command.HintOf(err))
		}
	}
}

package main

import (
	"bytes"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/softhcaserver"
	"portcullis/fabricsm/transport/softhca"
)

func TestParsePlug(t *testing.T) {
	one, err := parsePlug("h1=unix:/run/x.sock,name=mlx5_3,vf,plane,hold=2s")
	if err != nil {
		t.Fatal(err)
	}
	want := softhcaserver.Options{Node: "h1", Name: "mlx5_3", Flags: softhca.Function | softhca.Plane, Hold: 2 * time.Second}
	if diff := cmp.Diff(want, one.options); one.device != "unix:/run/x.sock" || diff != "" {
		t.Errorf("device %q: %s", one.device, diff)
	}
	for _, text := range []string{"", "h1", "=dev", "h1=", "h1=dev,", "h1=dev,pf", "h1=dev,name=", "h1=dev,hold=x", "h1=dev,hold=-1s"} {
		if _, err := parsePlug(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// remoteHost accepts adapters on a socket, as a relay to a kernel does.
type remoteHost struct {
	t        *testing.T
	listener net.Listener
}

func newRemoteHost(t *testing.T) remoteHost {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return remoteHost{t, l}
}

// accept takes one adapter, and registers it.
func (h remoteHost) accept() *softhca.Conn {
	h.t.Helper()
	c, err := h.listener.Accept()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		h.t.Fatal(err)
	}
	conn := softhca.NewConn(c, "host")
	h.t.Cleanup(func() { conn.Close() })
	m, err := conn.Read()
	if err != nil || m.Type != softhca.TypeAttach {
		h.t.Fatalf("message %d, %v", m.Type, err)
	}
	if err := conn.Write(&softhca.Message{Type: softhca.TypeAttached}); err != nil {
		h.t.Fatal(err)
	}
	return conn
}

func TestConsoleOfAdapters(t *testing.T) {
	l, err := netlist.Single(netlist.Shape{Hosts: 2})
	if err != nil {
		t.Fatal(err)
	}
	f, h := sim.New(l), newRemoteHost(t)
	var said bytes.Buffer
	p := plugs{flags: []string{"h1=unix:" + h.listener.Addr().String()}, stderr: &said}
	if err := p.begin(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	defer p.close()
	conn := h.accept()
	c := console{fabric: f, plugs: &p}
	command := func(line string) string {
		t.Helper()
		var out bytes.Buffer
		c.out = &out
		c.run(strings.NewReader(line + "\n"))
		return strings.TrimSpace(out.String())
	}
	for _, tt := range []struct{ line, want string }{
		{"firmware h1 silent", "ok"},
		{"firmware h1 5ms", "ok"},
		{"firmware h1 ok", "ok"},
		{"firmware h1 -1s", "error: firmware \"-1s\""},
		{"fatal h1", "ok"},
		{"plug h1", "error: it is already plugged in"},
		{"pull h2", "error: \"h2\" is not the adapter"},
	} {
		if got := command(tt.line); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.line, got, tt.want)
		}
	}
	if m, err := conn.Read(); err != nil || m.Type != softhca.TypeEvent || softhca.Event(m.Value) != softhca.EventFatal {
		t.Errorf("message %d, %v, want the event of a failure", m.Type, err)
	}
	if got := command("pull h1"); got != "ok" {
		t.Fatal(got)
	}
	if _, err := conn.Read(); err == nil {
		t.Error("the host still has the adapter")
	}
	if got := command("fatal h1"); !strings.Contains(got, "pulled out") {
		t.Errorf("after it was pulled: %q", got)
	}
	if got := command("plug h1"); got != "ok" {
		t.Fatal(got)
	}
	h.accept()
}

func TestAdaptersThatCannotBe(t *testing.T) {
	l, err := netlist.Single(netlist.Shape{Hosts: 2})
	if err != nil {
		t.Fatal(err)
	}
	h := newRemoteHost(t)
	for _, flags := range [][]string{
		{"h1=/nowhere/softhca"},
		{"h1=unix:/nowhere/socket"},
		{"nowhere=unix:" + h.listener.Addr().String()},
		{"h1=unix:" + h.listener.Addr().String(), "h1=unix:" + h.listener.Addr().String()},
		{"h1"},
	} {
		p := plugs{flags: flags, stderr: t.Output()}
		if err := p.begin(t.Context(), sim.New(l)); err == nil {
			t.Errorf("%v began", flags)
			p.close()
		}
	}
}

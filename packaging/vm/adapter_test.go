//go:build vm

package vm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/packaging/vm/disk"
	"portcullis/packaging/vm/machine"
)

// adapterPort is the virtio-serial port behind which the fabric outside serves the adapter of a machine.
const adapterPort = "softhca"

// adapterUnit makes the adapter as a driver does at boot: before the agent, and as far as the kernel and udev have it.
const adapterUnit = `[Unit]
Description=adapter without hardware
After=systemd-modules-load.service
Before=portcullis-agent.service

[Service]
ExecStartPre=/sbin/modprobe --all ib_umad ib_uverbs
ExecStartPre=/sbin/insmod /suite/softhca.ko
ExecStartPre=/usr/bin/udevadm wait --settle --timeout=60 /dev/softhca /dev/virtio-ports/` + adapterPort + `
ExecStart=/suite/bridge relay ` + adapterPort + `
ExecStartPost=/usr/bin/udevadm wait --settle --timeout=60 /dev/infiniband/umad0 /dev/infiniband/uverbs0
`

// seedRemoteAdapter adds to the seed of a machine with systemd an adapter whose fabric is outside, behind adapterPort. Its module
// is signed with the key of machine.VariablesSnakeoil.
func seedRemoteAdapter(t *testing.T, seed *disk.Seed) {
	t.Helper()
	dir := t.TempDir()
	key, signed := filepath.Join(dir, "key"), filepath.Join(dir, "softhca.ko")
	must(t, disk.SnakeoilKey(key))
	command(t, debian(t).SignFile(), "sha256", key, machine.SnakeoilCert, adapterModule(t), signed)
	must(t, seed.File("/suite/softhca.ko", signed))
	must(t, seed.File("/suite/unsigned.ko", adapterModule(t)))
	must(t, seed.File("/suite/bridge", bridge(t)))
	seed.Data("/etc/systemd/system/softhca.service", adapterUnit, 0o644)
	seed.Link("/etc/systemd/system/multi-user.target.wants/softhca.service", "/etc/systemd/system/softhca.service")
}

// slot is where the simulator finds the adapter of a machine, boot after boot. It is a socket that always exists, and the
// simulator's messages to it are carried to the port of the machine that runs.
type slot struct {
	listener *net.UnixListener
	machine  string // socket of qemu
	plug     func() // has the simulator put the adapter in again, unless it still is
}

// newSlot makes a slot. The socket of the machine need not be there yet.
func newSlot(t *testing.T, at, machine string) *slot {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"})
	must(t, err)
	return &slot{listener: l, machine: machine}
}

// serve carries until the end of the test.
func (s *slot) serve(t *testing.T) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for plugged := true; ; plugged = false { // the simulator puts the adapter in when it starts
			conn, err := s.accept(plugged)
			if err != nil || !s.carry(ctx, conn) {
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		_ = s.listener.Close()
		<-done
	})
}

// accept waits for the simulator, which is asked to plug the adapter in until it does: it takes a moment to see that the machine
// before is gone.
func (s *slot) accept(plugged bool) (net.Conn, error) {
	for {
		if !plugged {
			s.plug()
			if err := s.listener.SetDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
				return nil, err
			}
		}
		conn, err := s.listener.Accept()
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return conn, err
		}
	}
}

// carry waits for a machine and joins it with the simulator until one of them ends. It reports false when the test ended.
func (s *slot) carry(ctx context.Context, simulator net.Conn) bool {
	defer simulator.Close()
	var inside net.Conn
	for inside == nil {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "unix", s.machine)
		if err == nil {
			inside = conn
			break
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(50 * time.Millisecond):
		}
	}
	defer inside.Close()
	ended := make(chan struct{}, 2)
	pass := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from) // its end is the end of the adapter
		ended <- struct{}{}
	}
	go pass(inside, simulator)
	go pass(simulator, inside)
	select {
	case <-ended:
		return true
	case <-ctx.Done():
		return false
	}
}

// simulate starts the fabric, in which a node is the adapter of the machine whose qemu listens on a socket.
func (s *site) simulate(machineSocket string) {
	s.t.Helper()
	at := filepath.Join(s.dir, "slot")
	slot := newSlot(s.t, at, machineSocket)
	s.write("fabric.net", hostFabric)
	cmd := exec.Command(program(s.t, "portcullis-sim"), "run", filepath.Join(s.dir, "fabric.net"), "--socket", s.fabric,
		"--adapter", fmt.Sprintf("%s=unix:%s,name=mlx5_0", hostNode, at))
	console, err := cmd.StdinPipe() // its end would end the fabric
	must(s.t, err)
	s.t.Cleanup(func() { _ = console.Close() })
	slot.plug = func() { _, _ = fmt.Fprintln(console, "plug "+hostNode) } // the steps that need the simulator report it if it ended
	slot.serve(s.t)
	said := background(s.t, cmd)
	eventually(s.t, 20*time.Second, "the simulator is ready", said, func() bool { return strings.Contains(said.String(), "ready") })
}

//go:build vm

package machine

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"time"
)

// ControlPort is the virtio-serial port over which tests in the machine request actions outside, in machines that have
// Answers.
const ControlPort = "control"

// Granted is the answer to a request that was done. Any other answer says why it was not.
const Granted = "done"

func (m *Machine) controlSocket() string { return filepath.Join(m.dir, "control.sock") }

// answer does what tests in the machine ask for, until the context ends.
func (m *Machine) answer(ctx context.Context) {
	conn, err := m.dialControl(ctx)
	if err != nil {
		return // the machine ended before
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer conn.Close()
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		reply := Granted
		if do, ok := m.spec.Answers[lines.Text()]; !ok {
			reply = fmt.Sprintf("the machine has no answer to %q", lines.Text())
		} else if err := do(); err != nil {
			reply = fmt.Sprintf("%q", err.Error())
		}
		if _, err := fmt.Fprintln(conn, reply); err != nil {
			return
		}
	}
}

// dialControl waits for the socket, which qemu makes when it starts.
func (m *Machine) dialControl(ctx context.Context) (net.Conn, error) {
	for {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "unix", m.controlSocket())
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

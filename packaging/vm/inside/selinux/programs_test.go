//go:build vm

package selinux_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"

	"portcullis/fabricsm/transport/softhca"
	"portcullis/packaging/vm/inside/verbs"
)

// programVariable is the environment variable that makes the test program one of programs.
const programVariable = "SELINUX_PROGRAM"

// programs are what is tried in another domain. Each writes what happens, a line at a time, and ends with an error, or when
// its standard input does.
var programs = map[string]func(args []string) error{
	"manage": manage, "ask": ask, "serve": serve, "hold": hold, "drive": drive,
}

// manage DEVICE registers for subnet management.
func manage(args []string) error {
	d, err := openMAD(args[0])
	if err != nil {
		return err
	}
	defer d.close()
	if _, err := d.register(0, classDirected, 0); err != nil {
		return fmt.Errorf("register: %w", err)
	}
	fmt.Println("registered")
	return nil
}

// ask DEVICE PKEY-INDEX LID sends a request of the test's own class, and waits for the answer.
func ask(args []string) error {
	n, err := numbers(args[1:], 2)
	if err != nil {
		return err
	}
	d, err := openMAD(args[0])
	if err != nil {
		return err
	}
	defer d.close()
	agent, err := d.register(1, classTest, 0)
	if err != nil {
		return fmt.Errorf("register: %w", err)
	}
	m := newMAD(agent, n[0], n[1])
	m.setMethod(methodGet)
	if err := d.send(m, requestPatience); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if m, err = d.receive(); err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	if status := m.status(); status != 0 {
		return fmt.Errorf("no answer: status %d", status)
	}
	fmt.Println("answered")
	return nil
}

// serve DEVICE answers requests of the test's own class.
func serve(args []string) error {
	d, err := openMAD(args[0])
	if err != nil {
		return err
	}
	defer d.close()
	if _, err := d.register(1, classTest, 1<<methodGet); err != nil {
		return fmt.Errorf("register: %w", err)
	}
	fmt.Println("ready")
	ended := make(chan error, 1)
	go func() {
		for {
			m, err := d.receive()
			if err == nil {
				fmt.Println("asked with index", m.pkeyIndex())
				m.setMethod(methodGetResp)
				err = d.send(m, 0)
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	go func() { ended <- untilEnd() }()
	return <-ended
}

// hold ADAPTER PKEY-INDEX keeps a queue pair that is ready to send.
func hold(args []string) error {
	n, err := numbers(args[1:], 1)
	if err != nil {
		return err
	}
	c, err := verbs.Open(args[0])
	if err != nil {
		return err
	}
	defer c.Close()
	cq, err := c.NewCQ(16)
	if err != nil {
		return err
	}
	q, err := c.NewQP(verbs.UD, cq)
	if err != nil {
		return err
	}
	path := verbs.Path{Port: 1, PKeyIndex: n[0], QKey: 0x11111111}
	if err := q.Init(path); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	if err := q.Connect(path); err != nil {
		return err
	}
	fmt.Println("ready")
	ended := make(chan error, 2)
	// Linux puts a queue pair that it no longer allows into the error state, but reports this to a program only by the
	// state.
	go func() {
		for range time.Tick(50 * time.Millisecond) {
			if state, err := q.State(); err != nil || state == verbs.Error {
				fmt.Println("error state")
				ended <- err
				return
			}
		}
	}()
	go func() {
		err := untilEnd()
		state, e := q.State()
		if state == verbs.RTS {
			fmt.Println("still ready")
		}
		ended <- errors.Join(err, e)
	}()
	return <-ended
}

// drive is the program that loads an adapter's driver: it has the adapter's device, and a connection to its fabric.
func drive([]string) error {
	device := softhca.NewConn(os.NewFile(inheritedDevice, "device"), "device")
	fabric := softhca.NewConn(os.NewFile(inheritedFabric, "fabric"), "fabric")
	ended := make(chan error, 2)
	go func() { ended <- carry(fabric, device) }()
	go func() { ended <- carry(device, fabric) }()
	return <-ended
}

// Files that drive inherits.
const (
	inheritedDevice = 3 + iota
	inheritedFabric
)

func carry(from, to *softhca.Conn) error {
	for {
		m, err := from.Read()
		if err != nil {
			return err
		}
		// A message that the kernel refuses, such as a packet for an adapter that is not registered yet, is lost.
		if err := to.Write(&m); err != nil && !refused(err) {
			return err
		}
	}
}

func refused(err error) bool {
	_, ok := errors.AsType[syscall.Errno](err)
	return ok
}

// untilEnd waits for the end of standard input.
func untilEnd() error {
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

func numbers(args []string, count int) ([]uint16, error) {
	if len(args) != count {
		return nil, fmt.Errorf("%d arguments, want %d", len(args), count)
	}
	var out []uint16
	for _, a := range args {
		n, err := strconv.ParseUint(a, 0, 16)
		if err != nil {
			return nil, err
		}
		out = append(out, uint16(n))
	}
	return out, nil
}

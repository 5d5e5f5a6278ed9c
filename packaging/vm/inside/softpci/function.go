//go:build vm

// Package softpci puts a PCI function without hardware into the machine: the kernel
// module softpci registers it, and this package is its firmware. Registers come
// by the gateway in the configuration space, as from the vendor's tools, and by fwctl.
package softpci

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"sync"

	"portcullis/agent/hca/register"
	"portcullis/agent/hca/sysfs"
)

// Device is the device file of the module.
const Device = "/dev/softpci"

// Firmware does one command, as a card does.
type Firmware func(register.RPC) (register.Reply, error)

// Event is an event of a function.
type Event int

// Events.
const (
	Bound   Event = iota // the driver has it
	Unbound              // it was removed, or unbound
)

// Function is a PCI function of this machine.
type Function struct {
	Address sysfs.Address
	// Events reports the events of the function; it is closed with the function. An event without a receiver is dropped.
	Events <-chan Event

	file     *os.File
	firmware Firmware
	events   chan Event
	ended    chan struct{}
	commands sync.WaitGroup
}

// Attach adds a function.
func Attach(c Config, firmware Firmware) (*Function, error) {
	payload, err := c.encode()
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(Device, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	f := &Function{file: file, firmware: firmware, events: make(chan Event, 16), ended: make(chan struct{})}
	f.Events = f.events
	if err := f.send(typeAttach, message{payload: payload}); err != nil {
		file.Close()
		return nil, fmt.Errorf("attach a PCI function: %w", err)
	}
	for f.Address == "" {
		m, err := f.receive()
		if err != nil {
			file.Close()
			return nil, fmt.Errorf("attach a PCI function: %w", err)
		}
		f.take(m)
	}
	go f.serve()
	return f, nil
}

// Close takes the function away, as pulling the card does.
func (f *Function) Close() error {
	err := f.file.Close()
	<-f.ended
	return err
}

func (f *Function) serve() {
	defer close(f.ended)
	defer close(f.events)
	defer f.commands.Wait()
	for {
		m, err := f.receive()
		if err != nil {
			return // closed
		}
		f.take(m)
	}
}

func (f *Function) take(m message) {
	switch m.kind {
	case typeAttached:
		f.Address = sysfs.Address(strings.TrimRight(string(m.payload), "\x00"))
	case typeCommand:
		f.commands.Go(func() { f.command(m) })
	case typeRPC:
		f.commands.Go(func() { f.rpc(m) })
	case typeBound:
		f.tell(Bound)
	case typeUnbound:
		f.tell(Unbound)
	}
}

func (f *Function) tell(e Event) {
	select {
	case f.events <- e:
	default:
	}
}

// rpc does a command of fwctl. A firmware that is silent leaves the caller to its time limit.
func (f *Function) rpc(m message) {
	reply, err := f.firmware(register.RPC{Scope: register.Scope(m.value), In: m.payload, Room: int(m.value2)})
	if err != nil {
		return
	}
	_ = f.send(typeAnswer, message{token: m.token, status: reply.Errno, payload: reply.Out}) // fails if no caller waits any more
}

// Types of messages, of packaging/vm/softpci/softpci.h.
const (
	typeAttach = iota + 1
	typeAttached
	typeCommand
	typeDone
	typeRPC
	typeAnswer
	typeBound
	typeUnbound
)

const (
	headSize   = 24
	maxMessage = headSize + 16384
)

type message struct {
	kind, token, status, value, value2 uint32
	payload                            []byte
}

func (f *Function) send(kind uint32, m message) error {
	p := make([]byte, headSize, headSize+len(m.payload))
	for i, v := range []uint32{uint32(headSize + len(m.payload)), kind, m.token, m.status, m.value, m.value2} {
		binary.LittleEndian.PutUint32(p[4*i:], v)
	}
	_, err := f.file.Write(append(p, m.payload...))
	return err
}

func (f *Function) receive() (m message, err error) {
	p := make([]byte, maxMessage)
	n, err := f.file.Read(p)
	if err != nil {
		return m, err
	}
	if n < headSize {
		return m, fmt.Errorf("message of %d bytes, want at least %d", n, headSize)
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(p[4*i:]) }
	return message{kind: word(1), token: word(2), status: word(3), value: word(4), value2: word(5), payload: bytes.Clone(p[headSize:n])}, nil
}

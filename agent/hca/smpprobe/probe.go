// Package smpprobe finds out by trying whether the host can send subnet management packets from a port. It is the one proof of
// an SMP firewall that does not depend on the adapter's report about its settings (nvconfig-lock.md section 1).
//
// The packets change nothing: Get of NodeInfo, to the port itself and to its peer. The interface is the kernel's
// rdma/ib_user_mad.h.
package smpprobe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/attest"
)

// The kernel's interface: ioctl REGISTER_AGENT, its argument, and the header
// before each MAD (the shorter form, which a descriptor has that did not ask for
// the longer).
const (
	ioctlRegister    = 0xC01C1B01
	registrationSize = 28
	headerSize       = 56
	madSize          = 256
	statusTimeout    = 110 // ETIMEDOUT, as every platform of InfiniBand has it
)

// Fields of a directed route SMP (IBTA volume 1, 14.2.1.2).
const (
	classDirected  = 0x81
	baseVersion    = 1
	classVersion   = 1
	methodGet      = 0x01
	methodGetResp  = 0x81
	attrNodeInfo   = 0x0011
	offHopCount    = 7
	offTID         = 8
	offAttr        = 16
	offDrSLID      = 32
	offDrDLID      = 34
	offInitialPath = 128
	permissiveLID  = 0xFFFF
)

// Patience is how long an answer is waited for.
const Patience = time.Second

// device is an opened umad device.
type device interface {
	ioctl(request uintptr, arg []byte) error
	send(b []byte) error
	// receive waits for one packet; nothing within the time is os.ErrDeadlineExceeded.
	receive(b []byte, within time.Duration) (int, error)
	close() error
}

// Probe tries from the port behind a device node such as /dev/infiniband/umad0.
// FirewallBlocks means that the kernel has no queue pair 0 there, or that
// nothing came back; any answer is FirewallOpen. That the device cannot be tried
// is an error.
func Probe(ctx context.Context, path string) (attest.Firewall, error) {
	d, err := openDevice(path)
	if err != nil {
		return attest.FirewallUnknown, fmt.Errorf("probe of the SMP firewall: %w; load ib_umad, and run as root", err)
	}
	defer d.close()
	return probe(ctx, d, path)
}

func probe(ctx context.Context, d device, path string) (attest.Firewall, error) {
	agent, err := register(d)
	switch {
	case errors.Is(err, unix.EPROTONOSUPPORT): // no queue pair 0: the kernel is configured without an SMI
		return attest.FirewallBlocks, nil
	case errors.Is(err, unix.EACCES):
		return attest.FirewallUnknown, fmt.Errorf("probe of the SMP firewall: register with %s: %w: a security module such as SELinux does not let the agent manage the subnet; lock the adapter where its ports have no labels", path, err)
	case err != nil:
		return attest.FirewallUnknown, fmt.Errorf("probe of the SMP firewall: register with %s: %w", path, err)
	}
	for hops := range uint8(2) {
		if err := ctx.Err(); err != nil {
			return attest.FirewallUnknown, err
		}
		answered, err := ask(d, agent, hops)
		switch {
		case err != nil:
			return attest.FirewallUnknown, fmt.Errorf("probe of the SMP firewall: %s: %w", path, err)
		case answered:
			return attest.FirewallOpen, nil
		}
	}
	return attest.FirewallBlocks, nil
}

// register announces an agent that only sends.
func register(d device) (id uint32, err error) {
	var arg [registrationSize]byte
	arg[21], arg[22] = classDirected, classVersion // queue pair 0, no methods of others
	if err := d.ioctl(ioctlRegister, arg[:]); err != nil {
		return 0, err
	}
	return binary.NativeEndian.Uint32(arg[:]), nil
}

// ask sends a Get of NodeInfo over so many hops and reports whether it was answered.
func ask(d device, agent uint32, hops uint8) (answered bool, err error) {
	tid := 0x504F5254<<8 | uint64(hops)
	if err := d.send(request(agent, tid, hops)); err != nil {
		return false, err
	}
	var buf [headerSize + madSize]byte
	for end := time.Now().Add(2 * Patience); ; {
		n, err := d.receive(buf[:], time.Until(end))
		switch {
		case isDeadline(err):
			return false, nil
		case err != nil:
			return false, err
		case n < headerSize+madSize:
			return false, nil // of the kernel: it was not answered
		}
		m := buf[headerSize:n]
		if binary.BigEndian.Uint64(m[offTID:])&0xFFFFFFFF != tid&0xFFFFFFFF {
			continue
		}
		status := binary.NativeEndian.Uint32(buf[4:])
		return status != statusTimeout && m[3] == methodGetResp, nil
	}
}

// request is what is written to the device.
func request(agent uint32, tid uint64, hops uint8) []byte {
	b := make([]byte, headerSize+madSize)
	host, wire := binary.NativeEndian, binary.BigEndian
	host.PutUint32(b, agent)
	host.PutUint32(b[8:], uint32(Patience.Milliseconds()))
	wire.PutUint16(b[28:], permissiveLID)
	m := b[headerSize:]
	m[0], m[1], m[2], m[3] = baseVersion, classDirected, classVersion, methodGet
	m[offHopCount] = hops
	wire.PutUint64(m[offTID:], tid)
	wire.PutUint16(m[offAttr:], attrNodeInfo)
	wire.PutUint16(m[offDrSLID:], permissiveLID)
	wire.PutUint16(m[offDrDLID:], permissiveLID)
	if hops > 0 {
		m[offInitialPath+1] = 1 // out of the port; an HCA's ports are devices of their own
	}
	return b
}

//go:build vm

package selinux_test

import (
	"encoding/binary"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel's interface for packets of management, rdma/ib_user_mad.h.
const (
	ioctlRegister   = 0xC01C1B01
	ioctlEnablePKey = 0x00001B03
	headerSize      = 64
	madSize         = 256
	gmpQKey         = 0x80010000
)

// Classes and methods of management.
const (
	classDirected = 0x81
	classTest     = 0x0F // a vendor's, which neither the kernel nor the adapter answers
	methodGet     = 0x01
	methodGetResp = 0x81
)

// requestPatience is how long the kernel waits for an answer before it reports that there is none.
const requestPatience = 30 * time.Second

// madDevice is an opened /dev/infiniband/umadN.
type madDevice struct{ fd int }

func openMAD(path string) (madDevice, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return madDevice{}, fmt.Errorf("open %s: %w", path, err)
	}
	d := madDevice{fd}
	if err := d.ioctl(ioctlEnablePKey, 0); err != nil {
		d.close()
		return madDevice{}, fmt.Errorf("use headers with P_Keys: %w", err)
	}
	return d, nil
}

func (d madDevice) close() { _ = unix.Close(d.fd) }

func (d madDevice) ioctl(request, argument uintptr) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(d.fd), request, argument); errno != 0 {
		return errno
	}
	return nil
}

var (
	host = binary.NativeEndian
	wire = binary.BigEndian
)

// register announces an agent of a class, which takes the methods of the mask that are not answers, and returns its number.
func (d madDevice) register(qp, class uint8, methods uint32) (uint32, error) {
	arg := new([28]byte)
	host.PutUint32(arg[4:], methods)
	arg[20], arg[21], arg[22] = qp, class, 1
	err := d.ioctl(ioctlRegister, uintptr(unsafe.Pointer(arg)))
	return host.Uint32(arg[:]), err
}

// packet is a MAD behind the header of the interface.
type packet []byte

// newMAD returns a packet of class classTest.
func newMAD(agent uint32, pkeyIndex, lid uint16) packet {
	p := make(packet, headerSize+madSize)
	host.PutUint32(p, agent)
	wire.PutUint32(p[20:], 1) // queue pair
	wire.PutUint32(p[24:], gmpQKey)
	wire.PutUint16(p[28:], lid)
	host.PutUint16(p[56:], pkeyIndex)
	m := p[headerSize:]
	m[0], m[1], m[2] = 1, classTest, 1
	wire.PutUint64(m[8:], 1)
	return p
}

func (p packet) setMethod(m byte)  { p[headerSize+3] = m }
func (p packet) status() uint32    { return host.Uint32(p[4:]) }
func (p packet) pkeyIndex() uint16 { return host.Uint16(p[56:]) }

// send sends a packet, for whose answer the kernel waits so long.
func (d madDevice) send(p packet, patience time.Duration) error {
	host.PutUint32(p[8:], uint32(patience.Milliseconds()))
	host.PutUint32(p[12:], 0) // no retries
	wire.PutUint32(p[24:], gmpQKey)
	_, err := unix.Write(d.fd, p)
	return err
}

// receive waits for a packet, or for the news that a request was not answered.
func (d madDevice) receive() (packet, error) {
	p := make(packet, headerSize+madSize)
	n, err := unix.Read(d.fd, p)
	if err == nil && n < headerSize {
		err = fmt.Errorf("%d bytes, less than a header", n)
	}
	return p, err
}

//go:build vm

package tpm_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"portcullis/packaging/vm/inside/guest"
)

// proxy is a TPM of the kernel whose chip is this test: commands are passed on to the
// software TPM, and answers can be held back (drivers/char/tpm/tpm_vtpm_proxy.c).
type proxy struct {
	device string // with the kernel's resource manager

	fd, stop, chip int
	commands       chan struct{} // a command came while answers are held
	mu             sync.Mutex    // is locked while answers are held
	held           bool          // the test locked it
}

// setLocality is a command of the driver alone, which no TPM knows.
const setLocality = 0x20001000

// newDevice is struct vtpm_proxy_new_dev of linux/vtpm_proxy.h.
type newDevice struct{ Flags, Number, FD, Major, Minor uint32 }

const (
	ioctlNewDevice = 0xc014a100 // VTPM_PROXY_IOC_NEW_DEV
	flagTPM2       = 1
)

func newProxy(t *testing.T) *proxy {
	t.Helper()
	guest.Do(t, "modprobe", "tpm_vtpm_proxy")
	control, err := unix.Open("/dev/vtpmx", unix.O_RDWR|unix.O_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(control)
	chip, err := unix.Open("/dev/tpm0", unix.O_RDWR|unix.O_CLOEXEC, 0)
	must(t, err)
	made := newDevice{Flags: flagTPM2}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(control), ioctlNewDevice, uintptr(unsafe.Pointer(&made))); errno != 0 {
		t.Fatal(errno)
	}
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	must(t, err)
	p := &proxy{
		device: fmt.Sprintf("/dev/tpmrm%d", made.Number),
		fd:     int(made.FD), stop: stop, chip: chip, commands: make(chan struct{}, 1),
	}
	served := make(chan error, 1)
	go func() { served <- p.serve() }()
	t.Cleanup(func() {
		p.release()
		_, err := unix.Write(stop, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		err = errors.Join(err, <-served, unix.Close(p.fd), unix.Close(chip), unix.Close(stop))
		if err != nil {
			t.Errorf("proxy: %v", err)
		}
	})
	guest.Eventually(t, 30*time.Second, p.device+" is not there", func() bool { return guest.Exists(p.device) })
	return p
}

// hold has answers wait until release.
func (p *proxy) hold() {
	p.mu.Lock()
	p.held = true
	for len(p.commands) > 0 {
		<-p.commands
	}
}

func (p *proxy) release() {
	if p.held {
		p.held = false
		p.mu.Unlock()
	}
}

// awaitCommand returns when a command came whose answer is held.
func (p *proxy) awaitCommand(t *testing.T) {
	t.Helper()
	select {
	case <-p.commands:
	case <-time.After(20 * time.Second):
		t.Fatal("no command came to the TPM within 20 s")
	}
}

func (p *proxy) serve() error {
	command := make([]byte, 4096)
	for {
		// The driver's read ignores O_NONBLOCK, so it is made when there is something.
		ready := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}, {Fd: int32(p.stop), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, -1); errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil {
			return os.NewSyscallError("poll", err)
		}
		if ready[1].Revents != 0 {
			return nil
		}
		n, err := unix.Read(p.fd, command)
		if err != nil {
			return os.NewSyscallError("read", err)
		}
		answer, err := p.answer(command[:n])
		if err != nil {
			return err
		}
		select {
		case p.commands <- struct{}{}:
		default:
		}
		p.mu.Lock()
		_, err = unix.Write(p.fd, answer)
		p.mu.Unlock()
		if err != nil {
			return os.NewSyscallError("write", err)
		}
	}
}

// answer has the software TPM answer.
func (p *proxy) answer(command []byte) ([]byte, error) {
	if len(command) < 10 {
		return nil, fmt.Errorf("a command of %d bytes", len(command))
	}
	if binary.BigEndian.Uint32(command[6:]) == setLocality {
		return []byte{0x80, 1, 0, 0, 0, 10, 0, 0, 0, 0}, nil
	}
	if _, err := unix.Write(p.chip, bytes.Clone(command)); err != nil {
		return nil, os.NewSyscallError("write to /dev/tpm0", err)
	}
	buf := make([]byte, 4096)
	n, err := unix.Read(p.chip, buf)
	return buf[:max(n, 0)], os.NewSyscallError("read from /dev/tpm0", err)
}

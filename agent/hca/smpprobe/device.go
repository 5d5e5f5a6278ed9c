package smpprobe

import (
	"errors"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// node is a device node.
type node struct{ file *os.File }

func openDevice(path string) (device, error) {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return &node{f}, nil
}

func (n *node) close() error { return n.file.Close() }

func (n *node) ioctl(request uintptr, arg []byte) error {
	raw, err := n.file.SyscallConn()
	if err != nil {
		return err
	}
	var errno syscall.Errno
	err = raw.Control(func(fd uintptr) {
		_, _, errno = unix.Syscall(unix.SYS_IOCTL, fd, request, uintptr(unsafe.Pointer(&arg[0])))
	})
	if err == nil && errno != 0 {
		return errno
	}
	return err
}

func (n *node) send(b []byte) error {
	_, err := n.file.Write(b)
	return err
}

func (n *node) receive(b []byte, within time.Duration) (int, error) {
	if err := n.file.SetReadDeadline(time.Now().Add(within)); err != nil {
		return 0, err
	}
	return n.file.Read(b)
}

func isDeadline(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

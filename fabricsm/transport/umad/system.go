package umad

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// system has the operations that a Port needs from the kernel beyond reading and writing. For these the descriptor itself
// must work without blocking.
type system interface {
	// open opens a device file for reading and writing; EAGAIN means that another process has it.
	open(path string) (fd int, err error)
	// ioctl calls the device with an argument that it may change; nil for
	// none.
	ioctl(fd int, request uint32, arg []byte) error
	// kernel is its version, for error messages.
	kernel() string
}

// linux is the running kernel.
type linux struct{}

func (linux) open(path string) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

func (linux) ioctl(fd int, request uint32, arg []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(unsafe.Pointer(unsafe.SliceData(arg))))
	if errno != 0 {
		return errno
	}
	return nil
}

func (linux) kernel() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}

package tpm

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// openDevice opens the character device of a TPM so that its calls block.
//
// Go puts a device that has poll(2) into O_NONBLOCK. Since Linux 4.20 a TPM's
// driver then queues the command: write returns at once, and a read that comes before
// the queue has begun returns 0 bytes, which is an end of file (tpm_common_write and
// tpm_common_read in drivers/char/tpm/tpm-dev-common.c). On one CPU the queue usually
// runs first and hides it.
//
// Waiting with poll(2) in between is no way out. The driver holds the file's mutex
// for as long as the TPM works on a command, and poll takes that mutex whatever its
// time limit is: Go's poller would stand still, and every connection of the process
// with it. Kernels before 4.20 have neither O_NONBLOCK nor poll for a TPM.
//
// Without O_NONBLOCK every kernel does the same: write returns when the TPM has
// answered, and one read returns the answer. Nothing ends such a call but the TPM
// or the driver, so conn leaves it behind when time is up; see calls.
//
// The open itself is made with O_NONBLOCK: it does not matter to a TPM, and another
// device that was named by mistake cannot make it wait.
func openDevice(device string) (*os.File, error) {
	fd, err := open(device)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: device, Err: err}
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		return nil, errors.Join(os.NewSyscallError("fcntl", err), unix.Close(fd))
	}
	// A file whose descriptor blocks stays out of Go's poller.
	return os.NewFile(uintptr(fd), device), nil
}

func open(device string) (int, error) {
	for {
		fd, err := unix.Open(device, unix.O_RDWR|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// calls are the system calls of this process that outlive the command which made them, by device. Each is a goroutine and
// its thread, in the kernel until the driver abandons the command. Linux does so after two minutes, or after five where a
// key is created. A device that has such a call is not opened again meanwhile. So there are never more than one for each
// connection that was open when the TPM stopped answering. A process that exits waits for them in the kernel.
var calls = struct {
	sync.Mutex
	left map[uint64][]<-chan struct{}
}{left: make(map[uint64][]<-chan struct{})}

// leave remembers a call until it returns.
func leave(number uint64, returned <-chan struct{}) {
	calls.Lock()
	defer calls.Unlock()
	calls.left[number] = append(calls.left[number], returned)
}

// isLeft reports whether a device has a call that did not return.
func isLeft(number uint64) bool {
	calls.Lock()
	defer calls.Unlock()
	calls.left[number] = slices.DeleteFunc(calls.left[number], func(returned <-chan struct{}) bool {
		select {
		case <-returned:
			return true
		default:
			return false
		}
	})
	return len(calls.left[number]) > 0
}

// dialDevice opens a device unless an earlier call still is in the kernel. It looks
// before it opens: closing what was opened would wait for the TPM too.
func dialDevice(device string) (io.ReadWriteCloser, func(<-chan struct{}), error) {
	var info unix.Stat_t
	switch err := unix.Stat(device, &info); {
	case err != nil:
		return nil, nil, classify(&fs.PathError{Op: "stat", Path: device, Err: err})
	case info.Mode&unix.S_IFMT != unix.S_IFCHR:
		return nil, nil, ErrNotTPM
	case isLeft(info.Rdev):
		return nil, nil, ErrStuck
	}
	f, err := openDevice(device)
	if err != nil {
		return nil, nil, classify(err)
	}
	return f, func(returned <-chan struct{}) { leave(info.Rdev, returned) }, nil
}

package tpm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal returns a character device that Go's poller would take, as it takes a
// TPM, and the file that plays the TPM behind it.
func terminal(t *testing.T) (device string, tpm *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(os.NewSyscallError("open /dev/ptmx", err))
	}
	tpm = os.NewFile(uintptr(fd), "/dev/ptmx")
	t.Cleanup(func() { tpm.Close() })
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil { // raw: bytes go through as they are
		err = unix.IoctlSetTermios(fd, unix.TCSETS, &unix.Termios{Cflag: unix.CS8, Cc: [19]uint8{unix.VMIN: 1}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("/dev/pts/%d", n), tpm
}

// driver does what drivers/char/tpm/tpm-dev-common.c does with an open file: it looks
// at the file's flags. The TPM behind it is never done before the program reads.
type driver struct {
	file          *os.File
	queued, ready []byte
}

func (d *driver) Write(command []byte) (int, error) {
	raw, err := d.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	var flags int
	var flagsErr error
	if err := raw.Control(func(fd uintptr) { flags, flagsErr = unix.FcntlInt(fd, unix.F_GETFL, 0) }); err != nil || flagsErr != nil {
		return 0, errors.Join(err, flagsErr)
	}
	if flags&unix.O_NONBLOCK != 0 {
		d.queued = answer(0, command...)
	} else {
		d.ready = answer(0, command...)
	}
	return len(command), nil
}

func (d *driver) Read(buf []byte) (int, error) {
	n := copy(buf, d.ready)
	d.ready, d.queued = d.queued, nil
	if n == 0 {
		return 0, io.EOF // what os.File makes of 0 bytes
	}
	return n, nil
}

func (d *driver) Close() error { return d.file.Close() }

// A TPM's driver answers a file in O_NONBLOCK with an end of file while the TPM works,
// so a device is opened without it.
func TestDeviceWaitsForAnswers(t *testing.T) {
	t.Parallel()
	device, _ := terminal(t)
	ours := func() (io.ReadWriteCloser, error) {
		rw, _, err := dial(t.Context(), device)
		return rw, err
	}
	theirs := func() (io.ReadWriteCloser, error) { return os.OpenFile(device, os.O_RDWR, 0) }
	for name, tc := range map[string]struct {
		open func() (io.ReadWriteCloser, error)
		want error
	}{
		"dial":        {ours, nil},
		"os.OpenFile": {theirs, io.ErrUnexpectedEOF},
	} {
		rw, err := tc.open()
		if err != nil {
			t.Fatal(err)
		}
		c := newConn(device, &driver{file: rw.(*os.File)}, nil)
		if _, err := c.send(t.Context(), []byte{1}); !errors.Is(err, tc.want) {
			t.Errorf("%s: the answer is %v, want %v", name, err, tc.want)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// longCommand is more bytes than a terminal holds: write(2) does not return before the TPM has read the rest, as that of a TPM's driver
// does not return before the TPM has answered.
const longCommand = 1 << 20

// call has a goroutine send a command over a connection to a device and waits until
// the goroutine is in the kernel: the TPM has read the first byte.
func call(ctx context.Context, t *testing.T, device string, tpm io.Reader) (*conn, <-chan error) {
	t.Helper()
	rw, left, err := dial(ctx, device)
	if err != nil {
		t.Fatal(err)
	}
	c, failed := newConn(device, rw, left), make(chan error, 1)
	go func() {
		_, err := c.send(ctx, make([]byte, longCommand))
		failed <- err
	}()
	if _, err := io.ReadFull(tpm, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return c, failed
}

// letGo has the TPM read the rest of a command, so that the call returns, and waits until the device is closed.
func letGo(t *testing.T, tpm io.Reader) {
	t.Helper()
	if _, err := io.Copy(io.Discard, tpm); !errors.Is(err, unix.EIO) {
		t.Fatal(err)
	}
}

// A TPM that never answers frees its caller. Its thread stays in the kernel, and
// until that is back the device is not opened again.
func TestSilentDeviceFreesCaller(t *testing.T) {
	t.Parallel()
	device, tpm := terminal(t)
	ctx, giveUp := context.WithCancelCause(t.Context())
	c, failed := call(ctx, t, device, tpm)
	var returned <-chan struct{}
	left := c.left
	c.left = func(r <-chan struct{}) { returned = r; left(r) }
	giveUp(ErrSilent)
	if err := <-failed; !errors.Is(err, ErrSilent) {
		t.Errorf("the caller got %v, want %v", err, ErrSilent)
	}
	if err := c.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if _, err := Open(t.Context(), device); !errors.Is(err, ErrStuck) {
		t.Errorf("opened while the call is in the kernel: %v, want %v", err, ErrStuck)
	}
	letGo(t, tpm)
	<-returned
	d, err := Open(t.Context(), device)
	if err != nil {
		t.Fatalf("after the call returned: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// Close waits for no answer, and neither does a second command on the connection.
func TestCloseDoesNotWait(t *testing.T) {
	t.Parallel()
	device, tpm := terminal(t)
	c, failed := call(t.Context(), t, device, tpm)
	var returned <-chan struct{}
	left := c.left
	c.left = func(r <-chan struct{}) { returned = r; left(r) }
	if err := c.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := <-failed; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the command under way: %v, want %v", err, io.ErrClosedPipe)
	}
	if _, err := c.send(t.Context(), []byte{1}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a command after that: %v, want %v", err, io.ErrClosedPipe)
	}
	letGo(t, tpm)
	<-returned // the next terminal may have the same name, and must not be found to be stuck
}

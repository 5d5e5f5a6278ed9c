//go:build vm

// Package tpm_test runs in a virtual machine with two CPUs, a software TPM and the
// kernel's driver for it, and tests how a device of a TPM is opened and left.
package tpm_test

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/attest/tpm"
	"portcullis/packaging/vm/inside/guest"
)

// readPCR0 is TPM2_PCR_Read of PCR 0 in the SHA-256 bank.
var readPCR0 = []byte{0x80, 1, 0, 0, 0, 20, 0, 0, 1, 0x7e, 0, 0, 0, 1, 0, 0x0b, 3, 1, 0, 0}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// read opens a device as the product does and reads a PCR.
func read(ctx context.Context, device string) error {
	d, err := tpm.Open(ctx, device)
	if err != nil {
		return err
	}
	_, err = d.ReadPCRs(ctx, []int{0})
	return errors.Join(err, d.Close())
}

// openFile opens a device with os.OpenFile, sends a command, and reads the answer.
func openFile(device string) (int, error) {
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if _, err := f.Write(readPCR0); err != nil {
		return 0, err
	}
	return f.Read(make([]byte, 4096))
}

// TestKernel: the machine without firmware and without root file system is what the other labs build on.
func TestKernel(t *testing.T) { guest.Kernel(t) }

// Commands are answered, however many: with two CPUs the driver's queue does not run
// before the read.
func TestCommandsAreAnswered(t *testing.T) {
	if n := runtime.NumCPU(); n < 2 {
		t.Fatalf("%d CPU: an answer that comes too late is seen with two", n)
	}
	for i := range 100 {
		if err := read(t.Context(), tpm.DefaultDevice); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
	d, err := tpm.Open(t.Context(), tpm.DefaultDevice)
	must(t, err)
	defer d.Close()
	for i := range 200 {
		if _, err := d.ReadPCRs(t.Context(), []int{0, 1, 2, 3, 4, 5, 6, 7}); err != nil {
			t.Fatalf("command %d of one connection: %v", i, err)
		}
	}
}

// On the same machine os.OpenFile loses answers, so that TestCommandsAreAnswered can
// fail.
func TestOpenFileLosesAnswers(t *testing.T) {
	const most = 2000
	for i := range most {
		switch n, err := openFile(tpm.DefaultDevice); {
		case errors.Is(err, io.EOF):
			t.Logf("lost answer %d", i+1)
			return
		case err != nil:
			t.Fatal(err)
		case n <= 10:
			t.Fatalf("an answer of %d bytes", n)
		}
	}
	t.Errorf("%d commands through os.OpenFile, and each was answered: this machine does not show the defect", most)
}

// A TPM that takes its time is waited for.
func TestSlowTPM(t *testing.T) {
	p := newProxy(t)
	p.hold()
	done := make(chan error, 1)
	go func() { done <- read(t.Context(), p.device) }()
	p.awaitCommand(t)
	select {
	case err := <-done:
		t.Fatalf("the command ended before the TPM answered: %v", err)
	case <-time.After(time.Second): // the time that this TPM takes
	}
	p.release()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestSilentTPM checks that a TPM that never answers frees its caller. The call that remains in the kernel keeps others
// from opening the device, until the driver is done with it.
func TestSilentTPM(t *testing.T) {
	p := newProxy(t)
	d, err := tpm.Open(t.Context(), p.device)
	must(t, err)
	idle, err := tpm.Open(t.Context(), p.device)
	must(t, err)
	p.hold()
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	done := make(chan error, 1)
	go func() {
		_, err := d.ReadPCRs(ctx, []int{0})
		done <- err
	}()
	p.awaitCommand(t)
	giveUp()
	await(t, "the caller to be freed", done, context.Canceled)
	go func() { done <- d.Close() }()
	await(t, "Close to return", done, nil)
	go func() { done <- read(t.Context(), p.device) }()
	await(t, "another connection to be refused", done, tpm.ErrStuck)
	go func() { done <- idle.Close() }()
	await(t, "an idle connection to be closed, which waits for the TPM", done, tpm.ErrStuck)

	p.release()
	deadline := time.Now().Add(20 * time.Second)
	for err = read(t.Context(), p.device); errors.Is(err, tpm.ErrStuck) && time.Now().Before(deadline); err = read(t.Context(), p.device) {
		runtime.Gosched()
	}
	must(t, err)
}

// The limit of poll(2) does not hold for a TPM that works: waiting with it for the
// answer would not free the caller.
func TestPollHasNoLimit(t *testing.T) {
	p := newProxy(t)
	fd, err := unix.Open(p.device, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(fd)
	p.hold()
	_, err = unix.Write(fd, readPCR0)
	must(t, err)
	p.awaitCommand(t)
	done := make(chan error, 1)
	go func() {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10)
		done <- err
	}()
	select {
	case err := <-done:
		t.Errorf("poll returned after its limit (%v): then poll could bound the wait for an answer", err)
	case <-time.After(2 * time.Second): // 200 times the limit
	}
	p.release()
	await(t, "poll to return", done, nil)
}

// await takes an error that must come within some seconds.
func await(t *testing.T, what string, done <-chan error, want error) {
	t.Helper()
	select {
	case err := <-done:
		if !errors.Is(err, want) {
			t.Errorf("waited for %s: %v, want %v", what, err, want)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("waited 20 s for %s", what)
	}
}

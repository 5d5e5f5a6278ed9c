package tpm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"syscall"

	"github.com/google/go-tpm/tpm2"
	"github.com/google/go-tpm/tpm2/transport"
)

// DefaultDevice is the kernel's TPM with its resource manager.
const DefaultDevice = "/dev/tpmrm0"

const unixPrefix = "unix:"

// TPM is an open TPM. Its methods may be called from several goroutines, but
// commands run one at a time.
type TPM struct {
	c *conn
}

// Open opens a TPM: a character device such as /dev/tpmrm0, or "unix:PATH" for
// the socket of a software TPM. A software TPM has no resource manager, so
// whatever an earlier client left in it is flushed.
func Open(ctx context.Context, device string) (*TPM, error) {
	rw, left, err := dial(ctx, device)
	if err != nil {
		return nil, fmt.Errorf("TPM %s: %w", device, err)
	}
	t := &TPM{c: newConn(device, rw, left)}
	if strings.HasPrefix(device, unixPrefix) {
		if err := t.flushAll(ctx); err != nil {
			return nil, errors.Join(err, t.Close())
		}
	}
	return t, nil
}

// dial returns a connection. If closing it does not end a call in progress, dial also returns the function to report a call
// that was left.
func dial(ctx context.Context, device string) (io.ReadWriteCloser, func(<-chan struct{}), error) {
	path, ok := strings.CutPrefix(device, unixPrefix)
	if !ok {
		return dialDevice(device)
	}
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, nil, classify(err)
	}
	return c, nil, nil
}

// classify adds what to do to the errors people meet.
func classify(err error) error {
	for _, c := range []struct{ is, class error }{
		{fs.ErrNotExist, ErrMissing},
		{syscall.ENXIO, ErrMissing},
		{syscall.ENODEV, ErrMissing},
		{syscall.ECONNREFUSED, ErrMissing},
		{fs.ErrPermission, ErrPermission},
		{syscall.EBUSY, ErrBusy},
		{syscall.ENOTSOCK, ErrNotTPM},
	} {
		if errors.Is(err, c.is) {
			return fmt.Errorf("%w (%v)", c.class, err)
		}
	}
	return err
}

// Close releases the TPM. It does not wait for a command that is under way, which
// fails. The error is ErrStuck if the kernel keeps a device that the TPM keeps busy.
func (t *TPM) Close() error { return t.c.Close() }

// with returns the TPM under a context, for go-tpm's commands.
func (t *TPM) with(ctx context.Context) transport.TPM { return bound{ctx, t.c} }

// First handles of objects that a client can leave behind (TPM 2.0 part 2, 7.2).
const (
	firstTransient     = 0x80000000
	firstLoadedSession = 0x02000000
)

func (t *TPM) flushAll(ctx context.Context) error {
	for _, first := range []uint32{firstTransient, firstLoadedSession} {
		rsp, err := tpm2.GetCapability{
			Capability: tpm2.TPMCapHandles, Property: first, PropertyCount: 64,
		}.Execute(t.with(ctx))
		if err != nil {
			return explain("list what is loaded", err)
		}
		handles, err := rsp.CapabilityData.Data.Handles()
		if err != nil {
			return fmt.Errorf("TPM: list what is loaded: %w: %v", ErrBroken, err)
		}
		for _, h := range handles.Handle {
			if err := t.flush(ctx, h); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *TPM) flush(ctx context.Context, h tpm2.TPMHandle) error {
	_, err := tpm2.FlushContext{FlushHandle: h}.Execute(t.with(ctx))
	return explain(fmt.Sprintf("flush 0x%08x", uint32(h)), err)
}

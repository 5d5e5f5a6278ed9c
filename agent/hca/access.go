package hca

import (
	"context"

	"portcullis/agent/hca/register"
	"portcullis/fabricsm/ib"
)

// Access is the one way to an adapter's firmware registers. Package fwctl does
// it through the kernel or to a simulated adapter, package mst with the
// vendor's tools.
//
// data is what the register is asked with, as long as the register is; the
// answer has the same length. That the firmware refused is a *register.Error;
// any other error means that it was not reached.
type Access interface {
	Access(ctx context.Context, id register.ID, method register.Method, data []byte) ([]byte, error)
}

// Vports is what an Access may also have: the firmware's own view of the ports
// of its function, past the driver.
type Vports interface {
	VportContext(ctx context.Context, port uint8) (register.VportContext, error)
	PKeys(ctx context.Context, port uint8) ([]ib.PKey, error)
}

// Read reads a register; in is what selects, the zero value where nothing does.
func Read[T register.Layout](ctx context.Context, a Access, in T) (T, error) {
	return exchange(ctx, a, register.Read, in)
}

// Write writes a register and returns the firmware's answer.
func Write[T register.Layout](ctx context.Context, a Access, in T) (T, error) {
	return exchange(ctx, a, register.Write, in)
}

func exchange[T register.Layout](ctx context.Context, a Access, m register.Method, in T) (out T, err error) {
	data, err := register.Encode(in)
	if err != nil {
		return out, err
	}
	defer clear(data) // a lock's key may be among it
	answer, err := a.Access(ctx, in.ID(), m, data)
	if err != nil {
		return out, err
	}
	return register.Decode[T](answer)
}

package lock

import (
	"context"
	"errors"
	"time"

	"portcullis/agent/hca"
	"portcullis/agent/hca/register"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/profile"
)

// Adapter is one adapter and the means to drive it.
type Adapter struct {
	Name   string  // for messages, for example 0000:17:00.0
	Base   ib.GUID // of manufacture
	MAC    uint64  // base MAC of manufacture, 48 bits; 0: not known, and no challenge is drawn
	PSID   string
	Ports  []ib.PortNum // InfiniBand ports
	Access hca.Access
	// Reset resets the firmware and returns when the driver has the adapter again.
	Reset func(ctx context.Context) error
	// Probe sends a harmless subnet management packet (Get of NodeInfo, no hops)
	// from a port and says what became of it.
	Probe func(ctx context.Context, port ib.PortNum) (attest.Firewall, error)
	// Look, if not nil, is called once the adapter is open and settled, before it is locked. Afterwards the firmware
	// reports only that the adapter is locked.
	Look func(ctx context.Context) error
	// Wait waits between two looks at an adapter that is busy.
	Wait func(ctx context.Context, d time.Duration) error
}

// Order is what the service decided for one adapter.
type Order struct {
	Base    ib.GUID // the adapter's; the order is for no other
	Profile *profile.Profile
	// File is a signed NVCONFIG file for this adapter; nil: settings are written
	// plainly, and MLOCK alone keeps them.
	File []byte
	// Challenge is what the adapter drew for that file; nil: nothing.
	Challenge *Challenge
	// Lock is the key to lock with.
	Lock Key
	// Held are the keys that the adapter may be locked with, the newest first.
	Held []Key
}

// Key is a key of MLOCK.
type Key struct {
	Epoch uint64
	Key   ib.LockKey
}

// Method is how the order brings settings to the adapter.
func (o *Order) Method() profile.Method {
	if o.File != nil {
		return profile.SignedFile
	}
	return profile.PlainWrites
}

// check refuses an order for another adapter, or without key.
func (a *Adapter) check(o *Order) error {
	const hint = "ask the service for a new order"
	switch {
	case a.Base == 0:
		return fail(CodeOrder, "check why the adapter does not report its GUID of manufacture", "adapter %s: its GUID of manufacture is not known, so its keys cannot be identified", a.Name)
	case o.Base != a.Base:
		return fail(CodeOrder, hint, "adapter %s: has GUID %v, the order is for %v", a.Name, a.Base, o.Base)
	case o.Profile == nil:
		return fail(CodeOrder, hint, "adapter %s: the order has no profile", a.Name)
	case o.Lock.Key.IsZero() || o.Lock.Epoch == 0:
		return fail(CodeOrder, hint, "adapter %s: the order has no key to lock with", a.Name)
	}
	return nil
}

const (
	busyWait  = 100 * time.Millisecond
	busyTimes = 100
)

// patiently does something again while the adapter is busy.
func (a *Adapter) patiently(ctx context.Context, do func() error) error {
	for n := 0; ; n++ {
		err := do()
		if !errors.Is(err, register.ErrBusy) || n == busyTimes {
			return err
		}
		if err := a.Wait(ctx, busyWait); err != nil {
			return err
		}
	}
}

func read[T register.Layout](ctx context.Context, a *Adapter, in T) (out T, err error) {
	err = a.patiently(ctx, func() (err error) {
		out, err = hca.Read(ctx, a.Access, in)
		return err
	})
	return out, err
}

func write[T register.Layout](ctx context.Context, a *Adapter, in T) (out T, err error) {
	err = a.patiently(ctx, func() (err error) {
		out, err = hca.Write(ctx, a.Access, in)
		return err
	})
	return out, err
}

// item asks for an item, or stores it.
func (a *Adapter) item(ctx context.Context, m register.Method, i nvconfig.Item) (got nvconfig.Item, err error) {
	var answer []byte
	err = a.patiently(ctx, func() (err error) {
		answer, err = a.Access.Access(ctx, register.IDMNVDA, m, i.Append(nil))
		return err
	})
	if err != nil {
		return nvconfig.Item{}, err
	}
	got, _, err = nvconfig.ParseItem(answer)
	return got, err
}

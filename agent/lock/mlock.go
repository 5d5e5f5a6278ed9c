package lock

import (
	"context"
	"errors"

	"portcullis/agent/hca/register"
	"portcullis/firmware/nvconfig"
)

// Unlock opens the adapter with one of the keys, and returns the epoch of that key, or 0 if the adapter was open. It reads
// back that the adapter is open.
func (a *Adapter) Unlock(ctx context.Context, held []Key) (epoch uint64, err error) {
	state, err := a.state(ctx)
	if err != nil {
		return 0, err
	}
	switch state {
	case register.Unlocked:
		return 0, nil
	case register.Locked:
	default:
		return 0, fail(CodeOutOfBand, "open it where it was locked: at the management controller", "adapter %s: is %v, which only its management controller can change", a.Name, state)
	}
	for _, k := range held {
		_, err := write(ctx, a, register.MLOCK{State: register.Unlocked, Key: k.Key})
		if _, refused := errors.AsType[*register.Error](err); err != nil && !refused {
			return 0, fail(CodeUnreadable, "", "adapter %s: unlock: %w", a.Name, err)
		}
		// Whether it was refused or not, only the state counts.
		if state, err = a.state(ctx); err != nil {
			return 0, err
		}
		if state == register.Unlocked {
			return k.Epoch, nil
		}
	}
	return 0, fail(CodeForeign, "find out who locked it; portcullis lock keys lists the epochs that were tried; the vendor's way out is the flash-not-present jumper",
		"adapter %s: is locked, and none of the %d keys of the service opens it", a.Name, len(held))
}

func (a *Adapter) state(ctx context.Context) (register.LockState, error) {
	m, err := read(ctx, a, register.MLOCK{})
	if err != nil {
		return 0, fail(CodeUnreadable, "secure host needs firmware xx.22.1002 or later, and a way to its registers", "adapter %s: state of the lock: %w", a.Name, err)
	}
	return m.State, nil
}

// shut locks with a key and reads back that it is locked.
func (a *Adapter) shut(ctx context.Context, k Key) error {
	if _, err := write(ctx, a, register.MLOCK{State: register.Locked, Key: k.Key}); err != nil {
		code := CodeUnreadable
		if _, refused := errors.AsType[*register.Error](err); refused {
			code = CodeRefused
		}
		return fail(code, "secure host needs firmware xx.22.1002 or later", "adapter %s: lock: %w", a.Name, err)
	}
	state, err := a.state(ctx)
	if err != nil {
		return err
	}
	if state != register.Locked {
		return fail(CodeNotHeld, "take the adapter out of service", "adapter %s: accepted the lock, but is %v", a.Name, state)
	}
	return nil
}

// prove shows that the lock holds and that the key in it is ours: a tenant's attempt is refused, our key opens the lock,
// and it is locked again. An adapter that answers "locked" to a second key would pass without this.
func (a *Adapter) prove(ctx context.Context, k Key, firewall nvconfig.Item) error {
	if err := a.refusesWrite(ctx, firewall); err != nil {
		return err
	}
	if _, err := write(ctx, a, register.MLOCK{State: register.Unlocked, Key: k.Key}); err != nil {
		return fail(CodeNotOurs, "power the host off and on, and run the agent again", "adapter %s: is locked, but not with the key of epoch %d that was just set: %w", a.Name, k.Epoch, err)
	}
	state, err := a.state(ctx)
	if err != nil {
		return err
	}
	if state != register.Unlocked {
		return fail(CodeNotOurs, "power the host off and on, and run the agent again", "adapter %s: accepted the key of epoch %d, but is %v", a.Name, k.Epoch, state)
	}
	if err := a.shut(ctx, k); err != nil {
		return err
	}
	return a.refusesWrite(ctx, firewall)
}

// refusesWrite writes the setting of the SMP firewall as it is, which must be
// refused. If it is not, nothing has changed but that we know.
func (a *Adapter) refusesWrite(ctx context.Context, firewall nvconfig.Item) error {
	firewall.Header = nvconfig.Header{OverrideEnabled: true, ReadEnabled: true, Writer: nvconfig.WriterOurs, Address: firewall.Address}
	_, err := a.item(ctx, register.Write, firewall)
	_, refused := errors.AsType[*register.Error](err)
	switch {
	case refused:
		return nil
	case err != nil:
		return fail(CodeUnreadable, "", "adapter %s: try to write %v: %w", a.Name, firewall.Address, err)
	default:
		return fail(CodeNotHeld, "take the adapter out of service", "adapter %s: is locked, but the host can still write %v", a.Name, firewall.Address)
	}
}

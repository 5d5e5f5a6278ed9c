package lock

import (
	"context"
	"fmt"

	"portcullis/agent/hca/register"
	"portcullis/firmware/nvconfig"
)

const (
	maxComponents = 64 // of MCQS that are looked at
	maxSteps      = 600
)

// apply loads a signed file (hca-access.md section 5, nvconfig-lock.md section 6).
func (a *Adapter) apply(ctx context.Context, file []byte) error {
	f, err := nvconfig.Parse(file)
	if err != nil {
		return fail(CodeOrder, "ask the service for a new order", "adapter %s: the order's file: %w", a.Name, err)
	}
	if f.Component != nvconfig.OEMConfig {
		return fail(CodeOrder, "ask the service for a new order", "adapter %s: the order's file is not an OEM configuration but %v", a.Name, f.Component)
	}
	index, err := a.componentIndex(ctx, register.OEMNVConfig)
	if err != nil {
		return err
	}
	m, err := read(ctx, a, register.MCC{})
	if err != nil {
		return fail(CodeUnreadable, "", "adapter %s: %w", a.Name, err)
	}
	u := &update{a: a, index: index, handle: m.Handle, length: uint32(len(file))}
	if m.State != register.StateIdle {
		return fail(CodeRefused, "wait until it ends, or reset the adapter", "adapter %s: an update is under way (%v), held by owner %d", a.Name, m.State, m.OwnerType)
	}
	err = u.run(ctx, file)
	if err != nil {
		u.abandon(context.WithoutCancel(ctx))
	}
	return err
}

func (a *Adapter) componentIndex(ctx context.Context, want register.Component) (uint16, error) {
	for index := range uint16(maxComponents) {
		m, err := read(ctx, a, register.MCQS{Index: index})
		if err != nil {
			return 0, fail(CodeUnreadable, "", "adapter %s: component %d: %w", a.Name, index, err)
		}
		if m.Identifier == want && !m.NotSupported {
			return index, nil
		}
		if m.Last {
			break
		}
	}
	return 0, fail(CodeRefused, "let the service order plain writes for this kind of adapter", "adapter %s: its firmware takes no signed configuration", a.Name)
}

// update is one run of the machine that takes components.
type update struct {
	a      *Adapter
	index  uint16
	handle uint32
	length uint32
}

func (u *update) run(ctx context.Context, file []byte) error {
	if err := u.step(ctx, register.LockHandle, register.StateLocked); err != nil {
		return err
	}
	if err := u.step(ctx, register.UpdateComponent, register.StateDownload); err != nil {
		return err
	}
	for at := 0; at < len(file); at += register.BlockSize {
		block := file[at:min(at+register.BlockSize, len(file))]
		if _, err := write(ctx, u.a, register.NewMCDA(u.handle, uint32(at), block)); err != nil {
			return u.refused(fmt.Sprintf("bytes from %d", at), 0, err)
		}
	}
	if err := u.step(ctx, register.VerifyComponent, register.StateLocked); err != nil {
		return err
	}
	if err := u.step(ctx, register.Activate, register.StateLocked); err != nil {
		return err
	}
	return u.step(ctx, register.ReleaseHandle, register.StateIdle)
}

// step sends an instruction and waits until the machine reaches the state that follows it.
func (u *update) step(ctx context.Context, i register.Instruction, want register.ControlState) error {
	m, err := write(ctx, u.a, register.MCC{Instruction: i, Index: u.index, Handle: u.handle, Length: u.length})
	for n := 0; err == nil && m.Error == register.MCCOK && m.State != want; n++ {
		if n == maxSteps {
			return fail(CodeRefused, "reset the adapter", "adapter %s: %v: still in state %v", u.a.Name, i, m.State)
		}
		if err := u.a.Wait(ctx, busyWait); err != nil {
			return err
		}
		m, err = read(ctx, u.a, register.MCC{Handle: u.handle})
	}
	if err == nil && m.Error == register.MCCOK {
		return nil
	}
	why := m.Error
	if shown, e := read(ctx, u.a, register.MCC{Handle: u.handle}); why == register.MCCOK && e == nil {
		why = shown.Error
	}
	return u.refused(i.String(), why, err)
}

func (u *update) refused(what string, why register.MCCError, err error) error {
	hint := "check which keys the adapter trusts for settings (firmware-images: PUBLIC_KEYS), or order plain writes"
	if err == nil || why != register.MCCOK {
		refused := RefusedFile{why}
		if MayTakeLess(refused) {
			hint = "check that the file is for this adapter and its last challenge (portcullis lock show), and that its firmware takes such files (locks.binding)"
		}
		return fail(CodeRefused, hint, "adapter %s: apply configuration: %s: %w", u.a.Name, what, refused)
	}
	return fail(CodeRefused, hint, "adapter %s: apply configuration: %s: %w", u.a.Name, what, err)
}

// abandon leaves the machine idle for the next process.
func (u *update) abandon(ctx context.Context) {
	_, _ = write(ctx, u.a, register.MCC{Instruction: register.Cancel, Handle: u.handle})
	_, _ = write(ctx, u.a, register.MCC{Instruction: register.ReleaseHandle, Handle: u.handle})
}

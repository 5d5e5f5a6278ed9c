package hcasim

import (
	"testing"

	"portcullis/agent/hca/register"
)

// machine drives MCC step by step.
func (l lab) mcc(i register.Instruction, handle uint32, length int) (register.MCC, register.Status) {
	l.Helper()
	const oemConfig = 1
	return do(l, register.Write, register.MCC{Instruction: i, Handle: handle, Index: oemConfig, Length: uint32(length)})
}

// Steps out of order end the flow: the handle is free again, and nothing holds.
func TestMachineOrder(t *testing.T) {
	l := open(t)
	data := wall().sign(l)
	for _, tt := range []struct {
		name  string
		steps []register.Instruction
	}{
		{"update without the handle", []register.Instruction{register.UpdateComponent}},
		{"verify without a component", []register.Instruction{register.LockHandle, register.VerifyComponent}},
		{"activate without a component", []register.Instruction{register.LockHandle, register.Activate}},
		{"verify without data", []register.Instruction{register.LockHandle, register.UpdateComponent, register.VerifyComponent}},
		{"activate what is not verified", []register.Instruction{register.LockHandle, register.UpdateComponent, register.Activate}},
		{"update twice", []register.Instruction{register.LockHandle, register.UpdateComponent, register.UpdateComponent}},
		{"cancel, then activate", []register.Instruction{register.LockHandle, register.UpdateComponent, register.Cancel, register.Activate}},
	} {
		handle := get(l, register.MCC{}).Handle
		for i, step := range tt.steps {
			out, status := l.mcc(step, handle, len(data))
			last := i == len(tt.steps)-1
			if (status == register.OK) == last {
				t.Errorf("%s, %v: %v", tt.name, step, status)
			}
			if last && (out.Error == register.MCCOK || out.State != register.StateIdle) {
				t.Errorf("%s, %v: %+v", tt.name, step, out)
			}
		}
		if m := get(l, register.MCC{}); m.Error == register.MCCOK {
			t.Errorf("%s: the error is not shown any more", tt.name)
		}
	}
	l.isOn(false, false)
	l.mustUpload(register.OEMNVConfig, data)
	if m := get(l, register.MCC{}); m.Error != register.MCCOK || m.State != register.StateIdle {
		t.Errorf("after it went well: %+v", m)
	}
	if got := get(l, register.MCQS{Index: 1}).State; got != register.ComponentActivePendingReset {
		t.Errorf("state of the component: %v", got)
	}
}

func TestHandle(t *testing.T) {
	l := open(t)
	handle := get(l, register.MCC{}).Handle
	if _, status := l.mcc(register.LockHandle, handle+1, 0); status != register.BadParameter {
		t.Errorf("a handle that was not given: %v", status)
	}
	if _, status := l.mcc(register.LockHandle, handle, 0); status != register.OK {
		t.Fatal(status)
	}
	if _, status := l.mcc(register.LockHandle, handle, 0); status != register.Busy {
		t.Errorf("taken twice: %v", status)
	}
	if m := get(l, register.MCC{}); m.State != register.StateLocked || m.Handle != handle || m.OwnerType != ownerICMD {
		t.Errorf("held: %+v", m)
	}
	if _, status := l.mcc(register.CheckHandle, handle, 0); status != register.OK {
		t.Errorf("check: %v", status)
	}
	if _, status := l.mcc(register.ReadComponent, handle, 0); status != register.BadParameter {
		t.Errorf("read a component: %v", status)
	}
	if _, status := l.mcc(register.ForceRelease, 0, 0); status != register.OK {
		t.Errorf("force: %v", status)
	}
	if again := get(l, register.MCC{}).Handle; again == handle {
		t.Error("the next handle is the last one")
	}
	l.card.HoldUpdate()
	if _, status := l.mcc(register.LockHandle, get(l, register.MCC{}).Handle, 0); status != register.Busy {
		t.Errorf("held by somebody else: %v", status)
	}
	l.card.Reset()
	l.mustUpload(register.OEMNVConfig, wall().sign(l))
}

// Blocks come in order, at the place they say, and not past the end.
func TestBlocks(t *testing.T) {
	l := open(t)
	handle := get(l, register.MCC{}).Handle
	l.mcc(register.LockHandle, handle, 0)
	block := make([]byte, 128)
	send := func(m register.MCDA) register.Status { _, status := do(l, register.Write, m); return status }
	if got := send(register.NewMCDA(handle, 0, block)); got != register.BadResourceState {
		t.Errorf("before the component: %v", got)
	}
	l.mcc(register.UpdateComponent, handle, 130)
	for _, tt := range []struct {
		name string
		m    register.MCDA
		want register.Status
	}{
		{"another handle", register.NewMCDA(handle+1, 0, block), register.BadResourceState},
		{"a hole", register.NewMCDA(handle, 128, block), register.BadParameter},
		{"too long a block", register.MCDA{Handle: handle, Length: 132}, register.BadParameter},
		{"the first", register.NewMCDA(handle, 0, block), register.OK},
		{"twice", register.NewMCDA(handle, 0, block), register.BadParameter},
		{"past the end", register.NewMCDA(handle, 128, block[:8]), register.BadParameter},
		{"the rest, in whole dwords", register.NewMCDA(handle, 128, block[:4]), register.OK},
	} {
		if got := send(tt.m); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	for _, length := range []int{0, maxFile + 1} {
		l.mcc(register.ForceRelease, 0, 0)
		handle := get(l, register.MCC{}).Handle
		l.mcc(register.LockHandle, handle, 0)
		if out, _ := l.mcc(register.UpdateComponent, handle, length); out.Error != register.RejectedBadFormat {
			t.Errorf("a component of %d bytes: %+v", length, out)
		}
	}
}

// A machine that ends its steps later is read until it has.
func TestLater(t *testing.T) {
	l := open(t, traits(func(x *Traits) { x.Later = true }))
	handle := get(l, register.MCC{}).Handle
	l.mcc(register.LockHandle, handle, 0)
	if out, _ := l.mcc(register.UpdateComponent, handle, 4); out.State != register.StateInitialize {
		t.Errorf("update: %+v", out)
	}
	if _, status := l.mcc(register.VerifyComponent, handle, 4); status != register.Busy {
		t.Errorf("in between: %v", status)
	}
	if m := get(l, register.MCC{}); m.State != register.StateDownload {
		t.Errorf("then: %+v", m)
	}
	l.mcc(register.ForceRelease, 0, 0)
	l.mustUpload(register.OEMNVConfig, wall().sign(l))
	l.isOn(false, true)
	l.refused(register.OEMNVConfig, flipped(wall().sign(l), 100), register.RejectedAuthFailed)
}

func TestComponents(t *testing.T) {
	l := open(t)
	var seen []register.Component
	for i := range uint16(20) {
		m := get(l, register.MCQS{Index: i})
		if seen = append(seen, m.Identifier); m.Last {
			break
		}
	}
	if len(seen) != len(components) || seen[0] != register.BootImage || seen[1] != register.OEMNVConfig {
		t.Errorf("components %v", seen)
	}
	if _, status := do(l, register.Read, register.MCQS{Index: 99}); status != register.BadParameter {
		t.Errorf("component 99: %v", status)
	}
	m := get(l, register.MCQI{Type: register.Version, DataSize: 124})
	v, err := register.Decode[register.ComponentVersion](m.Data[:])
	if err != nil || register.Text(v.Text[:]) != "28.43.1014" || int(m.InfoSize) != v.Size() || v.Version != 0x1C2B03F6 {
		t.Errorf("version %+v, %v", v, err)
	}
	m = get(l, register.MCQI{Index: 1, Type: register.Capabilities, DataSize: 124})
	caps, err := register.Decode[register.ComponentCapabilities](m.Data[:])
	if err != nil || !caps.SignedOnly || caps.MaxWrite != register.BlockSize || m.DataSize != 20 {
		t.Errorf("capabilities %+v, %v", caps, err)
	}
	for _, bad := range []register.MCQI{
		{Type: register.Version, Pending: true}, {Index: 1, Type: register.Version}, {Type: 9}, {Index: 99}, {Type: register.Version, Offset: 2}, {Type: register.Version, Offset: 400},
	} {
		if _, status := do(l, register.Read, bad); status != register.BadParameter {
			t.Errorf("%+v: %v", bad, status)
		}
	}
}

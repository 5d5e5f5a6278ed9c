package hcasim

import (
	"testing"

	"portcullis/agent/hca/register"
	"portcullis/fabricsm/ib"
	"portcullis/firmware/nvconfig"
)

var ourKey, otherKey = ib.NewLockKey(0x1122334455667788), ib.NewLockKey(99)

func (l lab) lock(state register.LockState, key ib.LockKey) register.Status {
	l.Helper()
	_, status := do(l, register.Write, register.MLOCK{State: state, Key: key})
	return status
}

func TestLock(t *testing.T) {
	l := open(t)
	steps := []struct {
		name  string
		state register.LockState
		key   ib.LockKey
		want  register.Status
		after register.LockState
	}{
		{"unlock what is open", register.Unlocked, ourKey, register.OK, register.Unlocked},
		{"lock without a key", register.Locked, ib.LockKey{}, register.BadParameter, register.Unlocked},
		{"ask for a state of managers", register.LockedFWUpdate, ourKey, register.BadParameter, register.Unlocked},
		{"lock", register.Locked, ourKey, register.OK, register.Locked},
		{"lock again with another key, which says nothing", register.Locked, otherKey, register.OK, register.Locked},
		{"unlock with that key", register.Unlocked, otherKey, register.BadParameter, register.Locked},
		{"unlock", register.Unlocked, ourKey, register.OK, register.Unlocked},
		{"lock with another key", register.Locked, otherKey, register.OK, register.Locked},
		{"unlock with the old key", register.Unlocked, ourKey, register.BadParameter, register.Locked},
	}
	for _, s := range steps {
		if got := l.lock(s.state, s.key); got != s.want {
			t.Errorf("%s: %v, want %v", s.name, got, s.want)
		}
		if m := get(l, register.MLOCK{Key: ourKey}); m.State != s.after || !m.Key.IsZero() {
			t.Errorf("%s: then %v, want %v", s.name, m.State, s.after)
		}
	}
	l.card.Reset()
	if got := l.card.LockState(); got != register.Locked {
		t.Errorf("after a boot: %v", got)
	}
}

// While a card is locked its host changes nothing, and reads what is open.
func TestLocked(t *testing.T) {
	for _, reads := range []bool{false, true} {
		l := open(t, traits(func(x *Traits) { x.ReadsLocked = reads }))
		l.lock(register.Locked, ourKey)
		get(l, register.MGIR{})
		get(l, register.MCAM{})
		get(l, register.MFSV{})
		get(l, register.MNVGC{})
		get(l, register.MDSR{Type: register.SessionCRCS})
		want := register.BadSystemState
		if reads {
			want = register.OK
		}
		if _, status := l.item(smConf, nvconfig.Next); status != want {
			t.Errorf("read a setting: %v, want %v", status, want)
		}
		if status := l.write(smConf, on); status != register.BadSystemState {
			t.Errorf("write a setting: %v", status)
		}
		if _, status := do(l, register.Write, register.MNVIA{}); status != register.BadSystemState {
			t.Errorf("MNVIA: %v", status)
		}
		if _, status := do(l, register.Write, register.MCC{Instruction: register.LockHandle}); status != register.BadSystemState {
			t.Errorf("MCC: %v", status)
		}
		if _, status := do(l, register.Read, register.MTCQ{Token: register.CRCS}); status != register.BadSystemState {
			t.Errorf("MTCQ: %v", status)
		}
		if _, status := do(l, register.Write, register.MFSV{ProgramEnabled: true}); status != register.BadSystemState {
			t.Errorf("MFSV: %v", status)
		}
		l.lock(register.Unlocked, ourKey)
		l.isOn(false, false)
	}
}

// States 2 and 3 come from managers; the host's key does not open them.
func TestLockedOutOfBand(t *testing.T) {
	l := open(t)
	l.card.LockAs(register.LockedFWUpdate, otherKey)
	if status := l.write(smConf, on); status != register.OK {
		t.Errorf("against firmware only: %v", status)
	}
	l.refused(register.BootImage, []byte("an image"), register.MCCFailed)
	l.card.LockAs(register.LockedHostCfg, otherKey)
	if status := l.write(smConf, off); status != register.BadParameter {
		t.Errorf("against configuration: %v", status)
	}
	l.refused(register.OEMNVConfig, wall().sign(l), register.MCCFailed)
	if status := l.lock(register.Unlocked, otherKey); status != register.BadParameter {
		t.Errorf("the host opens it: %v", status)
	}
}

// A file can bring a lock, which the next boot takes.
func TestLockByFile(t *testing.T) {
	l := open(t)
	f := wall()
	secret := make([]byte, secureHostLength)
	secret[0], secret[15] = byte(register.Locked), 99
	f.items = []nvconfig.Item{nvconfig.OEMItem(nvconfig.GlobalItem(secureHostIndex), secret)}
	l.mustUpload(register.OEMNVConfig, f.sign(l))
	if got := l.card.LockState(); got != register.Unlocked {
		t.Errorf("before the boot: %v", got)
	}
	l.card.Reset()
	if got := l.lock(register.Unlocked, ourKey); got != register.BadParameter {
		t.Errorf("our key: %v", got)
	}
	if got := l.lock(register.Unlocked, otherKey); got != register.OK {
		t.Errorf("the file's key: %v", got)
	}
	forgets := open(t, traits(func(x *Traits) { x.ForgetsLock = true }))
	forgets.lock(register.Locked, ourKey)
	forgets.card.Reset()
	if got := forgets.card.LockState(); got != register.Unlocked {
		t.Errorf("a card that forgets its lock: %v", got)
	}
}

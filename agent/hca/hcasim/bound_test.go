package hcasim

import (
	"testing"

	"portcullis/agent/hca/register"
	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/nvconfigtest"
)

// bound makes a file of settings that answers a challenge.
func (l lab) bound(version uint32, of ...nvconfig.Challenge) []byte {
	l.Helper()
	f := wall()
	f.id.Version = version
	unique, err := nvconfig.ForChallenges(of...)
	if err != nil {
		l.Fatal(err)
	}
	f.items = append([]nvconfig.Item{unique}, f.items...)
	return f.sign(l)
}

func (l lab) challenge() nvconfig.Challenge {
	l.Helper()
	m := get(l, register.MTCQ{Token: register.CRCS})
	if m.Status != register.ChallengeOK {
		l.Fatalf("no challenge: %v", m.Status)
	}
	return nvconfig.NewChallenge(m.BaseMAC, m.Challenge)
}

// A file of settings that is bound to a challenge is for the card that drew it last,
// once, until the next boot; a file whose signature is wrong spends nothing.
func TestBoundFile(t *testing.T) {
	l := open(t)
	l.refused(register.OEMNVConfig, l.bound(7, nvconfig.NewChallenge(l.card.o.Identity.BaseMAC, [32]byte{1})), register.RejectedNotApplicable)
	stale := l.challenge()
	fresh := l.challenge()
	l.refused(register.OEMNVConfig, l.bound(7, stale), register.RejectedNotApplicable)
	l.refused(register.OEMNVConfig, l.bound(7, nvconfig.NewChallenge(fresh.MAC()+1, fresh.Nonce)), register.RejectedNotApplicable)
	file := l.bound(7, nvconfig.NewChallenge(1, fresh.Nonce), fresh)
	l.refused(register.OEMNVConfig, flipped(file, len(file)-1), register.RejectedAuthFailed)
	l.session(register.SessionCRCS, register.SessionChallenged)
	l.mustUpload(register.OEMNVConfig, file)
	l.session(register.SessionCRCS, register.SessionNone)
	l.refused(register.OEMNVConfig, file, register.RejectedNotApplicable)
	l.card.Reset()
	l.isOn(true, true)
	l.refused(register.OEMNVConfig, file, register.RejectedNotApplicable)
	again := l.bound(8, l.challenge())
	l.card.Reset()
	l.refused(register.OEMNVConfig, again, register.RejectedNotApplicable)
	ended := l.bound(8, l.challenge())
	if _, status := do(l, register.Write, register.MDSR{Type: register.SessionCRCS, End: true}); status != register.OK {
		t.Fatal(status)
	}
	l.refused(register.OEMNVConfig, ended, register.RejectedNotApplicable)
	// One whose item cannot be read answers nothing.
	now := l.challenge()
	odd := wall()
	unique, err := nvconfig.ForChallenges(now)
	if err != nil {
		t.Fatal(err)
	}
	unique.Data[487] = 1
	odd.items = append([]nvconfig.Item{unique}, odd.items...)
	odd.id.Version = 8
	l.refused(register.OEMNVConfig, odd.sign(l), register.RejectedNotApplicable)
	l.mustUpload(register.OEMNVConfig, l.bound(8, now))
}

// A file that names a device in the place of a board is for that one alone.
func TestDeviceFile(t *testing.T) {
	l := open(t)
	device := func(mac uint64) []byte {
		parts := wall().parts(l)
		var err error
		if parts[1], err = nvconfig.ForDevice(nvconfig.DeviceID(mac)); err != nil {
			t.Fatal(err)
		}
		return l.signed(parts, nvconfigtest.Key(t, 4096), nvconfigtest.KeyUUID)
	}
	mac := l.card.o.Identity.BaseMAC
	l.refused(register.OEMNVConfig, device(mac+1), register.RejectedNotApplicable)
	l.mustUpload(register.OEMNVConfig, device(mac))
	l.isOn(false, true)
}

// TestBindingTraits checks firmware that respects fewer bindings, or accepts fewer.
func TestBindingTraits(t *testing.T) {
	l := open(t, traits(func(x *Traits) { x.NoChallenges = true }))
	if _, status := do(l, register.Read, register.MTCQ{Token: register.CRCS}); status != register.BadSystemState {
		t.Errorf("without MTCQ: %v", status)
	}
	l = open(t, traits(func(x *Traits) { x.IgnoresChallenges = true }))
	l.mustUpload(register.OEMNVConfig, l.bound(7, nvconfig.NewChallenge(1, [32]byte{2})))
	l = open(t, traits(func(x *Traits) { x.RefusesBound, x.RefusesDevice = true, true }))
	l.refused(register.OEMNVConfig, l.bound(7, l.challenge()), register.RejectedBadFormat)
	parts := wall().parts(l)
	var err error
	if parts[1], err = nvconfig.ForDevice(nvconfig.DeviceID(l.card.o.Identity.BaseMAC)); err != nil {
		t.Fatal(err)
	}
	l.refused(register.OEMNVConfig, l.signed(parts, nvconfigtest.Key(t, 4096), nvconfigtest.KeyUUID), register.RejectedNotApplicable)
	l.mustUpload(register.OEMNVConfig, wall().sign(l))
	l = open(t, traits(func(x *Traits) { x.KeepsChallenge = true }))
	file := l.bound(7, l.challenge())
	if _, status := do(l, register.Write, register.MDSR{Type: register.SessionCRCS, End: true}); status != register.OK {
		t.Fatal(status)
	}
	l.session(register.SessionCRCS, register.SessionChallenged)
	l.mustUpload(register.OEMNVConfig, file)
}

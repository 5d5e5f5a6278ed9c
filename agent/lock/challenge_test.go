package lock

import (
	"errors"
	"strings"
	"testing"

	"portcullis/agent/hca/hcasim"
	"portcullis/agent/hca/register"
	"portcullis/fabricsm/ib"
	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/nvconfigtest"
)

const otherBase = ib.GUID(0xb83fd20300777700)

// other is an adapter of the same board, which trusts the same key.
func other(o *hcasim.Options) {
	made := hcasim.ConnectX7(otherBase, otherBase, otherBase+1)
	o.Identity.BaseMAC, o.Identity.NodeGUID, o.Seed = made.Identity.BaseMAC, made.Identity.NodeGUID, made.Seed
}

func (b *bench) session(want register.SessionStatus) {
	b.Helper()
	m, err := read(b.Context(), b.adapter, register.MDSR{Type: drawnSession})
	if err != nil || m.Status != want {
		b.Errorf("session: status %d, %v; want %d", m.Status, err, want)
	}
}

// replay applies a file as root of the host does, with exclusive use of the registers.
func (b *bench) replay(what string, file []byte) {
	b.Helper()
	err := b.adapter.apply(b.Context(), file)
	why, ok := errors.AsType[RefusedFile](err)
	if !ok || why.Why != register.RejectedNotApplicable || CodeOf(err) != CodeRefused {
		b.Errorf("%s: %v; want it refused as not for this device", what, err)
	}
}

// A file that was signed for one card is none for another of the same board, even
// if that one has drawn as well; one that is bound to the board alone is for both.
func TestFileCopiedFromAnotherHost(t *testing.T) {
	one, two := newBench(t), newBench(t, other)
	o := one.bound(1, 7)
	two.bound(1, 7) // has drawn too
	two.replay("copied from another host", o.File)
	if two.adapter.value(t.Context(), smDisable(), nvconfig.Next).Item.Data[0] != 0 {
		t.Error("the file had an effect")
	}
	if err := two.adapter.apply(t.Context(), one.signed(1, 7).File); err != nil {
		t.Errorf("a file that is bound to the board alone shows nothing: %v", err)
	}
	one.mustLock(o)
}

// TestOldFileReplayed checks that a file that was applied once is not applied again: not at once, not after a reset, not
// after the card drew another challenge, and not where its versions are not checked either.
func TestOldFileReplayed(t *testing.T) {
	b := newBench(t, func(o *hcasim.Options) { o.Traits.AcceptsOldFiles = true })
	weak := b.bound(1, 6)
	if err := b.adapter.apply(t.Context(), weak.File); err != nil {
		t.Fatal(err)
	}
	b.replay("twice", weak.File)
	b.card.Reset()
	b.replay("after a reset", weak.File)
	b.bound(2, 7)
	b.replay("when another challenge is out", weak.File)
	strong := b.bound(2, 7)
	b.mustLock(strong)
	if _, err := b.adapter.Unlock(t.Context(), []Key{strong.Lock}); err != nil {
		t.Fatal(err)
	}
	b.replay("to bring old settings back", weak.File)
	unbound := newBench(t, func(o *hcasim.Options) { o.Traits.AcceptsOldFiles = true })
	old := unbound.signed(1, 6)
	unbound.mustLock(unbound.signed(2, 7))
	if _, err := unbound.adapter.Unlock(t.Context(), []Key{key(2)}); err != nil {
		t.Fatal(err)
	}
	if err := unbound.adapter.apply(t.Context(), old.File); err != nil {
		t.Errorf("a file that is bound to the board alone shows nothing: %v", err)
	}
}

// A file for a challenge that the card drew before its last one is stale.
func TestStaleChallenge(t *testing.T) {
	b := newBench(t)
	stale := b.bound(1, 7)
	fresh := b.bound(1, 7)
	if stale.Challenge.Nonce == fresh.Challenge.Nonce {
		t.Fatal("the card drew the same twice")
	}
	if _, err := b.lock(stale); CodeOf(err) != CodeRefused || !MayTakeLess(err) {
		t.Errorf("stale: %v", err)
	}
	b.card.Reset()
	if _, err := b.lock(fresh); CodeOf(err) != CodeRefused {
		t.Errorf("drawn before a reset: %v", err)
	}
}

// TestChallengeEnds checks that a challenge ends when an adapter is locked, and when it is no longer needed.
func TestChallengeEnds(t *testing.T) {
	b := newBench(t)
	if _, err := b.adapter.Draw(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.session(register.SessionChallenged)
	if err := b.adapter.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.session(register.SessionNone)
	b.mustLock(b.bound(1, 7))
	b.session(register.SessionNone)
	for name, change := range map[string]func(*hcasim.Traits){
		"ignored":      func(x *hcasim.Traits) { x.IgnoresChallenges = true },
		"never ending": func(x *hcasim.Traits) { x.IgnoresChallenges, x.KeepsChallenge = true, true },
	} {
		b := newBench(t, func(o *hcasim.Options) { change(&o.Traits) })
		b.mustLock(b.bound(1, 7))
		b.session(register.SessionNone)
		if name == "ignored" {
			continue
		}
		if _, err := b.adapter.Unlock(t.Context(), []Key{key(1)}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.adapter.Draw(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.adapter.Drop(t.Context()); CodeOf(err) != CodeChallenge {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDrawsNothing checks that an adapter that draws nothing, or draws for another adapter, causes a specific error.
func TestDrawsNothing(t *testing.T) {
	lie := func(f func([]byte)) func(*bench) {
		return func(b *bench) {
			b.card.Inject(hcasim.Fault{Kind: hcasim.Lying, ID: register.IDMTCQ, Method: register.Read, Lie: f})
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*hcasim.Options)
		setUp  func(*bench)
		text   string
	}{
		{"no such register", func(o *hcasim.Options) { o.Traits.NoChallenges = true }, nil, "MTCQ"},
		{"no key", func(o *hcasim.Options) { o.Keys = nil }, nil, "no key is configured"},
		{"a session", nil, func(b *bench) { b.card.OpenSession(drawnSession) }, "in effect already"},
		{"locked", nil, func(b *bench) { b.card.LockAs(register.Locked, ib.NewLockKey(9)) }, "MTCQ"},
		{"no MAC", nil, func(b *bench) { b.adapter.MAC = 0 }, "not known"},
		{"another MAC", nil, lie(func(d []byte) { d[0x1B] ^= 1 }), "the base MAC is"},
		{"another PSID", nil, lie(func(d []byte) { d[0x1C] ^= 1 }), "PSID"},
		{"another form", nil, lie(func(d []byte) { d[0x44] = 1 }), "form 1"},
		{"another token", nil, lie(func(d []byte) { d[0] = 3 }), "token 3"},
		{"zeros", nil, lie(func(d []byte) { clear(d[0x48:0x68]) }), "all zeros"},
		{"timeout", nil, lie(func(d []byte) { d[1] = byte(register.ChallengeExpired) }), "time to apply"},
		{"a status of its own", nil, lie(func(d []byte) { d[1] = 99 }), "status 99"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var change []func(*hcasim.Options)
			if tt.change != nil {
				change = append(change, tt.change)
			}
			b := newBench(t, change...)
			if tt.setUp != nil {
				tt.setUp(b)
			}
			c, err := b.adapter.Draw(t.Context())
			if c != nil || CodeOf(err) != CodeChallenge || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%+v, %v; want %q", c, err, tt.text)
			}
			if m, err := read(t.Context(), b.adapter, register.MDSR{Type: drawnSession}); err != nil || m.Status == register.SessionChallenged {
				t.Errorf("a challenge is left: %+v, %v", m, err)
			}
		})
	}
}

// A reply that is lost leaves nothing either.
func TestDrawLost(t *testing.T) {
	b := newBench(t)
	b.card.Inject(hcasim.Fault{Kind: hcasim.LostReply, ID: register.IDMTCQ, Method: register.Read})
	if c, err := b.adapter.Draw(t.Context()); c != nil || CodeOf(err) != CodeChallenge {
		t.Errorf("%+v, %v", c, err)
	}
	b.session(register.SessionNone)
}

// TestTokenOverChallenge checks that a token that was applied for the challenge is not hidden from evidence.
func TestTokenOverChallenge(t *testing.T) {
	b := newBench(t)
	if _, err := b.adapter.Draw(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.card.OpenSession(drawnSession)
	if err := b.adapter.Drop(t.Context()); CodeOf(err) != CodeChallenge {
		t.Errorf("dropped: %v", err)
	}
	b.session(register.SessionActive)
}

// TestMayTakeLess checks that firmware that refuses a file with such items differs from firmware that does not trust the
// key. Only the first may take a file that is bound to less.
func TestMayTakeLess(t *testing.T) {
	b := newBench(t, func(o *hcasim.Options) { o.Traits.RefusesBound = true })
	if _, err := b.lock(b.bound(1, 7)); !MayTakeLess(err) {
		t.Errorf("refuses the item: %v", err)
	}
	b = newBench(t)
	o := b.bound(1, 7)
	o.File[len(o.File)-40] ^= 1
	if _, err := b.lock(o); MayTakeLess(err) || CodeOf(err) != CodeRefused {
		t.Errorf("a wrong signature: %v", err)
	}
	b = newBench(t, func(o *hcasim.Options) { o.Keys[0].Public = &nvconfigtest.Key(t, 4096).PublicKey })
	if _, err := b.lock(b.bound(1, 7)); err == nil || MayTakeLess(err) {
		t.Errorf("another key: %v", err)
	}
}

// TestPowerLostWithChallenge checks that, however often the power is lost with a file that is valid once, the next run
// draws again and succeeds.
func TestPowerLostWithChallenge(t *testing.T) {
	for writes := range 40 {
		b := newBench(t)
		o := b.bound(1, 7)
		b.card.CutPower(writes)
		if _, err := b.lock(o); err == nil {
			if writes == 0 {
				t.Fatal("no power was lost")
			}
			return
		}
		if _, err := b.adapter.Unlock(t.Context(), []Key{key(1)}); err != nil {
			t.Fatal(err)
		}
		if r, err := b.lock(b.bound(2, 8)); err != nil || r.Lock.Epoch != 2 {
			t.Fatalf("power lost at write %d: %v", writes, err)
		}
	}
	t.Fatal("the power was lost each time")
}

package main

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"portcullis/agent/hca/fwctl"
	"portcullis/agent/hca/register"
	"portcullis/agent/lock"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/nvconfigtest"
	"portcullis/firmware/nvconfig/profile"
)

// locked is a host of a simulated fabric that the agent locks.
type locked struct {
	host
	diags   ibsimlab.Client
	adapter *lock.Adapter
}

// probe is smpquery of the own node: the harmless packet that must not be answered.
func (l *locked) probe(ctx context.Context) attest.Firewall {
	if _, err := l.diags.Diag(ctx, "h1", "smpquery", "-D", "nodeinfo", "0"); err != nil {
		return attest.FirewallBlocks
	}
	return attest.FirewallOpen
}

func newLocked(t *testing.T) *locked {
	t.Helper()
	const psid = "TST0000000001"
	file, socket, dir := netlistFile(t, "single", "--hosts", "3"), socketName(t), t.TempDir()
	start(t, file, socket, "--cards", dir, "--psid", psid, "--card-key", nvconfigtest.KeyUUID.String()+"="+publicKey(t, 4096))
	guid := nodes(t, file).Find("h1").GUID
	d, err := fwctl.Dial(t.Context(), filepath.Join(dir, guid.String()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	l := &locked{host: host{t, d}, diags: ibsimlab.Client{Socket: socket, Dir: t.TempDir()}}
	l.adapter = &lock.Adapter{
		Name: "h1", Base: guid, PSID: psid, Ports: []ib.PortNum{1}, Access: d,
		Reset: func(context.Context) error { l.reset(); return nil },
		Probe: func(ctx context.Context, _ ib.PortNum) (attest.Firewall, error) { return l.probe(ctx), nil },
		Wait:  func(context.Context, time.Duration) error { return nil },
	}
	return l
}

// order is what the service decides: a file signed with the site's key, then MLOCK.
func (l *locked) order() *lock.Order {
	l.Helper()
	p := profile.Default()
	file, _, err := p.File(profile.Order{
		Card: l.adapter.Settings(l.Context(), p), Version: 1, Time: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC),
		Key: nvconfigtest.KeyUUID, Signer: nvconfigtest.Key(l.T, 4096),
	})
	if err != nil {
		l.Fatal(err)
	}
	return &lock.Order{Base: l.adapter.Base, Profile: p, File: file, Lock: lock.Key{Epoch: 1, Key: ib.NewLockKey(0x1122334455667788)}}
}

// TestCardsLock checks that an adapter that the agent locked stays locked for root of that host. With the registers alone
// no subnet management packet leaves again, whatever is written and reset. This is so even when the lock by key is opened,
// because the signed file stays in force.
func TestCardsLock(t *testing.T) {
	ibsimtest.Need(t, "smpquery")
	l := newLocked(t)
	if got := l.probe(t.Context()); got != attest.FirewallOpen {
		t.Fatalf("a new host: probe %v", got)
	}
	o := l.order()
	r, err := l.adapter.Lock(t.Context(), o)
	if err != nil || r.Firewall[1] != attest.FirewallBlocks || r.Lock.Epoch != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	l.attack("with the lock", register.ErrNotSupported)
	if err := l.mlock(register.MLOCK{Key: o.Lock.Key}); err != nil {
		t.Fatal(err)
	}
	l.attack("without it", register.ErrBadParameter)
}

// attack does what root can do with registers.
func (l *locked) attack(when string, want error) {
	l.Helper()
	if err := l.firewall(0); !errors.Is(err, want) {
		l.Errorf("%s: SM_DISABLE is written: %v", when, err)
	}
	head := nvconfig.Item{Header: nvconfig.Header{Address: nvconfig.GlobalItem(290)}, Data: make([]byte, 4)}.Append(nil)
	if _, err := l.card.Access(l.Context(), register.IDMNVDI, register.Write, head); !errors.Is(err, want) {
		l.Errorf("%s: SM_DISABLE is taken back: %v", when, err)
	}
	all := register.MNVIA{}
	data, err := register.Encode(all)
	if err := l.set(all, data, err); err != nil && !errors.Is(err, want) {
		l.Errorf("%s: all is taken back: %v", when, err)
	}
	if err := l.mlock(register.MLOCK{State: register.Unlocked, Key: ib.NewLockKey(1)}); err != nil && !errors.Is(err, register.ErrBadParameter) {
		l.Errorf("%s: a wrong key: %v", when, err)
	}
	l.reset()
	if got := l.probe(l.Context()); got != attest.FirewallBlocks {
		l.Errorf("%s: after a reset the host reaches the fabric: %v", when, got)
	}
	l.hasSMI(false)
}

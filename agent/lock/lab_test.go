package lock

import (
	"context"
	"testing"
	"time"

	"portcullis/agent/hca/hcasim"
	"portcullis/agent/hca/register"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/nvconfigtest"
	"portcullis/firmware/nvconfig/profile"
)

const (
	base     = ib.GUID(0xb83fd20300123400)
	portGUID = ib.GUID(0xb83fd20300123401)
	psid     = "TST0000000001"
)

// wire carries registers to a card, as the kernel would.
type wire struct{ card *hcasim.Card }

func (w wire) Access(_ context.Context, id register.ID, m register.Method, data []byte) ([]byte, error) {
	return w.card.Register(id, m, data)
}

// bench is a card, and an adapter that drives it.
type bench struct {
	*testing.T
	card    *hcasim.Card
	adapter *Adapter
	waits   int
}

func newBench(t *testing.T, change ...func(*hcasim.Options)) *bench {
	t.Helper()
	o := hcasim.ConnectX7(base, base, portGUID)
	o.Identity.PSID = psid
	k := nvconfigtest.Pinned(t, 2048)
	o.Keys = append(o.Keys, hcasim.Key{UUID: k.UUID, Public: k.Public, Signs: hcasim.SignsOEM})
	for _, f := range change {
		f(&o)
	}
	b := &bench{T: t, card: hcasim.New(o)}
	b.adapter = &Adapter{
		Name: "0000:17:00.0", Base: base, MAC: o.Identity.BaseMAC, PSID: psid, Ports: []ib.PortNum{1}, Access: wire{b.card},
		Reset: func(context.Context) error { b.card.Reset(); return nil },
		Probe: func(context.Context, ib.PortNum) (attest.Firewall, error) {
			if b.card.SMPFirewall() && !o.Traits.LetsSMPs {
				return attest.FirewallBlocks, nil
			}
			return attest.FirewallOpen, nil
		},
		Wait: func(context.Context, time.Duration) error { b.waits++; return nil },
	}
	return b
}

func key(epoch uint64) Key { return Key{epoch, ib.NewLockKey(0x1000 + epoch)} }

// order is for plain writes, to lock with an epoch.
func order(epoch uint64, held ...uint64) *Order {
	o := &Order{Base: base, Profile: profile.Default(), Lock: key(epoch)}
	for _, e := range held {
		o.Held = append(o.Held, key(e))
	}
	return o
}

// signed is for a file signed with the site's key.
func (b *bench) signed(epoch uint64, version uint32) *Order {
	b.Helper()
	return b.sign(order(epoch), version)
}

// bound returns an order with a file signed for the challenge that the adapter draws now.
func (b *bench) bound(epoch uint64, version uint32) *Order {
	b.Helper()
	o := order(epoch)
	var err error
	if o.Challenge, err = b.adapter.Draw(b.Context()); err != nil {
		b.Fatal(err)
	}
	return b.sign(o, version)
}

// sign makes the file of an order, as the service does.
func (b *bench) sign(o *Order, version uint32) *Order {
	b.Helper()
	var challenge *nvconfig.Challenge
	if c := o.Challenge; c != nil {
		bound := nvconfig.NewChallenge(c.MAC, c.Nonce)
		challenge = &bound
	}
	c := b.adapter.Settings(b.Context(), o.Profile)
	k := nvconfigtest.Pinned(b.T, 2048)
	file, _, err := o.Profile.File(profile.Order{
		Card: c, Version: version, Time: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC),
		Key: k.UUID, Signer: nvconfigtest.Key(b.T, 2048), Challenge: challenge,
	})
	if err != nil {
		b.Fatal(err)
	}
	o.File = file
	return o
}

func (b *bench) lock(o *Order) (*Result, error) { return b.adapter.Lock(b.Context(), o) }

func (b *bench) mustLock(o *Order) *Result {
	b.Helper()
	r, err := b.lock(o)
	if err != nil {
		b.Fatalf("%v (%s)", err, CodeOf(err))
	}
	return r
}

// smDisable is the setting of the SMP firewall.
func smDisable() nvconfig.Address { return nvconfig.GlobalItem(290) }

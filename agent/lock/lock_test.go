package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"portcullis/agent/hca"
	"portcullis/agent/hca/hcasim"
	"portcullis/agent/hca/register"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/profile"
)

// A card out of its box is locked, by plain writes and by a signed file: its
// settings are in force, it is shut with our key and with no other.
func TestLock(t *testing.T) {
	for _, tt := range []struct {
		name     string
		order    func(*bench) *Order
		method   attest.LockMethod
		priority attest.Priority
	}{
		{"plain writes", func(*bench) *Order { return order(1) }, attest.LockWrites, attest.PriorityUser},
		{"signed file", func(b *bench) *Order { return b.signed(1, 7) }, attest.LockSignedFile, attest.PriorityOEM},
		{"file for what it drew", func(b *bench) *Order { return b.bound(1, 7) }, attest.LockSignedFile, attest.PriorityOEM},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			r := b.mustLock(tt.order(b))
			if r.Lock.Method != tt.method || r.Lock.MLOCK != attest.MLOCKLocked || r.Lock.Epoch != 1 || !r.Report.Compliant() {
				t.Errorf("result %+v", r.Lock)
			}
			if (r.Lock.File != nil) != (tt.method == attest.LockSignedFile) {
				t.Errorf("file %+v", r.Lock.File)
			}
			i := slices.IndexFunc(r.Lock.Items, func(i attest.Item) bool { return i.Class == 0 && i.Index == 290 })
			if i < 0 || r.Lock.Items[i].Current != "80000000" || r.Lock.Items[i].Next != "80000000" || r.Lock.Items[i].Priority != tt.priority {
				t.Errorf("SM_DISABLE among %+v", r.Lock.Items)
			}
			if r.Firewall[1] != attest.FirewallBlocks || !b.card.SMPFirewall() {
				t.Errorf("the firewall is not on: %v", r.Firewall)
			}
			if b.card.LockState() != register.Locked {
				t.Errorf("the card is %v", b.card.LockState())
			}
			if _, err := b.adapter.Unlock(t.Context(), []Key{key(2), key(3)}); CodeOf(err) != CodeForeign {
				t.Errorf("other keys: %v", err)
			}
			if epoch, err := b.adapter.Unlock(t.Context(), []Key{key(2), key(1)}); err != nil || epoch != 1 {
				t.Errorf("our key: epoch %d, %v", epoch, err)
			}
		})
	}
}

// A host comes back: opened with the last key, its settings are as they were, and
// it is locked with the next one. A file is applied again, plain writes are not.
func TestLockAgain(t *testing.T) {
	for _, method := range []string{"writes", "file"} {
		b := newBench(t)
		first, second := order(1), order(2, 1)
		if method == "file" {
			first, second.File = b.signed(1, 7), b.signed(2, 8).File
		}
		b.mustLock(first)
		resets := b.card.Resets()
		r := b.mustLock(second)
		if r.Opened != 1 || r.Lock.Epoch != 2 || b.card.Resets() != resets || (r.Lock.File != nil) != (method == "file") {
			t.Errorf("%s: opened with %d, locked with %d, %d resets more, file %v", method, r.Opened, r.Lock.Epoch, b.card.Resets()-resets, r.Lock.File)
		}
		if epoch, err := b.adapter.Unlock(t.Context(), []Key{key(1), key(2)}); err != nil || epoch != 2 {
			t.Errorf("%s: opens with epoch %d, %v", method, epoch, err)
		}
	}
}

// TestRefused checks the reasons that keep an adapter from being locked, each with its own code.
func TestRefused(t *testing.T) {
	trait := func(set func(*hcasim.Traits)) func(*hcasim.Options) {
		return func(o *hcasim.Options) { set(&o.Traits) }
	}
	for _, tt := range []struct {
		name    string
		options func(*hcasim.Options)
		setUp   func(*bench, *Order)
		want    Code
		text    string
	}{
		{"locked by somebody else", nil, func(b *bench, _ *Order) { b.card.LockAs(register.Locked, ib.NewLockKey(9)) }, CodeForeign, "none of the 1 keys"},
		{"locked out of band", nil, func(b *bench, _ *Order) { b.card.LockAs(register.LockedHostCfg, ib.NewLockKey(9)) }, CodeOutOfBand, "management controller"},
		{"SM_DISABLE is not known", nil, func(b *bench, _ *Order) { b.card.Forget(smDisable()) }, CodeRefused, "SM_DISABLE cannot be set"},
		{"SM_DISABLE does nothing", trait(func(t *hcasim.Traits) { t.LetsSMPs = true }), nil, CodeFirewall, "went through"},
		{"the probe cannot be made", nil, func(b *bench, _ *Order) {
			b.adapter.Probe = func(context.Context, ib.PortNum) (attest.Firewall, error) {
				return attest.FirewallUnknown, errors.New("no device node")
			}
		}, CodeFirewall, "no device node"},
		{"the probe does not know", nil, func(b *bench, _ *Order) {
			b.adapter.Probe = func(context.Context, ib.PortNum) (attest.Firewall, error) { return attest.FirewallUnknown, nil }
		}, CodeFirewall, "unknown"},
		{"the firmware does not come back", nil, func(b *bench, _ *Order) {
			b.adapter.Reset = func(context.Context) error { return errors.New("no driver after 60 s") }
		}, CodeReset, "no driver after 60 s"},
		{"a reset that does nothing", nil, func(b *bench, _ *Order) {
			b.adapter.Reset = func(context.Context) error { return nil }
		}, CodeNotCompliant, "SM_DISABLE"},
		{"the lock is taken and not kept", nil, func(b *bench, _ *Order) {
			b.card.Inject(hcasim.Fault{Kind: hcasim.Lying, ID: register.IDMLOCK, Method: register.Read, Lie: func(d []byte) { clear(d) }})
		}, CodeNotHeld, "accepted the lock"},
		{"a card that says it is locked, and is not", nil, func(b *bench, _ *Order) {
			b.adapter.Access = &deafAccess{inner: b.adapter.Access}
		}, CodeNotHeld, "the host can still write"},
		{"locked with another key than it was given", nil, func(b *bench, _ *Order) {
			b.adapter.Access = alteredLock{b.adapter.Access, func(m *register.MLOCK) {
				if m.State == register.Locked {
					m.Key = ib.NewLockKey(9)
				}
			}}
		}, CodeNotOurs, "not with the key of epoch 1"},
		{"the key is taken and does not open it", nil, func(b *bench, _ *Order) {
			b.adapter.Access = alteredLock{b.adapter.Access, func(m *register.MLOCK) {
				m.State = register.Locked
			}}
		}, CodeNotOurs, "accepted the key of epoch 1"},
		{"no answer about the lock", nil, func(b *bench, _ *Order) {
			b.card.Inject(hcasim.Fault{Kind: hcasim.Timeout, ID: register.IDMLOCK, Method: register.Read})
		}, CodeUnreadable, "state of the lock"},
		{"no answer to the lock", nil, func(b *bench, _ *Order) {
			b.card.Inject(hcasim.Fault{Kind: hcasim.Timeout, ID: register.IDMLOCK, Method: register.Write})
		}, CodeUnreadable, "lock: "},
		{"the lock is refused", nil, func(b *bench, _ *Order) {
			b.card.Inject(hcasim.Fault{Kind: hcasim.Refusal, ID: register.IDMLOCK, Method: register.Write, Status: register.BadSystemState})
		}, CodeRefused, "lock: "},
		{"a setting is refused", nil, func(b *bench, _ *Order) {
			b.card.Inject(hcasim.Fault{Kind: hcasim.Refusal, ID: register.IDMNVDA, Method: register.Write, Status: register.BadParameter})
		}, CodeRefused, "write "},
		{"a management controller writes meanwhile", nil, func(b *bench, _ *Order) {
			b.adapter.Look = func(context.Context) error {
				b.card.Put(nvconfig.Item{Header: nvconfig.Header{OverrideEnabled: true, ReadEnabled: true, Address: smDisable()}, Data: make([]byte, 4)})
				return nil
			}
		}, CodeNotCompliant, "changed while it was being locked: SM_DISABLE"},
		{"what is known of it cannot be read", nil, func(b *bench, _ *Order) {
			b.adapter.Look = func(context.Context) error { return errors.New("the kernel's files are gone") }
		}, CodeUnreadable, "the kernel's files are gone"},
		{"an order for another adapter", nil, func(_ *bench, o *Order) { o.Base++ }, CodeOrder, "the order is for"},
		{"an order without key", nil, func(_ *bench, o *Order) { o.Lock = Key{} }, CodeOrder, "no key"},
		{"an adapter without GUID", nil, func(b *bench, _ *Order) { b.adapter.Base = 0 }, CodeOrder, "not known"},
		{"a file that is none", nil, func(_ *bench, o *Order) { o.File = []byte("x") }, CodeOrder, "the order's file"},
		{"somebody else updates", nil, func(b *bench, o *Order) { o.File = b.signed(1, 7).File; b.card.HoldUpdate() }, CodeRefused, "under way"},
		{"a file with a flipped bit", nil, func(b *bench, o *Order) {
			o.File = b.signed(1, 7).File
			o.File[len(o.File)-40] ^= 1
		}, CodeRefused, "VERIFY_COMPONENT"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var change []func(*hcasim.Options)
			if tt.options != nil {
				change = append(change, tt.options)
			}
			b := newBench(t, change...)
			o := order(1)
			if tt.setUp != nil {
				tt.setUp(b, o)
			}
			r, err := b.lock(o)
			if CodeOf(err) != tt.want || err == nil || !strings.Contains(err.Error(), tt.text) {
				t.Fatalf("%s: %v; want %s with %q", CodeOf(err), err, tt.want, tt.text)
			}
			if r.Lock.Epoch != 0 {
				t.Errorf("says that it is locked with epoch %d", r.Lock.Epoch)
			}
			if strings.Contains(fmt.Sprint(err), "1001") {
				t.Error("the message has the key in it")
			}
		})
	}
}

// writeOnly is an adapter whose firmware says of one setting that it can be written and
// not read.
type writeOnly struct {
	below hca.Access
	at    nvconfig.Address
}

func (w writeOnly) Access(ctx context.Context, id register.ID, m register.Method, data []byte) ([]byte, error) {
	out, err := w.below.Access(ctx, id, m, data)
	if err != nil || id != register.IDMNVQC {
		return out, err
	}
	q, err := register.Decode[register.MNVQC](out)
	if err != nil || q.Type != uint32(w.at) {
		return out, err
	}
	q.CanRead, q.CanWrite = false, true
	return register.Encode(q)
}

// TestWriteOnlySetting: a setting that is there and hides its value is not one that is
// absent.
func TestWriteOnlySetting(t *testing.T) {
	b := newBench(t)
	p := profile.Default()
	b.mustLock(order(1))
	if _, err := b.adapter.Unlock(b.Context(), []Key{key(1)}); err != nil {
		t.Fatal(err)
	}
	if r := p.Judge(b.adapter.Settings(b.Context(), p), profile.PlainWrites); !r.Compliant() {
		t.Fatalf("the adapter does not comply: %+v", r.Findings)
	}
	open := b.adapter.Access
	for _, at := range p.Addresses(b.adapter.Settings(b.Context(), p)) {
		b.adapter.Access = writeOnly{open, at}
		c := b.adapter.Settings(b.Context(), p)
		i := slices.IndexFunc(c.Readings, func(r profile.Reading) bool { return r.Address == at })
		if i < 0 || itemOf(c.Readings[i]).Supported != attest.Unknown {
			t.Errorf("%v is read as %+v, want it unknown", at, c.Readings[i])
		}
		r := p.Judge(c, profile.PlainWrites)
		if !slices.ContainsFunc(r.Findings, func(f profile.Finding) bool { return f.Address == at }) {
			t.Errorf("%v is hidden, and nothing is found of it", at)
		}
	}
}

// alteredLock accesses a card that changes the order to lock it.
type alteredLock struct {
	below hca.Access
	alter func(*register.MLOCK)
}

func (a alteredLock) Access(ctx context.Context, id register.ID, m register.Method, data []byte) ([]byte, error) {
	if id != register.IDMLOCK || m != register.Write {
		return a.below.Access(ctx, id, m, data)
	}
	told, err := register.Decode[register.MLOCK](data)
	if err != nil {
		return nil, err
	}
	a.alter(&told)
	if data, err = register.Encode(told); err != nil {
		return nil, err
	}
	return a.below.Access(ctx, id, m, data)
}

// deafAccess is to a card that shows the lock and does not do it.
type deafAccess struct {
	inner hca.Access
	shown register.LockState
}

func (d *deafAccess) Access(ctx context.Context, id register.ID, m register.Method, data []byte) ([]byte, error) {
	if id != register.IDMLOCK {
		return d.inner.Access(ctx, id, m, data)
	}
	in, err := register.Decode[register.MLOCK](data)
	if err != nil {
		return nil, err
	}
	if m == register.Write {
		d.shown = in.State
	}
	return register.Encode(register.MLOCK{State: d.shown})
}

// However often the power goes while a card is locked, the next run brings it to
// the end, with the key that the service has.
func TestPowerLost(t *testing.T) {
	for _, method := range []string{"writes", "file"} {
		for writes := range 40 {
			b := newBench(t)
			o := order(1)
			if method == "file" {
				o = b.signed(1, 7)
			}
			b.card.CutPower(writes)
			_, err := b.lock(o)
			if err == nil {
				if writes == 0 {
					t.Fatal("no power was lost")
				}
				break // all was written before
			}
			// The host was off with it. The service sends the same order, with the key of the epoch that it had begun.
			next := order(2, 1)
			next.File = o.File
			if r, err := b.lock(next); err != nil || r.Lock.Epoch != 2 {
				t.Fatalf("%s, power lost at write %d: %v", method, writes, err)
			}
		}
	}
}

// A reply that is lost was done or not; either way the next run gets there.
func TestLostReplies(t *testing.T) {
	for after := range 120 {
		b := newBench(t)
		b.card.Inject(hcasim.Fault{Kind: hcasim.LostReply, After: after, Times: 1})
		_, first := b.lock(order(1))
		if r, err := b.lock(order(2, 1)); err != nil || r.Lock.Epoch != 2 {
			t.Fatalf("reply %d is lost (%v), then: %v", after, first, err)
		}
	}
}

// Busy is no refusal, and does not go on for ever.
func TestBusy(t *testing.T) {
	b := newBench(t)
	b.card.Inject(hcasim.Fault{Kind: hcasim.Refusal, Status: register.Busy, Times: 30})
	b.mustLock(order(1))
	if b.waits == 0 {
		t.Error("nobody waited")
	}
	b = newBench(t)
	b.card.Inject(hcasim.Fault{Kind: hcasim.Refusal, Status: register.Busy})
	if _, err := b.lock(order(1)); CodeOf(err) != CodeUnreadable || !errors.Is(err, register.ErrBusy) {
		t.Errorf("always busy: %v", err)
	}
}

// A slow machine of components is waited for.
func TestLater(t *testing.T) {
	b := newBench(t, func(o *hcasim.Options) { o.Traits.Later = true })
	if r := b.mustLock(b.signed(1, 7)); r.Lock.File == nil {
		t.Error("the file was not applied")
	}
}

// TestTenant checks that a tenant's root changes nothing on a card locked by file and key.
func TestTenant(t *testing.T) {
	b := newBench(t)
	b.mustLock(b.signed(1, 7))
	a := b.adapter
	off := nvconfig.Item{Header: nvconfig.Header{OverrideEnabled: true, ReadEnabled: true, Address: smDisable()}, Data: make([]byte, 4)}
	if _, err := a.item(t.Context(), register.Write, off); err == nil {
		t.Error("the tenant wrote SM_DISABLE")
	}
	if _, err := write(t.Context(), a, register.MNVIA{}); err == nil {
		t.Error("the tenant took all settings back")
	}
	b.card.Reset()
	if !b.card.SMPFirewall() || b.card.LockState() != register.Locked {
		t.Error("after a reset the firewall or the lock is gone")
	}
	// Even an attacker with the key of MLOCK cannot write over the file's settings.
	if _, err := a.Unlock(t.Context(), []Key{key(1)}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.item(t.Context(), register.Write, off); err == nil {
		t.Error("with MLOCK open the host wrote over a setting of the file")
	}
	if r := profile.Default().Judge(a.Settings(t.Context(), profile.Default()), profile.SignedFile); !r.Compliant() {
		t.Errorf("findings: %+v", r.Findings)
	}
}

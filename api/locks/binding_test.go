package locks

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"portcullis/api/attestation"
	"portcullis/api/audit"
	"portcullis/api/events"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/nvconfigtest"
)

// bindingTo is a site that signs, and binds files to something at least.
func bindingTo(t *testing.T, b Binding) func(*Options) {
	return func(o *Options) {
		signing(t)(o)
		o.Binding = b
	}
}

// nonceOf makes the nth challenge that an adapter draws.
func nonceOf(n int) string { return fmt.Sprintf("%064x", n+1) }

// drew is a request for one adapter that drew.
func drew(guid ib.GUID, mac, nonce string) v1.LockRequest {
	in := request(guid)
	in.Adapters[0].Device = mac
	in.Adapters[0].Challenge = &v1.LockChallenge{Device: mac, PSID: psid, Nonce: nonce}
	return in
}

func changed(in v1.LockRequest, change func(*v1.LockAdapter)) v1.LockRequest {
	change(&in.Adapters[0])
	return in
}

// refused has a request refused, and requires that it left nothing behind.
func (s *site) refused(what string, in v1.LockRequest, code string, kind refusal.Kind, text string) {
	s.t.Helper()
	guid := in.Adapters[0].NodeGUID
	before, err := optional(Records().Get(s.t.Context(), s.store, guid.String()))
	if err != nil {
		s.t.Fatal(err)
	}
	ticket := s.ticket(4)
	out, err := s.Orders(s.t.Context(), ticket, in)
	no, ok := errors.AsType[*refusal.Error](err)
	if !ok || out != nil || no.Code != code || no.Status != kind || !strings.Contains(no.Detail, text) {
		s.t.Errorf("%s: %+v, %v; want %s with %q", what, out, err, code, text)
	}
	if after, err := optional(Records().Get(s.t.Context(), s.store, guid.String())); err != nil || after.Version != before.Version || after.Epoch != before.Epoch {
		s.t.Errorf("%s: what was refused counted: %+v, %v", what, after, err)
	}
	host, err := hostrecord.Records().Get(s.t.Context(), s.store, "h1")
	if d := host.Value.Denial; err != nil || d == nil || d.Code != code || !strings.Contains(d.Detail, text) {
		s.t.Errorf("%s: operators are told %+v, %v", what, d, err)
	}
	if _, err := s.Orders(s.t.Context(), ticket, in); !refusal.IsKind(err, refusal.Refused) || strings.Contains(err.Error(), text) {
		s.t.Errorf("%s: the ticket is good again: %v", what, err)
	}
}

func (s *site) parsed(o *v1.LockOrders, err error) *nvconfig.File {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	f, err := nvconfig.Parse(o.Orders[0].File)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := f.Verify([]nvconfig.PinnedKey{nvconfigtest.Pinned(s.t, 2048)}); err != nil {
		s.t.Fatal(err)
	}
	return f
}

func (s *site) lastEntry() audit.Entry {
	s.t.Helper()
	list, _, err := audit.Entries().List(s.t.Context(), s.store, "")
	if err != nil || len(list) == 0 {
		s.t.Fatalf("audit log: %d entries, %v", len(list), err)
	}
	return list[len(list)-1].Value
}

// A file is for the board, the device and the challenge of one adapter; its binding is shown, and in the audit log.
func TestBoundToChallenge(t *testing.T) {
	s := newSite(t, bindingTo(t, 0)) // the tightest, if none is named
	f := s.parsed(s.Orders(t.Context(), s.ticket(4), drew(cardA, macA, nonceOf(1))))
	of, err := f.Challenges()
	if err != nil || len(of) != 1 || fmt.Sprintf("%012x", of[0].MAC()) != macA || fmt.Sprintf("%x", of[0].Nonce) != nonceOf(1) || !slices.Equal(f.PSIDs(), []string{psid}) {
		t.Errorf("the file is for %v, challenges %v, %v", f.PSIDs(), of, err)
	}
	l, err := s.Show(t.Context(), cardA)
	if err != nil || *l.Bound != (v1.LockBinding{To: v1.BoundChallenge, PSID: psid, Device: macA, Challenge: nonceOf(1)}) {
		t.Errorf("shown: %+v, %v", l.Bound, err)
	}
	if e := s.lastEntry(); !strings.Contains(e.Detail, "bound to challenge "+nonceOf(1)+" of device "+macA) {
		t.Errorf("audit log: %+v", e)
	}
	s.refused("twice", drew(cardA, macA, nonceOf(1)), "lock_challenge", refusal.Refused, "already")
	if e := s.lastEntry(); e.Action != "lock.refuse" || e.Code != "lock_challenge" || e.Actor != "agent:h1" {
		t.Errorf("audit log: %+v", e)
	}
	if !s.Draws() || newSite(t).Draws() {
		t.Error("adapters are to draw where files are signed, and nowhere else")
	}
}

// A binding that an adapter cannot keep is refused where the site demands it, with the agent's reason. Otherwise the file
// is bound to what the adapter can keep.
func TestBindingIsTheLeast(t *testing.T) {
	less := func(device bool) v1.LockRequest {
		in := request(cardA)
		if device {
			in.Adapters[0].Device = macA
		}
		in.Adapters[0].Less = "MTCQ: not supported"
		return in
	}
	for _, tt := range []struct {
		least Binding
		in    v1.LockRequest
		to    string // "": refused
	}{
		{BoundChallenge, drew(cardA, macA, nonceOf(1)), v1.BoundChallenge},
		{BoundChallenge, less(true), ""},
		{BoundChallenge, less(false), ""},
		{BoundDevice, drew(cardA, macA, nonceOf(1)), v1.BoundChallenge},
		{BoundDevice, less(true), v1.BoundDevice},
		{BoundDevice, less(false), ""},
		{BoundBoard, drew(cardA, macA, nonceOf(1)), v1.BoundChallenge},
		{BoundBoard, less(true), v1.BoundDevice},
		{BoundBoard, less(false), v1.BoundBoard},
	} {
		s := newSite(t, bindingTo(t, tt.least))
		if tt.to == "" {
			s.refused(tt.least.String(), tt.in, "lock_binding", refusal.Refused, "binds files of settings to a "+tt.least.String())
			s.refused(tt.least.String(), tt.in, "lock_binding", refusal.Refused, "MTCQ: not supported")
			continue
		}
		f := s.parsed(s.Orders(t.Context(), s.ticket(4), tt.in))
		l, err := s.Show(t.Context(), cardA)
		if err != nil || l.Bound.To != tt.to {
			t.Errorf("%v at least: bound to %+v, %v", tt.least, l.Bound, err)
		}
		if f.Bound() != (tt.to == v1.BoundChallenge) || (len(f.DeviceIDs()) == 1) != (tt.to == v1.BoundDevice) || (len(f.PSIDs()) == 1) != (tt.to != v1.BoundDevice) {
			t.Errorf("bound to %s: PSIDs %v, devices %v", tt.to, f.PSIDs(), f.DeviceIDs())
		}
		if tt.to == v1.BoundDevice && f.DeviceIDs()[0] != nvconfig.DeviceID(0xb83fd2123400) {
			t.Errorf("for device %x", f.DeviceIDs()[0])
		}
	}
}

// A host gets nothing signed for what another host's adapter drew: device and PSID are
// those that the evidence had.
func TestChallengeOfAnotherHost(t *testing.T) {
	const foreign = "b83fd2777700"
	s := newSite(t, bindingTo(t, BoundChallenge))
	s.refused("drawn by a stranger's card", drew(cardA, foreign, nonceOf(1)), "lock_adapter", refusal.Refused, foreign)
	s.refused("the challenge alone is a stranger's", changed(drew(cardA, foreign, nonceOf(1)), func(a *v1.LockAdapter) { a.Device = macA }), "lock_adapter", refusal.Refused, foreign)
	s.refused("drawn by the host's other card", drew(cardA, macB, nonceOf(1)), "lock_adapter", refusal.Refused, macB)
	s.refused("of another board", changed(drew(cardA, macA, nonceOf(1)), func(a *v1.LockAdapter) { a.Challenge.PSID = "TST0000000002" }), "lock_adapter", refusal.Refused, "TST0000000002")
	s.refused("an adapter of another board", changed(drew(cardA, macA, nonceOf(1)), func(a *v1.LockAdapter) { a.PSID = "TST0000000002" }), "lock_adapter", refusal.Refused, "TST0000000002")
	s.refused("an adapter of nobody", drew(0x1234, macA, nonceOf(1)), "lock_adapter", refusal.Refused, "not of host")
	device := newSite(t, bindingTo(t, BoundDevice))
	device.refused("another device", changed(request(cardA), func(a *v1.LockAdapter) { a.Device = macB }), "lock_adapter", refusal.Refused, macB)
	// None of that spent the challenge.
	if _, err := s.Orders(t.Context(), s.ticket(4), drew(cardA, macA, nonceOf(1))); err != nil {
		t.Error(err)
	}
}

// A ticket of evidence that did not read PSID or MAC is good for no file.
func TestUnattestedAdapter(t *testing.T) {
	s := newSite(t, bindingTo(t, BoundChallenge))
	a := drew(cardA, macA, nonceOf(1)).Adapters[0]
	if _, err := readOffer(&a, &attestation.AttestedAdapter{NodeGUID: cardA, PSID: psid}); !refusal.IsKind(err, refusal.Refused) {
		t.Errorf("without a MAC: %v", err)
	}
	if o, err := readOffer(&a, &attestation.AttestedAdapter{NodeGUID: cardA, PSID: psid, BaseMAC: macA}); err != nil || o.to != BoundChallenge {
		t.Errorf("in the evidence: %+v, %v", o, err)
	}
	s.refused("no PSID", changed(drew(cardA, macA, nonceOf(1)), func(a *v1.LockAdapter) { a.PSID, a.Challenge.PSID = "", "" }), "lock_adapter", refusal.Refused, "by the evidence")
}

// If inventory assigned an adapter to the host only after its evidence was taken, its keys are not for the ticket of that
// evidence: no evidence showed the adapter there.
func TestAdapterThatEvidenceHadNot(t *testing.T) {
	const moved = ib.GUID(0xb83fd20300123600)
	s := newSite(t)
	s.update(func(tx *store.Tx) error {
		host, err := inventory.Hosts().Get(t.Context(), tx, "h1")
		if err != nil {
			return err
		}
		h := host.Value
		h.HCAs = append(slices.Clone(h.HCAs), inventory.HCA{NodeGUID: moved, Ports: []inventory.Port{{Num: 1, GUID: moved + 1}}})
		return errors.Join(inventory.Hosts().Put(tx, "h1", h), Records().Put(tx, moved.String(), Record{GUID: moved, Host: "h2", Epoch: 3, Proven: 3}))
	})
	s.refused("of another host until now", changed(request(moved), func(a *v1.LockAdapter) { a.PSID = "" }), "lock_adapter", refusal.Refused, "not in the evidence")
}

// A challenge is signed for once: not for a second order of the same adapter, and not
// for another adapter.
func TestChallengeSignedTwice(t *testing.T) {
	s := newSite(t, bindingTo(t, BoundChallenge))
	if _, err := s.Orders(t.Context(), s.ticket(4), drew(cardA, macA, nonceOf(1))); err != nil {
		t.Fatal(err)
	}
	s.refused("the same again", drew(cardA, macA, nonceOf(1)), "lock_challenge", refusal.Refused, "already")
	s.refused("by another adapter", drew(cardB, macB, nonceOf(1)), "lock_challenge", refusal.Refused, cardA.String())
	both := drew(cardA, macA, nonceOf(2))
	both.Adapters = append(both.Adapters, drew(cardB, macB, nonceOf(2)).Adapters...)
	s.refused("of two in one request", both, "lock_challenge", refusal.Refused, "already")
	if _, err := s.Orders(t.Context(), s.ticket(4), drew(cardA, macA, nonceOf(2))); err != nil {
		t.Errorf("the next one: %v", err)
	}
	// The kept entries are bounded.
	for n := range 2 * maxSpent {
		if _, err := s.Orders(t.Context(), s.ticket(4), drew(cardA, macA, nonceOf(10+n))); err != nil {
			t.Fatal(err)
		}
	}
	rec, err := Records().Get(t.Context(), s.store, cardA.String())
	if err != nil || len(rec.Value.Spent) != maxSpent {
		t.Errorf("%d are kept, %v", len(rec.Value.Spent), err)
	}
	kept, _, err := challenges().List(t.Context(), s.store, "")
	if err != nil || len(kept) != maxSpent {
		t.Errorf("%d are kept of all, %v", len(kept), err)
	}
	s.refused("the last one", drew(cardA, macA, nonceOf(9+2*maxSpent)), "lock_challenge", refusal.Refused, "already")
}

// A string that is no challenge is refused as such, wherever it is checked.
func TestMalformedChallenge(t *testing.T) {
	s := newSite(t, bindingTo(t, BoundChallenge))
	for name, change := range map[string]func(*v1.LockAdapter){
		"short":               func(a *v1.LockAdapter) { a.Challenge.Nonce = nonceOf(1)[2:] },
		"long":                func(a *v1.LockAdapter) { a.Challenge.Nonce += "00" },
		"empty":               func(a *v1.LockAdapter) { a.Challenge.Nonce = "" },
		"no digits":           func(a *v1.LockAdapter) { a.Challenge.Nonce = strings.Repeat("g", 64) },
		"capitals":            func(a *v1.LockAdapter) { a.Challenge.Nonce = strings.Repeat("AB", 32) },
		"zeros":               func(a *v1.LockAdapter) { a.Challenge.Nonce = strings.Repeat("0", 64) },
		"no device":           func(a *v1.LockAdapter) { a.Challenge.Device = "" },
		"device of zeros":     func(a *v1.LockAdapter) { a.Challenge.Device = "000000000000" },
		"device too long":     func(a *v1.LockAdapter) { a.Challenge.Device = "0000" + macA },
		"device with a sign":  func(a *v1.LockAdapter) { a.Device = "+83fd2123400" },
		"device in capitals":  func(a *v1.LockAdapter) { a.Device = strings.ToUpper(macA) },
		"a reason of a book":  func(a *v1.LockAdapter) { a.Less = strings.Repeat("x", maxLess+1) },
		"a reason with lines": func(a *v1.LockAdapter) { a.Less = "one\ntwo" },
	} {
		s.refused(name, changed(drew(cardA, macA, nonceOf(1)), change), "lock_challenge", refusal.Invalid, "adapter "+cardA.String())
	}
}

// An adapter that is locked draws nothing: it is opened first, which costs no key, and
// the order that follows is bound.
func TestOpenedToDraw(t *testing.T) {
	s := newSite(t, bindingTo(t, BoundChallenge))
	if _, err := s.Orders(t.Context(), s.ticket(4), drew(cardA, macA, nonceOf(1))); err != nil {
		t.Fatal(err)
	}
	s.prove(cardA, 1, attest.MLOCKLocked)
	before, err := s.Show(t.Context(), cardA)
	if err != nil {
		t.Fatal(err)
	}
	locked := changed(request(cardA), func(a *v1.LockAdapter) { a.Locked, a.Device = true, macA })
	out, err := s.Orders(t.Context(), s.ticket(4), locked)
	if err != nil || out.Orders[0].Action != v1.ActionOpen || out.Orders[0].File != nil || out.Orders[0].Lock.Epoch != 0 || !slices.Equal(epochs(out.Orders[0].Held), []uint32{1}) {
		t.Fatalf("%+v, %v", out, err)
	}
	if l, err := s.Show(t.Context(), cardA); err != nil || l.Epoch != before.Epoch || l.File != before.File || *l.Bound != *before.Bound {
		t.Errorf("opened: %+v, before %+v, %v", l, before, err)
	}
	// That it is open then is expected.
	s.look(attest.Lock{MLOCK: attest.MLOCKUnlocked})
	if got := s.told(events.LockChanged); len(got) != 0 {
		t.Errorf("told: %+v", got)
	}
	// But not permanently: once it is proven locked again, the earlier order explains nothing.
	s.prove(cardA, 1, attest.MLOCKLocked)
	s.look(attest.Lock{MLOCK: attest.MLOCKUnlocked})
	if got := causes(s.told(events.LockChanged)); !slices.Equal(got, []string{"evidence unlocked"}) {
		t.Errorf("told: %v", got)
	}
	f := s.parsed(s.Orders(t.Context(), s.ticket(4), drew(cardA, macA, nonceOf(2))))
	if got := s.told(events.LockEpochSkipped); len(got) != 0 {
		t.Errorf("told: %+v", got)
	}
	if !f.Bound() {
		t.Error("the order that follows is not bound")
	}
	// Where nothing is signed it is locked at once, and one that leaves is opened permanently.
	if o := newSite(t).mustOrderOf(locked); o.Action != v1.ActionLock {
		t.Errorf("plain writes: %+v", o)
	}
	s.update(func(tx *store.Tx) error {
		rec, err := Records().Get(t.Context(), tx, cardA.String())
		if err != nil {
			return err
		}
		rec.Value.Open = &Decision{By: "alice", Reason: "RMA 17"}
		return Records().Put(tx, cardA.String(), rec.Value)
	})
	if o := s.mustOrderOf(locked); o.Action != v1.ActionUnlock {
		t.Errorf("one that leaves: %+v", o)
	}
}

func (s *site) mustOrderOf(in v1.LockRequest) v1.LockOrder {
	s.t.Helper()
	out, err := s.Orders(s.t.Context(), s.ticket(4), in)
	if err != nil {
		s.t.Fatal(err)
	}
	return out.Orders[0]
}

func TestParseBinding(t *testing.T) {
	for _, b := range []Binding{BoundBoard, BoundDevice, BoundChallenge} {
		if got, err := ParseBinding(b.String()); err != nil || got != b {
			t.Errorf("%v is read as %v, %v", b, got, err)
		}
	}
	for _, s := range []string{"", "Board", "all", "binding 0"} {
		if got, err := ParseBinding(s); err == nil {
			t.Errorf("%q is read as %v", s, got)
		}
	}
}

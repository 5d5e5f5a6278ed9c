package locks

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/attestation"
	"portcullis/api/audit"
	"portcullis/api/events"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/locks/lockkey"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/nvconfigtest"
)

const (
	cardA = ib.GUID(0xb83fd20300123400)
	cardB = ib.GUID(0xb83fd20300123500)
	psid  = "TST0000000001"
	macA  = "b83fd2123400"
	macB  = "b83fd2123500"
)

func testRoot(t *testing.T) lockkey.Root {
	t.Helper()
	secret := sha256.Sum256([]byte("a secret of tests"))
	r, err := lockkey.NewRoot(secret[:])
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// site is a service over a store, with one host of two adapters.
type site struct {
	*Service
	t     *testing.T
	store *store.Store
	now   time.Time
	n     int
}

func newSite(t *testing.T, change ...func(*Options)) *site {
	t.Helper()
	s := &site{t: t, store: store.New(memory.New(time.Now), ""), now: time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)}
	o := Options{Store: s.store, Root: testRoot(t), Now: func() time.Time { return s.now }}
	for _, f := range change {
		f(&o)
	}
	var err error
	if s.Service, err = New(o); err != nil {
		t.Fatal(err)
	}
	s.update(func(tx *store.Tx) error {
		return errors.Join(
			inventory.Hosts().Put(tx, "h1", inventory.Host{ID: "h1", HCAs: []inventory.HCA{
				{NodeGUID: cardA, Ports: []inventory.Port{{Num: 1, GUID: cardA + 1}}},
				{NodeGUID: cardB, Ports: []inventory.Port{{Num: 1, GUID: cardB + 1}}},
			}}),
			hostrecord.Records().Put(tx, "h1", hostrecord.Record{Cluster: "c", Epoch: 4, Window: s.now.Add(time.Hour)}),
		)
	})
	return s
}

func signing(t *testing.T) func(*Options) {
	return func(o *Options) {
		o.Signer, o.Key, o.Binding = nvconfigtest.Key(t, 2048), nvconfigtest.Pinned(t, 2048).UUID, BoundBoard
	}
}

func (s *site) update(do func(*store.Tx) error) {
	s.t.Helper()
	if _, err := s.store.Update(s.t.Context(), do); err != nil {
		s.t.Fatal(err)
	}
}

// ticket is as admission makes it of evidence.
func (s *site) ticket(epoch int64) string {
	s.t.Helper()
	s.n++
	token := fmt.Sprintf("ticket-%d", s.n)
	sum := sha256.Sum256([]byte(token))
	type record struct {
		Host     string                        `json:"host"`
		Epoch    int64                         `json:"epoch"`
		Expires  time.Time                     `json:"expires"`
		Adapters []attestation.AttestedAdapter `json:"adapters"`
	}
	of := []attestation.AttestedAdapter{{NodeGUID: cardA, PSID: psid, BaseMAC: macA}, {NodeGUID: cardB, PSID: psid, BaseMAC: macB}}
	s.update(func(tx *store.Tx) error {
		return store.NewCollection[record]("lock-tickets", 1).Put(tx, hex.EncodeToString(sum[:]), record{"h1", epoch, s.now.Add(5 * time.Minute), of})
	})
	return token
}

func request(guids ...ib.GUID) (in v1.LockRequest) {
	for _, g := range guids {
		in.Adapters = append(in.Adapters, v1.LockAdapter{NodeGUID: g, PSID: psid, Ports: 1})
	}
	return in
}

func (s *site) mustOrder(guids ...ib.GUID) *v1.LockOrders {
	s.t.Helper()
	out, err := s.Orders(s.t.Context(), s.ticket(4), request(guids...))
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// prove has evidence show an adapter's lock.
func (s *site) prove(guid ib.GUID, epoch uint64, state attest.MLOCK) {
	s.t.Helper()
	st := &attest.Statement{Host: "h1", HCAs: []attest.HCA{{NodeGUID: guid, Lock: attest.Lock{MLOCK: state, Epoch: epoch}}}}
	s.update(func(tx *store.Tx) error { return s.Prove(s.t.Context(), tx, st) })
}

func epochs(keys []v1.LockKey) (out []uint32) {
	for _, k := range keys {
		out = append(out, k.Epoch)
	}
	return out
}

// Each order has a key of its own, durable before it leaves; the file that the adapter may be locked with comes with it.
func TestOrders(t *testing.T) {
	s := newSite(t)
	first := s.mustOrder(cardA, cardB)
	if len(first.Orders) != 2 || first.Orders[0].Lock.Epoch != 1 || len(first.Orders[0].Held) != 0 || first.Orders[0].File != nil {
		t.Fatalf("first: %+v", first)
	}
	a, b := first.Orders[0].Lock.Key.Key, first.Orders[1].Lock.Key.Key
	if want, err := testRoot(t).Derive(cardA, 1); err != nil || !a.Equal(want) || a.Equal(b) {
		t.Errorf("the keys are not those of the adapters: %v", err)
	}
	// Nothing came of it: the issued key may be in the adapter.
	second := s.mustOrder(cardA).Orders[0]
	if second.Lock.Epoch != 2 || !slices.Equal(epochs(second.Held), []uint32{1}) {
		t.Errorf("second: epoch %d, held %v", second.Lock.Epoch, epochs(second.Held))
	}
	s.prove(cardA, 2, attest.MLOCKLocked)
	if l, err := s.Show(t.Context(), cardA); err != nil || l.State != "proven" || l.Proven != 2 || l.Check != lockkey.Check(second.Lock.Key.Key) {
		t.Errorf("shown: %+v, %v", l, err)
	}
	third := s.mustOrder(cardA).Orders[0]
	if third.Lock.Epoch != 3 || !slices.Equal(epochs(third.Held), []uint32{2}) {
		t.Errorf("third: epoch %d, held %v", third.Lock.Epoch, epochs(third.Held))
	}
	exp, err := s.Expect(t.Context(), s.store, &inventory.Host{HCAs: []inventory.HCA{{NodeGUID: cardA}}})
	if err != nil || exp[cardA].Epoch != 3 {
		t.Errorf("expected: %+v, %v", exp, err)
	}
	if other, err := s.Show(t.Context(), cardB); err != nil || other.State != "ordered" || other.Proven != 0 {
		t.Errorf("the other adapter: %+v, %v", other, err)
	}
}

// Evidence of another epoch, or of an open adapter, proves nothing.
func TestProveNothing(t *testing.T) {
	s := newSite(t)
	s.mustOrder(cardA)
	s.prove(cardA, 2, attest.MLOCKLocked)
	s.prove(cardA, 1, attest.MLOCKUnlocked)
	s.prove(cardB, 1, attest.MLOCKLocked) // no order was given
	if l, err := s.Show(t.Context(), cardA); err != nil || l.Proven != 0 {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err := s.Show(t.Context(), cardB); !refusal.IsKind(err, refusal.NotFound) {
		t.Errorf("an adapter without order: %v", err)
	}
}

// However often it is tried, the keys in doubt have room in one order.
func TestManyAttempts(t *testing.T) {
	s := newSite(t)
	s.mustOrder(cardA)
	s.prove(cardA, 1, attest.MLOCKLocked)
	given := map[uint32]bool{1: true}
	for range 3 * maxHeld {
		o := s.mustOrder(cardA).Orders[0]
		for e := range given {
			if !slices.Contains(epochs(o.Held), e) && o.Lock.Epoch != e {
				t.Fatalf("the adapter may be locked with epoch %d, and the order has %v and %d", e, epochs(o.Held), o.Lock.Epoch)
			}
		}
		given[o.Lock.Epoch] = true
	}
}

func TestSignedFile(t *testing.T) {
	s := newSite(t, signing(t))
	first, second := s.mustOrder(cardA).Orders[0], s.mustOrder(cardA).Orders[0]
	for i, o := range []v1.LockOrder{first, second} {
		f, err := nvconfig.Parse(o.File)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Verify([]nvconfig.PinnedKey{nvconfigtest.Pinned(t, 2048)}); err != nil || !slices.Equal(f.PSIDs(), []string{psid}) {
			t.Errorf("file %d: %v for %v", i, err, f.PSIDs())
		}
	}
	if string(first.File) == string(second.File) {
		t.Error("two orders have the same file: an old one would pass for a new one")
	}
	sum := sha256.Sum256(second.File)
	if exp, err := s.Expect(t.Context(), s.store, &inventory.Host{HCAs: []inventory.HCA{{NodeGUID: cardA}}}); err != nil || exp[cardA].File != hex.EncodeToString(sum[:]) {
		t.Errorf("expected file: %+v, %v", exp, err)
	}
}

// A ticket is for one host, one assignment, one use and a short time.
func TestTickets(t *testing.T) {
	s := newSite(t)
	good := s.ticket(4)
	if _, err := s.Orders(t.Context(), good, request(cardA)); err != nil {
		t.Fatal(err)
	}
	late := s.ticket(4)
	for _, tt := range []struct {
		name, ticket string
		before       func()
		in           v1.LockRequest
		kind         refusal.Kind
	}{
		{"used twice", good, nil, request(cardA), refusal.Refused},
		{"made up", "x", nil, request(cardA), refusal.Refused},
		{"of an earlier assignment", s.ticket(3), nil, request(cardA), refusal.Refused},
		{"for an adapter of nobody", s.ticket(4), nil, request(0x1234), refusal.Refused},
		{"for one twice", s.ticket(4), nil, request(cardA, cardA), refusal.Invalid},
		{"for another number of ports", s.ticket(4), nil, v1.LockRequest{Adapters: []v1.LockAdapter{{NodeGUID: cardA, PSID: psid, Ports: 2}}}, refusal.Refused},
		{"too late", late, func() { s.now = s.now.Add(5 * time.Minute) }, request(cardA), refusal.Refused},
		{"after the window", s.ticket(4), func() { s.now = s.now.Add(2 * time.Hour) }, request(cardA), refusal.Refused},
	} {
		if tt.before != nil {
			tt.before()
		}
		if out, err := s.Orders(t.Context(), tt.ticket, tt.in); !refusal.IsKind(err, tt.kind) || out != nil {
			t.Errorf("%s: %v, %+v; want kind %v", tt.name, err, out, tt.kind)
		}
	}
	if l, err := s.Show(t.Context(), cardA); err != nil || l.Epoch != 1 {
		t.Errorf("what was refused counted: %+v, %v", l, err)
	}
}

// An adapter that leaves gets the keys to open it and none to lock it with. The operator who decided so, and the reason,
// are in the audit log.
func TestRelease(t *testing.T) {
	s := newSite(t)
	s.mustOrder(cardA)
	s.prove(cardA, 1, attest.MLOCKLocked)
	if _, err := s.Release(t.Context(), "alice", cardA, v1.LockRelease{Reason: " "}); !refusal.IsKind(err, refusal.Invalid) {
		t.Errorf("without a reason: %v", err)
	}
	s.update(func(tx *store.Tx) error {
		return hostrecord.Records().Put(tx, "h1", hostrecord.Record{Cluster: "c", Epoch: 4, Window: s.now.Add(time.Hour), Granted: true})
	})
	if _, err := s.Release(t.Context(), "alice", cardA, v1.LockRelease{Reason: "RMA 17"}); !refusal.IsKind(err, refusal.Conflict) {
		t.Errorf("of a host in a partition: %v", err)
	}
	s.update(func(tx *store.Tx) error {
		return hostrecord.Records().Put(tx, "h1", hostrecord.Record{Cluster: "c", Epoch: 4, Window: s.now.Add(time.Hour)})
	})
	if l, err := s.Release(t.Context(), "alice", cardA, v1.LockRelease{Reason: "RMA 17"}); err != nil || l.State != "opening" || l.OpenedBy != "alice" {
		t.Fatalf("%+v, %v", l, err)
	}
	o := s.mustOrder(cardA).Orders[0]
	if o.Action != v1.ActionUnlock || o.Lock.Epoch != 0 || !slices.Equal(epochs(o.Held), []uint32{1}) {
		t.Errorf("order: %+v", o)
	}
	if _, err := s.Retain(t.Context(), "bob", cardA); err != nil {
		t.Fatal(err)
	}
	if o := s.mustOrder(cardA).Orders[0]; o.Action != v1.ActionLock || o.Lock.Epoch != 2 {
		t.Errorf("after it was taken back: %+v", o)
	}
	given := s.told(events.LockUnlockGiven)
	if len(given) != 1 || given[0].Adapter != cardA || !strings.Contains(given[0].Expected, "alice decided: RMA 17") {
		t.Errorf("that the keys to open it left was told as %+v", given)
	}
	var actions []string
	list, _, err := audit.Entries().List(t.Context(), s.store, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		actions = append(actions, e.Value.Actor+" "+e.Value.Action)
	}
	want := []string{"agent:h1 lock.order", "alice lock.release", "service event.lock.unlock-given", "agent:h1 lock.order", "bob lock.retain", "agent:h1 lock.order"}
	if !slices.Equal(actions, want) {
		t.Errorf("audit log: %q, want %q", actions, want)
	}
}

// Settings are judged by the service as well: an agent that says all is well
// while an item is not grants nothing.
func TestJudge(t *testing.T) {
	s := newSite(t)
	item := func(index uint32, data string) attest.Item {
		return attest.Item{Index: index, Supported: attest.Yes, Priority: attest.PriorityUser, Override: attest.Yes, Current: data, Next: data}
	}
	good := []attest.Item{item(290, "80000000"), item(291, "2aaa0000"+strings.Repeat("0", 24))}
	hca := func(items []attest.Item) *attest.Statement {
		return &attest.Statement{HCAs: []attest.HCA{{
			Name: "mlx5_0", PSID: psid, Lock: attest.Lock{Method: attest.LockWrites, Items: items},
			Ports: []attest.Port{{Num: 1, GUID: cardA + 1, LinkLayer: attest.LinkInfiniBand}},
		}}}
	}
	bad := slices.Clone(good)
	bad[0] = item(290, "00000000")
	if no := s.Judge(hca(bad)); no == nil || no.Code != attest.ReasonLock || !strings.Contains(no.Detail, "SM_DISABLE") {
		t.Errorf("SM_DISABLE off: %v", no)
	}
	if no := s.Judge(hca(good[:1])); no == nil || !strings.Contains(no.Detail, "HOST_PRIV_FLASH_ACCESS") {
		t.Errorf("privileges missing: %v", no)
	}
	if no := newSite(t, signing(t)).Judge(hca(good)); no == nil || !strings.Contains(no.Detail, "the site signs them") {
		t.Errorf("plain writes where files are signed: %v", no)
	}
}

// No key is in what is stored, listed or printed.
func TestNothingShowsAKey(t *testing.T) {
	s := newSite(t)
	orders := s.mustOrder(cardA)
	key := fmt.Sprintf("%016x", orders.Orders[0].Lock.Key.Key.Reveal())
	list, err := s.List(t.Context(), v1.LockQuery{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("order", "key", orders.Orders[0].Lock.Key)
	for _, shown := range []string{string(text), fmt.Sprintf("%v %+v %#v", orders, orders.Orders[0], orders.Orders[0].Lock), log.String()} {
		if strings.Contains(shown, key) || strings.Contains(shown, fmt.Sprint(orders.Orders[0].Lock.Key.Key.Reveal())) {
			t.Errorf("the key is in %s", shown)
		}
	}
	wire, err := json.Marshal(orders)
	if err != nil || !strings.Contains(string(wire), key) {
		t.Errorf("the agent is not told: %v", err)
	}
}

package keystore

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/driver/factfile"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/keys/keystest"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/vault"
)

func root(t *testing.T, name string, seed byte) vault.Root {
	t.Helper()
	secret := make([]byte, vault.SecretSize)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(secret)
	r, err := vault.NewRoot(name, secret)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func held(n int) keys.Held {
	return keys.Held{Key: keys.New(keystest.Planted(n)), Epoch: keys.Epoch(n + 1), Origin: keys.OriginRandom, Since: time.Unix(7, 0).UTC()}
}

func facts() []sm.Fact {
	return []sm.Fact{
		{Kind: sm.FactLID, GUID: 1, LID: 7},
		sm.KeyFactOf(keys.Record{Kind: keys.MKey, GUID: 1, Place: ib.Place{Switch: 3, Port: 4}, Current: held(0), Pending: held(1)}),
		sm.KeyFactOf(keys.Record{Kind: keys.VSKey, GUID: 1, Current: held(2)}),
		sm.KeyFactOf(keys.Record{Kind: keys.SMKey, Current: held(3)}),
		sm.RotationFactOf(keys.Cycle{Kind: keys.MKey, Epoch: 2, Began: time.Unix(9, 0).UTC()}),
		{Kind: sm.FactSAService, Name: "10", Body: "open"},
		{Kind: sm.FactSAService, Name: "11", Private: ib.NewSecretText("service " + planted)},
	}
}

// planted is a secret that is no key of a device.
var planted = fmt.Sprintf("%x", keystest.Planted(4))

// files opens a directory as the subnet manager does.
func files(t *testing.T, dir string) *factfile.Store {
	t.Helper()
	s, err := factfile.Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func open(t *testing.T, inner *factfile.Store, r vault.Root, seed byte) *Store {
	t.Helper()
	s, err := Open(inner, r, rand.NewChaCha8([32]byte{seed}))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func load(t *testing.T, s *Store) map[string]sm.Fact {
	t.Helper()
	all, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	return byName(all)
}

func byName(all []sm.Fact) map[string]sm.Fact {
	out := map[string]sm.Fact{}
	for _, f := range all {
		out[string(f.Kind)+"/"+f.GUID.String()+f.Name] = f
	}
	return out
}

// bare compares keys by their bits.
var bare = cmp.Comparer(func(a, b keys.Key) bool { return a == b })

func TestFactsComeBackAndNoFileShowsAKey(t *testing.T) {
	dir := t.TempDir()
	inner := files(t, dir)
	s := open(t, inner, root(t, "a", 1), 5)
	if err := s.Save(facts()); err != nil {
		t.Fatal(err)
	}
	master, err := s.Master()
	if err != nil {
		t.Fatal(err)
	}
	if err := inner.Close(); err != nil {
		t.Fatal(err)
	}
	scan := keystest.New(keystest.Planted(0), keystest.Planted(1), keystest.Planted(2), keystest.Planted(3), keystest.Planted(4))
	scan.Bytes("private", []byte(planted))
	scan.Bytes("master", master.Reveal())
	scan.CleanFiles(t, dir)
	scan.CleanValue(t, facts())

	again := open(t, files(t, dir), root(t, "a", 1), 6)
	if d := cmp.Diff(byName(facts()), load(t, again), bare); d != "" {
		t.Errorf("facts after a restart (-want +got):\n%s", d)
	}
	if m, err := again.Master(); err != nil || !cmp.Equal(m.Reveal(), master.Reveal()) {
		t.Errorf("the master is another: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	inner := files(t, dir)
	s := open(t, inner, root(t, "a", 1), 5)
	if err := s.Save(facts()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(inner, root(t, "b", 2), nil); err == nil || !strings.Contains(err.Error(), "wrapped under root a") {
		t.Errorf("another root: %v", err)
	}
	stored, err := inner.Load()
	if err != nil {
		t.Fatal(err)
	}
	kinds := byName(stored)
	swapped := kinds["key/m_key/0x0000000000000001"]
	swapped.Sealed = kinds["key/vs_key/0x0000000000000001"].Sealed
	if err := inner.Save([]sm.Fact{swapped}); err != nil {
		t.Fatal(err)
	}
	_, err = s.Load()
	if told, ok := errors.AsType[*vault.Error](err); !ok || told.Record != "key/m_key/0x0000000000000001" {
		t.Errorf("a record in another's place: %v", err)
	}

	headless := files(t, t.TempDir())
	if err := headless.Save([]sm.Fact{swapped}); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(headless, root(t, "a", 1), nil); err == nil || !strings.Contains(err.Error(), "no header") {
		t.Errorf("sealed keys and no vault: %v", err)
	}
}

func TestRootAndKeyOfTheVaultChange(t *testing.T) {
	dir := t.TempDir()
	inner := files(t, dir)
	s := open(t, inner, root(t, "a", 1), 5)
	if err := s.Save(facts()); err != nil {
		t.Fatal(err)
	}
	master, err := s.Master()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Rewrap(root(t, "b", 2)); err != nil {
		t.Fatal(err)
	}
	b := open(t, inner, root(t, "b", 2), 6)
	if d := cmp.Diff(byName(facts()), load(t, b), bare); d != "" {
		t.Errorf("under another root (-want +got):\n%s", d)
	}
	if err := b.Rekey(root(t, "c", 3)); err != nil {
		t.Fatal(err)
	}
	c := open(t, inner, root(t, "c", 3), 7)
	if d := cmp.Diff(byName(facts()), load(t, c), bare); d != "" {
		t.Errorf("under another key (-want +got):\n%s", d)
	}
	if m, err := c.Master(); err != nil || !cmp.Equal(m.Reveal(), master.Reveal()) {
		t.Errorf("the master is another: %v", err)
	}
	if _, err := Open(inner, root(t, "a", 1), nil); err == nil {
		t.Error("the first root still opens the vault")
	}
}

func TestMasterIsNotDrawnOverDerivedKeys(t *testing.T) {
	s := open(t, files(t, t.TempDir()), root(t, "a", 1), 5)
	h := held(0)
	h.Origin = keys.OriginDerived
	if err := s.Save([]sm.Fact{sm.KeyFactOf(keys.Record{Kind: keys.MKey, GUID: 1, Current: h})}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Master(); err == nil || !strings.Contains(err.Error(), "escrow kit") {
		t.Errorf("got %v, want a refusal", err)
	}
	m, err := keys.DrawMaster(rand.NewChaCha8([32]byte{3}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetMaster(m); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Master(); err != nil || !cmp.Equal(got.Reveal(), m.Reveal()) {
		t.Errorf("with the master put back: %v", err)
	}
}

func TestSaveRefusesAFactWithoutItsKey(t *testing.T) {
	s := open(t, files(t, t.TempDir()), root(t, "a", 1), 5)
	for name, f := range map[string]sm.Fact{
		"none":            {Kind: sm.KeyFact(keys.MKey), GUID: 1},
		"of another":      {Kind: sm.KeyFact(keys.MKey), GUID: 1, Key: &keys.Record{Kind: keys.MKey, GUID: 2}},
		"of another kind": {Kind: sm.KeyFact(keys.MKey), GUID: 1, Key: &keys.Record{Kind: keys.VSKey, GUID: 1}},
	} {
		if err := s.Save([]sm.Fact{f}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestBareStoresTakeNoKey: a store that seals nothing takes no key: it would be lost, or in clear.
func TestBareStoresTakeNoKey(t *testing.T) {
	if err := files(t, t.TempDir()).Save(facts()); err == nil || !strings.Contains(err.Error(), "sealed") {
		t.Errorf("got %v, want a refusal", err)
	}
	text, err := json.Marshal(facts())
	if err != nil {
		t.Fatal(err)
	}
	keystest.New(keystest.Planted(0), keystest.Planted(1), keystest.Planted(2), keystest.Planted(3), keystest.Planted(4)).Clean(t, "JSON of facts", text)
}

// TestADiskThatIsFullStopsKeys: the subnet manager goes on when LIDs cannot be saved, but not when keys cannot be saved.
func TestADiskThatIsFullStopsKeys(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	inner := files(t, dir)
	s := open(t, inner, root(t, "a", 1), 5)
	if err := inner.Close(); err != nil {
		t.Fatal(err)
	}
	inner = files(t, dir)
	s.inner = inner
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for range 3000 { // until the journal is rewritten, to a directory that is gone
		if err := inner.Save(facts()[:1]); err != nil {
			t.Fatalf("a LID: %v", err)
		}
	}
	if err := s.Save(facts()[1:]); err == nil {
		t.Error("keys were taken and not kept")
	}
}

// counted counts how often facts are read.
type counted struct {
	*factfile.Store
	loads int
}

func (c *counted) Load() ([]sm.Fact, error) { c.loads++; return c.Store.Load() }

// What Open has read is not read again for the master and for the first Load, unless something was saved in between.
func TestOpenReadsOnce(t *testing.T) {
	dir := t.TempDir()
	s := open(t, files(t, dir), root(t, "a", 1), 1)
	if _, err := s.Master(); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(facts()); err != nil {
		t.Fatal(err)
	}
	want, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.inner.(*factfile.Store).Close(); err != nil {
		t.Fatal(err)
	}

	inner := &counted{Store: files(t, dir)}
	again, err := Open(inner, root(t, "a", 1), rand.NewChaCha8([32]byte{2}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Master(); err != nil {
		t.Fatal(err)
	}
	got, err := again.Load()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, bare); d != "" || inner.loads != 1 {
		t.Errorf("facts were read %d times, want once; (-want +got):\n%s", inner.loads, d)
	}
	for range 2 { // each further one sees what is stored by then
		if err := inner.Save([]sm.Fact{{Kind: sm.FactLID, GUID: 2, LID: ib.LID(10 + inner.loads)}}); err != nil {
			t.Fatal(err)
		}
		got, err = again.Load()
		if err != nil {
			t.Fatal(err)
		}
		if lid, want := lidOf(got, 2), ib.LID(10+inner.loads-1); lid != want {
			t.Errorf("after another save LID %d is loaded, want %d", lid, want)
		}
	}

	third, err := Open(inner, root(t, "a", 1), rand.NewChaCha8([32]byte{3}))
	if err != nil {
		t.Fatal(err)
	}
	if err := third.Save([]sm.Fact{{Kind: sm.FactLID, GUID: 3, LID: 99}}); err != nil {
		t.Fatal(err)
	}
	got, err = third.Load()
	if err != nil {
		t.Fatal(err)
	}
	if lid := lidOf(got, 3); lid != 99 {
		t.Errorf("what was saved after Open is not loaded: LID %d, want 99", lid)
	}
}

func lidOf(facts []sm.Fact, guid ib.GUID) (lid ib.LID) {
	for i := range facts {
		if f := &facts[i]; f.Kind == sm.FactLID && f.GUID == guid {
			lid = f.LID
		}
	}
	return lid
}

package escrow

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/keys/keystest"
	"portcullis/fabricsm/vault"
)

func master(t testing.TB, seed byte) keys.Master {
	t.Helper()
	m, err := keys.DrawMaster(rand.NewChaCha8([32]byte{seed}))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// contents has a key of each origin, and each state of a record.
func contents(t testing.TB) *Contents {
	t.Helper()
	m := master(t, 1)
	derived := func(g ib.GUID, e keys.Epoch) keys.Held {
		return keys.Held{Key: m.Derive(keys.MKey, g, e), Epoch: e, Origin: keys.OriginDerived, Since: time.Unix(7, 0).UTC()}
	}
	drawn := func(n int, o keys.Origin) keys.Held {
		return keys.Held{Key: keys.New(keystest.Planted(n)), Epoch: keys.Epoch(n), Origin: o, Since: time.Unix(8, 0).UTC()}
	}
	check, err := vault.DrawCheckKey(rand.NewChaCha8([32]byte{2}))
	if err != nil {
		t.Fatal(err)
	}
	return &Contents{
		Fabric: "f", Made: time.Unix(9, 0).UTC(), Master: m, Check: check,
		Records: []keys.Record{
			{Kind: keys.MKey, GUID: 1, Place: ib.Place{Switch: 9, Port: 1}, Current: derived(1, 1), Pending: derived(1, 2)},
			{Kind: keys.MKey, GUID: 2, Current: drawn(1, keys.OriginRandom), Previous: drawn(0, keys.OriginImported)},
			{Kind: keys.MKey, GUID: 3, Retired: true, Floor: 5},
			{Kind: keys.SMKey, Current: drawn(2, keys.OriginRandom)},
		},
		Cycles: []keys.Cycle{{Kind: keys.MKey, Epoch: 2, Began: time.Unix(6, 0).UTC()}},
		Behind: map[ib.Place]ib.GUID{{Switch: 9, Port: 2}: 8, {Switch: 8}: 7},
	}
}

// TestKitOfVersion1: a kit from before kits had neighbours opens.
func TestKitOfVersion1(t *testing.T) {
	c := contents(t)
	c.Behind = nil
	text, err := c.encode()
	if err != nil {
		t.Fatal(err)
	}
	var k kit
	if err := json.Unmarshal(text, &k); err != nil {
		t.Fatal(err)
	}
	k.Version = 1
	if k.Digest, err = k.digest(); err != nil {
		t.Fatal(err)
	}
	if text, err = json.Marshal(k); err != nil || bytes.Contains(text, []byte("behind")) {
		t.Fatalf("a kit without neighbours names them: %v", err)
	}
	got, err := decode(text)
	if err != nil || len(got.Records) != len(c.Records) || len(got.Behind) != 0 {
		t.Errorf("it does not open as it was made: %v", err)
	}
}

var bare = []cmp.Option{
	cmp.Comparer(func(a, b keys.Key) bool { return a == b }),
	cmp.Comparer(func(a, b keys.Master) bool { return bytes.Equal(a.Reveal(), b.Reveal()) }),
	cmp.Comparer(func(a, b vault.CheckKey) bool { return bytes.Equal(a.Reveal(), b.Reveal()) }),
}

func TestKitForSeveral(t *testing.T) {
	var to []age.Recipient
	var ids []age.Identity
	for range 2 {
		id, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		to, ids = append(to, id.Recipient()), append(ids, id)
	}
	var b bytes.Buffer
	if err := Create(&b, contents(t), to...); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		got, err := Open(bytes.NewReader(b.Bytes()), id)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(contents(t), got, bare...); d != "" {
			t.Errorf("for recipient %d (-want +got):\n%s", i, d)
		}
	}
	if err := Create(&b, contents(t)); err == nil {
		t.Error("a kit for nobody was made")
	}
}

func TestCreateRefusesWhatWouldNotComeBack(t *testing.T) {
	other := contents(t)
	other.Master = master(t, 5)
	none := contents(t)
	none.Master = keys.Master{}
	broken := contents(t)
	broken.Records[1].Pending = broken.Records[3].Current
	unchecked := contents(t)
	unchecked.Check = vault.CheckKey{}
	for name, c := range map[string]*Contents{"another master": other, "no master": none, "a broken record": broken, "no check key": unchecked} {
		if _, err := c.encode(); err == nil {
			t.Errorf("%s: no error", name)
		} else {
			scanner(t).CleanValue(t, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	text, err := contents(t).encode()
	if err != nil {
		t.Fatal(err)
	}
	good := string(text)
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "not what this program writes"},
		{"another format", `{"format":"x","version":1}`, "not what this program writes"},
		{"later", strings.Replace(good, `"version": 2`, `"version": 3`, 1), "install the version that made it"},
		{"unknown words", strings.Replace(good, `"fabric"`, `"fabrik"`, 1), "not what this program writes"},
		{"one record changed", strings.Replace(good, "0x0000000000000002", "0x0000000000000004", 1), "digest"},
		{"cut", good[:len(good)/2], "not what this program writes"},
	} {
		_, err := decode([]byte(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestRehearse(t *testing.T) {
	c := contents(t)
	r, err := c.Rehearse(c.Digests())
	if err != nil {
		t.Fatal(err)
	}
	if r.Keys != 5 || r.Derived != 2 || r.Stored != 3 || len(r.Missing) != 0 || r.Devices != 2 {
		t.Errorf("of itself: %+v", r)
	}
	store := contents(t)
	store.Records[0].Current, store.Records[0].Pending = keys.Held{
		Key: store.Master.Derive(keys.MKey, 1, 9), Epoch: 9, Origin: keys.OriginDerived,
	}, keys.Held{}
	store.Records[3].Current.Key = keys.New(keystest.Planted(77))
	if r, err = c.Rehearse(store.Digests()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]Missing{{keys.SMKey, 0, 2}}, r.Missing); d != "" || r.Derived != 1 {
		t.Errorf("after a rotation, %d derived; missing (-want +got):\n%s", r.Derived, d)
	}
	for name, d := range map[string]*Digests{"another fabric": {Fabric: "g", Keys: store.Digests().Keys}, "empty": {Fabric: "f"}} {
		if _, err := c.Rehearse(d); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func scanner(t testing.TB) *keystest.Scanner {
	s := keystest.New(keystest.Planted(0), keystest.Planted(1), keystest.Planted(2))
	c := contents(t)
	s.Bytes("master", c.Master.Reveal())
	s.Bytes("check key", c.Check.Reveal())
	for _, r := range c.Records[:1] {
		s = scanKey(s, r.Current.Key)
	}
	return s
}

func scanKey(s *keystest.Scanner, k keys.Key) *keystest.Scanner {
	var b [8]byte
	for i := range b {
		b[i] = byte(k.Reveal() >> (56 - 8*i))
	}
	s.Bytes("derived key", b[:])
	return s
}

func TestNothingShowsAKey(t *testing.T) {
	c, scan := contents(t), scanner(t)
	r, err := c.Rehearse(c.Digests())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{c, *c, c.Digests(), r, c.Check} {
		scan.CleanValue(t, v)
	}
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Create(&b, c, id.Recipient()); err != nil {
		t.Fatal(err)
	}
	scan.Clean(t, "kit", b.Bytes())
	stranger, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(&b, stranger)
	scan.CleanValue(t, err)
	text, err := c.encode()
	if err != nil {
		t.Fatal(err)
	}
	if len(scan.Find(text)) == 0 {
		t.Error("the scan finds no key in the clear text of a kit")
	}
}

// A decoded kit is complete: it can be made a kit again, with the same digests.
func FuzzDecode(f *testing.F) {
	text, err := contents(f).encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := decode(text)
		if err != nil {
			return
		}
		if _, err := c.encode(); err != nil {
			t.Fatal(err)
		}
	})
}

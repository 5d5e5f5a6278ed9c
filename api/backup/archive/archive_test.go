package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"portcullis/api/audit/chain"
)

func identity(t testing.TB) *age.X25519Identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// records are some of a store, with an audit log of n entries.
func records(t testing.TB, n int) (items []Item, head chain.Head) {
	t.Helper()
	put := func(key string, v any) {
		data, err := json.Marshal(map[string]any{"v": 1, "d": v})
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, Item{Key: key, Value: data})
	}
	for range n {
		e := chain.Entry{Seq: head.Seq + 1, Prev: head.Hash, Time: time.Unix(1, 0).UTC(), Actor: "a", Action: "x <&>", Object: "o"}
		sum, err := e.Sum()
		if err != nil {
			t.Fatal(err)
		}
		e.Hash = sum
		head = chain.Head{Seq: e.Seq, Hash: sum}
		put(fmt.Sprintf("%s%020d", EntryPrefix, e.Seq), e)
	}
	put(HeadKey, head)
	items = append(items, Item{Key: "tenants/t", Value: []byte{0, 1, 0xff, '\n'}})
	return items, head
}

func write(t testing.TB, items []Item, h Header, to ...*age.X25519Recipient) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, h, to...)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range items {
		if err := w.Add(i); err != nil {
			t.Fatal(err)
		}
	}
	n, digest, err := w.Close()
	if err != nil || n != int64(len(items)) {
		t.Fatalf("%d records, %v", n, err)
	}
	if _, got, err := Digest(bytes.NewReader(b.Bytes()), int64(b.Len())); err != nil || got != digest {
		t.Fatalf("digest %q, written %q: %v", got, digest, err)
	}
	return b.Bytes()
}

func read(file []byte, anchors []chain.Anchor, ids ...age.Identity) (got []Item, h Header, err error) {
	h, n, err := Read(bytes.NewReader(file), int64(len(file)), ids, anchors, func(i Item) error {
		got = append(got, i)
		return nil
	})
	if err == nil && n != int64(len(got)) {
		err = fmt.Errorf("%d records were said to be %d", len(got), n)
	}
	return got, h, err
}

func TestRoundTrip(t *testing.T) {
	one, two := identity(t), identity(t)
	items, head := records(t, 3)
	want := Header{Origin: "o", Time: time.Unix(5, 0).UTC(), Revision: 42, Audit: head, State: 1, Program: "test"}
	file := write(t, items, want, one.Recipient(), two.Recipient())
	want.Version, want.Recipients = Version, []string{one.Recipient().String(), two.Recipient().String()}
	for _, id := range []age.Identity{one, two} {
		got, h, err := read(file, nil, id)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(items, got); d != "" {
			t.Errorf("records (-want +got):\n%s", d)
		}
		if d := cmp.Diff(want, h); d != "" {
			t.Errorf("header (-want +got):\n%s", d)
		}
	}
	if bytes.Contains(file, []byte("tenants/t")) {
		t.Error("the file shows a key of a record")
	}
	if _, err := NewWriter(&bytes.Buffer{}, want); err == nil {
		t.Error("a backup without recipients was begun")
	}
	if _, _, err := read(file, nil, identity(t)); err == nil || !strings.Contains(err.Error(), one.Recipient().String()) {
		t.Errorf("another identity: %v, want the recipients named", err)
	}
}

// Each byte that is changed, and each that is missing at the end, is noticed without an identity.
func TestDamageShows(t *testing.T) {
	items, head := records(t, 2)
	file := write(t, items, Header{Audit: head}, identity(t).Recipient())
	for i := range file {
		bad := bytes.Clone(file)
		bad[i] ^= 1
		if _, _, err := Digest(bytes.NewReader(bad), int64(len(bad))); err == nil {
			t.Fatalf("byte %d of %d changed, and the digest is right", i, len(file))
		}
		if _, _, err := Digest(bytes.NewReader(file[:i]), int64(i)); err == nil {
			t.Fatalf("cut to %d of %d bytes, and the digest is right", i, len(file))
		}
	}
}

// forge writes another digest into the file, as a host with write access could.
func forge(file []byte, change func([]byte) []byte) []byte {
	body := change(bytes.Clone(file[:len(file)-trailerSize]))
	sum := sha256.Sum256(body)
	return append(body, trailerStart+hex.EncodeToString(sum[:])+"\n"...)
}

func TestReadRefuses(t *testing.T) {
	id := identity(t)
	items, head := records(t, 3)
	h := Header{Audit: head, Revision: 7}
	good := write(t, items, h, id.Recipient())
	without := func(key string) []Item {
		var out []Item
		for _, i := range items {
			if i.Key != key {
				out = append(out, i)
			}
		}
		return out
	}
	altered, _ := records(t, 3)
	altered[1].Value = bytes.Replace(altered[1].Value, []byte(`"actor":"a"`), []byte(`"actor":"b"`), 1)
	later := h
	later.Audit.Seq++
	for _, tt := range []struct {
		name string
		file []byte
		want string
	}{
		{"good", good, ""},
		{"header changed", forge(good, func(b []byte) []byte { return bytes.Replace(b, []byte(`"revision":7`), []byte(`"revision":8`), 1) }), "header"},
		{"cut inside", forge(good, func(b []byte) []byte { return b[:len(b)-20] }), "not of one piece"},
		{"an entry is missing", write(t, without(items[1].Key), h, id.Recipient()), "audit entry 2 is missing"},
		{"the last entry is missing", write(t, without(items[2].Key), h, id.Recipient()), "entries were removed"},
		{"an entry was altered", write(t, altered, h, id.Recipient()), "audit entry 2 was altered"},
		{"header says another end", write(t, items, later, id.Recipient()), "its head says 4"},
		{"out of order", write(t, []Item{items[4], items[0]}, h, id.Recipient()), "follows"},
		{"newer", []byte(`{"portcullis_backup":9,"program":"x"}` + "\n"), "install the version"},
		{"no backup", []byte("age-encryption.org/v1\n"), "not a backup"},
		{"endless header", bytes.Repeat([]byte("{"), maxHeader+1), "not a backup"},
		{"empty", nil, "not a backup"},
	} {
		_, _, err := read(tt.file, nil, id)
		if got := fmt.Sprint(err); (err == nil) != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %q", tt.name, got, tt.want)
		}
	}
	wrong := []chain.Anchor{{Seq: 2, Hash: "other"}}
	if _, _, err := read(good, wrong, id); err == nil || !strings.Contains(err.Error(), "anchored") {
		t.Errorf("another history: %v", err)
	}
	ahead := []chain.Anchor{{Seq: 3, Hash: head.Hash}, {Seq: 9, Hash: "later"}}
	if _, _, err := read(good, ahead, id); err != nil {
		t.Errorf("anchors of later: %v", err)
	}
}

// FuzzRead holds that a file of any bytes is refused or read, and ends.
func FuzzRead(f *testing.F) {
	id := identity(f)
	items, head := records(f, 1)
	f.Add(write(f, items, Header{Audit: head}, id.Recipient()))
	f.Fuzz(func(t *testing.T, file []byte) {
		_, _, err := read(file, nil, id)
		if err == nil && len(file) < trailerSize {
			t.Errorf("%d bytes were read as a backup", len(file))
		}
	})
}

package vault

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/keys/keystest"
)

func random(seed byte) *rand.ChaCha8 { return rand.NewChaCha8([32]byte{seed}) }

func root(t testing.TB, name string, seed byte) Root {
	t.Helper()
	secret := make([]byte, SecretSize)
	_, _ = random(seed).Read(secret)
	r, err := NewRoot(name, secret)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func fresh(t testing.TB) *Vault {
	t.Helper()
	v, err := Create(root(t, "a", 1), random(2))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func record(guid ib.GUID, n int) keys.Record {
	held := func(n int) keys.Held {
		return keys.Held{Key: keys.New(keystest.Planted(n)), Epoch: keys.Epoch(n + 1), Origin: keys.OriginRandom, Since: time.Unix(7, 0).UTC()}
	}
	return keys.Record{Kind: keys.MKey, GUID: guid, Place: ib.Place{Switch: 9, Port: 1}, Current: held(n), Pending: held(n + 1)}
}

func TestRecordsComeBack(t *testing.T) {
	v := fresh(t)
	again, err := Open(v.Header(), root(t, "a", 1), random(3))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []keys.Record{
		record(1, 0), {Kind: keys.SAKey, Current: record(1, 4).Current}, {Kind: keys.VSKey, GUID: 5, Retired: true, Floor: 8}, {Kind: keys.CCKey, GUID: 5},
	} {
		sealed, err := v.SealRecord(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := again.OpenRecord(r.Kind, r.GUID, sealed)
		if err != nil {
			t.Fatal(err)
		}
		if got != r {
			t.Errorf("%v of %v comes back otherwise", r.Kind, r.GUID)
		}
	}
	m, err := keys.DrawMaster(random(4))
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := v.Seal(MasterName, 0, m.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := again.OpenMaster(sealed); err != nil || !cmp.Equal(got.Reveal(), m.Reveal()) {
		t.Errorf("the master comes back otherwise: %v", err)
	}
}

// Each byte of a sealed record counts, as do its name, its epoch and its vault. The error names the record and says what to
// do.
func TestOpenRefuses(t *testing.T) {
	v := fresh(t)
	one, err := v.SealRecord(record(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	two, err := v.SealRecord(record(2, 2))
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := Create(root(t, "a", 1), random(9))
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := stranger.SealRecord(record(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	wrong := map[string]string{
		"of another device": two, "of another vault": foreign, "empty": "", "text": "hello", "another epoch": strings.Replace(one, "1.1.2.", "1.1.3.", 1),
		"another key": strings.Replace(one, "1.1.", "1.7.", 1), "a later version": strings.Replace(one, "1.", "2.", 1), "no numbers": "x" + one,
		"too long": one + strings.Repeat("A", maxSealed),
	}
	for i := range one {
		wrong["cut at "+one[:i]] = one[:i]
		b := []byte(one)
		if b[i] == 'A' {
			b[i] = 'B'
		} else {
			b[i] = 'A'
		}
		wrong["changed: "+string(b)] = string(b)
	}
	for name, sealed := range wrong {
		got, err := v.OpenRecord(keys.MKey, 1, sealed)
		told, ok := errors.AsType[*Error](err)
		if !ok || got != (keys.Record{}) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if told.Record != "key/m_key/0x0000000000000001" || told.Why == "" || !strings.Contains(told.Do, "escrow kit") && !strings.Contains(told.Do, "newer") {
			t.Errorf("%s: told %q", name, err)
		}
	}
}

func TestHeaderRefuses(t *testing.T) {
	v := fresh(t)
	head := string(v.Header())
	for _, tt := range []struct{ name, head, want string }{
		{"empty", "", "not one of this program"},
		{"cut", head[:len(head)/2], "not one of this program"},
		{"no keys", `{"version":1,"id":"00112233445566778899aabbccddeeff","root":"a","keys":[]}`, "not one of this program"},
		{"later", strings.Replace(head, `"version":1`, `"version":2`, 1), "install a newer one"},
		{"of another vault", strings.Replace(head, v.ID()[:4], "0000", 1), "root a does not open it"},
	} {
		if _, err := Open([]byte(tt.head), root(t, "a", 1), random(3)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	_, err := Open([]byte(head), root(t, "b", 2), random(3))
	if err == nil || !strings.Contains(err.Error(), "root b does not open it") || !strings.Contains(err.Error(), "wrapped under root a: name that one") {
		t.Errorf("another root: %v", err)
	}
}

func TestRewrap(t *testing.T) {
	v := fresh(t)
	sealed, err := v.SealRecord(record(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Rewrap(root(t, "b", 2)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(v.Header(), root(t, "a", 1), random(3)); err == nil {
		t.Error("the old root opens the new header")
	}
	again, err := Open(v.Header(), root(t, "b", 2), random(3))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := again.OpenRecord(keys.MKey, 1, sealed); err != nil || got != record(1, 0) {
		t.Errorf("a record from before does not open: %v", err)
	}
}

func TestRekey(t *testing.T) {
	v := fresh(t)
	before, err := v.SealRecord(record(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Rekey(root(t, "a", 1)); err != nil {
		t.Fatal(err)
	}
	after, err := v.SealRecord(record(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	both, err := Open(v.Header(), root(t, "a", 1), random(3))
	if err != nil {
		t.Fatal(err)
	}
	v.Forget()
	last, err := Open(v.Header(), root(t, "a", 1), random(3))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		v      *Vault
		sealed string
		opens  bool
	}{{"both, before", both, before, true}, {"both, after", both, after, true}, {"last, before", last, before, false}, {"last, after", last, after, true}} {
		if _, err := tt.v.OpenRecord(keys.MKey, 1, tt.sealed); (err == nil) != tt.opens {
			t.Errorf("%s: %v, want opens %v", tt.name, err, tt.opens)
		}
	}
}

func TestSealRefusesWhatNoRecordCanBe(t *testing.T) {
	r := record(1, 0)
	r.Previous = keys.Held{Key: keys.New(keystest.Planted(7)), Origin: keys.OriginRandom}
	if _, err := fresh(t).SealRecord(r); err == nil {
		t.Error("a record with three keys was sealed")
	}
}

func TestFileRoot(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return file
	}
	secret, err := NewSecret(random(8))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := FileRoot(write("good", string(secret), 0o600)); err != nil {
		t.Error(err)
	}
	if _, err := CredentialRoot(dir, "good"); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct{ name, file, want string }{
		{"missing", filepath.Join(dir, "missing"), "no such file"},
		{"open to others", write("open", string(secret), 0o644), "others can read it: chmod 600"},
		{"short", write("short", string(secret[:40]), 0o600), "want 64 hexadecimal digits"},
		{"long", write("long", strings.Repeat(string(secret[:64]), 2), 0o600), "want 64 hexadecimal digits"},
		{"no digits", write("none", strings.Repeat("xy", 32), 0o600), "want 64 hexadecimal digits"},
		{"weak", write("weak", strings.Repeat("ab", 32), 0o600), "too few bytes"},
	} {
		if _, err := FileRoot(tt.file); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	for _, tt := range [][2]string{{"", "good"}, {dir, "../good"}} {
		if _, err := CredentialRoot(tt[0], tt[1]); err == nil {
			t.Errorf("credential %q in %q was taken", tt[1], tt[0])
		}
	}
}

// TestNothingShowsAKey looks at all that comes out of a vault.
func TestNothingShowsAKey(t *testing.T) {
	scan := keystest.New(keystest.Planted(0), keystest.Planted(1))
	secret, master := make([]byte, SecretSize), make([]byte, keys.MasterSize)
	_, _ = random(11).Read(secret)
	_, _ = random(12).Read(master)
	scan.Bytes("root", secret)
	scan.Bytes("master", master)
	r, err := NewRoot("a", secret)
	if err != nil {
		t.Fatal(err)
	}
	v, err := Create(r, random(2))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range v.raw {
		scan.Bytes("key of the vault", b.bytes())
	}
	m, err := keys.NewMaster(master)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := v.SealRecord(record(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	sealedMaster, err := v.Seal(MasterName, 0, m.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	scan.Clean(t, "sealed", []byte(sealed+sealedMaster+string(v.Header())))
	_, wrong := v.OpenRecord(keys.MKey, 2, sealed)
	got, err := v.OpenRecord(keys.MKey, 1, sealed)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []any{v, *v, got, wrong, v.raw[1], struct{ r Root }{r}} {
		scan.CleanValue(t, value)
	}
}

// Opening any content of a store ends with an error or the sealed data.
func FuzzOpen(f *testing.F) {
	v := fresh(f)
	sealed, err := v.SealRecord(record(1, 0))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed, string(v.Header()))
	r := root(f, "a", 1)
	f.Fuzz(func(t *testing.T, text, head string) {
		if got, err := v.OpenRecord(keys.MKey, 1, text); err == nil && (got != record(1, 0) || text != sealed) {
			t.Fatalf("%q opens", text)
		}
		if other, err := Open([]byte(head), r, random(3)); err == nil && other.ID() != v.ID() {
			t.Fatalf("%q is a vault", head)
		}
	})
}

package keys

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
)

// testMaster has the bytes of a fixed generator.
func testMaster(t testing.TB, seed byte) Master {
	t.Helper()
	m, err := DrawMaster(rand.NewChaCha8([32]byte{seed}))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestDeriveKnownAnswers compares with the results of Python's hmac module for the formula in the comment of Derive:
//
//	M = bytes((i*i*7 + 3*i + 11) & 255 ^ (i*29 & 255) for i in range(64))
//	S = hmac.digest(M, b"portcullis fabric keys epoch\0" + epoch.to_bytes(4), "sha512")
//	hmac.digest(S, guid.to_bytes(8) + bytes([klass, typ, 0]), "sha512")[:8]
func TestDeriveKnownAnswers(t *testing.T) {
	b := make([]byte, MasterSize)
	for i := range b {
		b[i] = byte(i*i*7+3*i+11) ^ byte(i*29)
	}
	m, err := NewMaster(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		kind  Kind
		guid  ib.GUID
		epoch Epoch
		want  uint64
	}{
		{MKey, 0x0002c90300a1b2c3, 1, 0x3a496e77d8317e72},
		{CCKey, 0x0002c90300a1b2c3, 1, 0x6d493d25eac6395a},
		{VSKey, 0x0002c90300a1b2c3, 1, 0xedc7b309162a76ba},
		{N2NKey, 0x0002c90300a1b2c3, 1, 0x31cd6bfa5d038528},
		{N2NNodeKey, 0x0002c90300a1b2c3, 1, 0x72556f96f555d840},
		{SMKey, 0x0000000000000000, 1, 0xb745559d0b254711},
		{SAKey, 0x0000000000000000, 1, 0x1da98d82a4ec8734},
		{MKey, 0x0002c90300a1b2c4, 1, 0x6a6e5dcbc39374e7},
		{MKey, 0x0002c90300a1b2c3, 2, 0xe6db5f633de4c450},
		{MKey, 0xfffffffffffffffe, 0xffffffff, 0x16178678cc0f515c},
	} {
		if got := m.Derive(tt.kind, tt.guid, tt.epoch).Reveal(); got != tt.want {
			t.Errorf("%v of %v, epoch %d: got 0x%016x, want 0x%016x", tt.kind, tt.guid, tt.epoch, got, tt.want)
		}
	}
}

func TestDeriveSeparates(t *testing.T) {
	seen := map[Key]string{}
	for _, seed := range []byte{1, 2} {
		m := testMaster(t, seed)
		for _, k := range Kinds() {
			for guid := ib.GUID(1); guid <= 20; guid++ {
				for epoch := Epoch(1); epoch <= 5; epoch++ {
					key := m.Derive(k, guid, epoch)
					if was, twice := seen[key]; twice {
						t.Fatalf("%v of %v, epoch %d, is that of %s", k, guid, epoch, was)
					}
					seen[key] = k.String()
				}
			}
		}
	}
}

func TestDerivePassesOverWhatIsNoKey(t *testing.T) {
	tries := []uint64{0, ^uint64(0), 0, 42, 43}
	if got := firstUsable(func(c byte) uint64 { return tries[c] }); got != 42 {
		t.Errorf("got %d, want 42", got)
	}
}

func TestMasterRefuses(t *testing.T) {
	good := testMaster(t, 1).Reveal()
	count := make([]byte, MasterSize)
	for i := range count {
		count[i] = byte(200 - 3*i)
	}
	for _, tt := range []struct {
		name string
		b    []byte
		want string
	}{
		{"none", nil, "master of 0 bytes"},
		{"short", good[:63], "master of 63 bytes"},
		{"all equal", bytes.Repeat([]byte{7}, 64), "too few of its bytes differ"},
		{"text", []byte(strings.Repeat("correct horse battery staple ", 3)[:64]), "too few of its bytes differ"},
		{"a key, repeated", bytes.Repeat(good[:8], 8), "too few of its bytes differ"},
		{"counting", count, "count up or down"},
		{"halves", append(append([]byte{}, good[:32]...), good[:32]...), "differ"},
	} {
		if _, err := NewMaster(tt.b); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	if _, err := DrawMaster(strings.NewReader("short")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a source that ends: %v", err)
	}
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		v    uint64
		want string
	}{
		{0, "no protection"},
		{1, "below 2^32"},
		{0xFFFFFFFF, "below 2^32"},
		{^uint64(0), "all ones"},
		{0x1111111111111111, "repeat"},
		{0xAABBAABBAABBAABB, "repeat"},
		{0x1234567812345678, "repeat"},
		{0x0102030405060708, "count"},
		{0x0123456789ABCDEF, "count"},
		{0xFEDCBA9876543210, "count"},
		{0x8F3A5C917B2E4D60, ""},
		{1<<32 | 0x5EED, ""},
	} {
		err := Check(New(tt.v))
		if tt.want == "" {
			if err != nil {
				t.Errorf("0x%x: %v", tt.v, err)
			}
			continue
		}
		if weak, ok := errors.AsType[*WeakError](err); !ok || !strings.Contains(weak.Why, tt.want) {
			t.Errorf("0x%x: %v, want %q", tt.v, err, tt.want)
		}
	}
}

func TestDrawPassesOverWeakKeys(t *testing.T) {
	var b []byte
	for _, v := range []uint64{0, 1, ^uint64(0), 0x8F3A5C917B2E4D60} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	if k, err := Draw(bytes.NewReader(b)); err != nil || k.Reveal() != 0x8F3A5C917B2E4D60 {
		t.Errorf("got %v, want the fourth", err)
	}
	if _, err := Draw(bytes.NewReader(make([]byte, 64))); err == nil || !strings.Contains(err.Error(), "it is broken") {
		t.Errorf("a source of zeros: %v", err)
	}
	if _, err := (Random{bytes.NewReader(nil)}).Make(MKey, 1, 1, time.Time{}); !errors.Is(err, io.EOF) {
		t.Errorf("an empty source: %v", err)
	}
}

func TestSourcesRefuse(t *testing.T) {
	d := Derived{testMaster(t, 1)}
	for name, err := range map[string]error{
		"epoch 0":         second(d.Make(MKey, 1, 0, time.Time{})),
		"no kind":         second(d.Make(0, 1, 1, time.Time{})),
		"no master":       second(Derived{}.Make(MKey, 1, 1, time.Time{})),
		"random, epoch 0": second(Random{rand.NewChaCha8([32]byte{})}.Make(MKey, 1, 0, time.Time{})),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }

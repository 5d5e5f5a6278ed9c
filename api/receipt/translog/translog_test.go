package translog

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"portcullis/api/receipt"
)

const origin = "portcullis/receipts/0f"

// store has the hashes of a tree in the order in which package tlog counts them.
type store []tlog.Hash

func (s store) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, n := range indexes {
		out[i] = s[n]
	}
	return out, nil
}

// site is a log of some receipts, and its key.
type site struct {
	t      testing.TB
	key    ed25519.PrivateKey
	keys   []receipt.PublicKey
	hashes store
	size   int64
}

func newSite(t testing.TB, seed byte) *site {
	t.Helper()
	s := &site{t: t, key: ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))}
	k, err := receipt.NewPublicKey(s.key.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	s.keys = []receipt.PublicKey{k}
	return s
}

func text(i int64) []byte { return fmt.Appendf(nil, "receipt %d\n", i) }

func (s *site) add(data []byte) {
	s.t.Helper()
	more, err := tlog.StoredHashesForRecordHash(s.size, DigestOf(data).Leaf(), s.hashes)
	if err != nil {
		s.t.Fatal(err)
	}
	s.hashes = append(s.hashes, more...)
	s.size++
}

func (s *site) head(size int64) *Head {
	s.t.Helper()
	root, err := tlog.TreeHash(size, s.hashes)
	if err != nil {
		s.t.Fatal(err)
	}
	return &Head{origin, size, root}
}

func (s *site) sign(h *Head) []byte {
	s.t.Helper()
	out, err := h.Sign(s.key)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

func (s *site) proof(index, size int64) []byte {
	s.t.Helper()
	hashes, err := tlog.ProveRecord(size, index, s.hashes)
	if err != nil {
		s.t.Fatal(err)
	}
	p := Proof{index, hashes, s.sign(s.head(size))}
	return p.Marshal()
}

func logOf(t testing.TB, n int64) *site {
	t.Helper()
	s := newSite(t, 1)
	for i := range n {
		s.add(text(i))
	}
	return s
}

func TestInclusion(t *testing.T) {
	t.Parallel()
	const n = 20
	s := logOf(t, n)
	for size := int64(1); size <= n; size++ {
		for i := range size {
			proof := s.proof(i, size)
			at, err := Verify(text(i), proof, s.keys)
			if err != nil || at.Index != i || at.Head != *s.head(size) {
				t.Fatalf("leaf %d of %d: %+v, %v", i, size, at, err)
			}
			if _, err := Verify(text(i+1), proof, s.keys); !errors.Is(err, ErrAbsent) {
				t.Errorf("leaf %d of %d shows another receipt: %v", i, size, err)
			}
		}
	}
	if _, err := Verify(text(3), s.proof(3, n), newSite(t, 2).keys); !errors.Is(err, ErrKey) {
		t.Errorf("signed by another key: %v", err)
	}
	if _, err := Verify(text(3), s.proof(3, n), nil); !errors.Is(err, ErrKey) {
		t.Errorf("without a key: %v", err)
	}
}

// TestAltered: a proof or a receipt that was altered in one byte, cut or made longer is refused.
func TestAltered(t *testing.T) {
	t.Parallel()
	s := logOf(t, 11)
	data, proof := text(5), s.proof(5, 11)
	refused := func(what string, data, proof []byte) {
		t.Helper()
		_, err := Verify(data, proof, s.keys)
		if !errors.Is(err, ErrForm) && !errors.Is(err, ErrKey) && !errors.Is(err, ErrAbsent) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range proof {
		for bit := range 8 {
			altered := bytes.Clone(proof)
			altered[i] ^= 1 << bit
			refused(fmt.Sprintf("bit %d of byte %d of the proof", bit, i), data, altered)
		}
		refused(fmt.Sprintf("%d bytes of the proof", i), data, proof[:i])
		for _, more := range []string{"\n", " ", "0", "\x00", "— "} {
			refused(fmt.Sprintf("%q before byte %d", more, i), data, []byte(string(proof[:i])+more+string(proof[i:])))
		}
	}
	for i := range data {
		altered := bytes.Clone(data)
		altered[i] ^= 1
		refused(fmt.Sprintf("byte %d of the receipt", i), altered, proof)
	}
	refused("another end", data, append(bytes.Clone(proof), '\n'))
	refused("an extra line", data, bytes.Replace(proof, []byte("index"), []byte("extra YQ==\nindex"), 1))
	_, sig, _ := bytes.Cut(bytes.TrimPrefix(proof[bytes.Index(proof, []byte("\n\n"))+2:], nil), []byte("\n\n"))
	refused("the signature twice", data, append(bytes.Clone(proof), sig...))
}

// TestConsistency: every head continues each one before it, and no other one.
func TestConsistency(t *testing.T) {
	t.Parallel()
	const n = 20
	s, other := logOf(t, n), newSite(t, 1)
	for i := range int64(n) {
		if i == 7 {
			other.add([]byte("it was taken back\n"))
			continue
		}
		other.add(text(i))
	}
	for later := int64(1); later <= n; later++ {
		for earlier := int64(1); earlier <= later; earlier++ {
			hashes, err := tlog.ProveTree(later, earlier, s.hashes)
			if err != nil {
				t.Fatal(err)
			}
			if err := Continues(s.head(later), s.head(earlier), hashes); err != nil {
				t.Errorf("%d after %d: %v", later, earlier, err)
			}
			if forked := later > 7 && earlier > 7; forked {
				err1 := Continues(other.head(later), s.head(earlier), hashes)
				more, err := tlog.ProveTree(later, earlier, other.hashes)
				if err != nil {
					t.Fatal(err)
				}
				err2 := Continues(other.head(later), s.head(earlier), more)
				if !errors.Is(err1, ErrHistory) || !errors.Is(err2, ErrHistory) {
					t.Errorf("two histories, %d after %d: %v, %v", later, earlier, err1, err2)
				}
			}
			if later > earlier {
				if err := Continues(s.head(earlier), s.head(later), hashes); !errors.Is(err, ErrHistory) {
					t.Errorf("the log shrank from %d to %d: %v", later, earlier, err)
				}
				if err := Continues(s.head(later), s.head(earlier), nil); !errors.Is(err, ErrHistory) {
					t.Errorf("%d after %d without a proof: %v", later, earlier, err)
				}
			}
		}
	}
	if err := Continues(s.head(3), s.head(0), nil); err != nil {
		t.Errorf("after nothing: %v", err)
	}
	renamed := s.head(5)
	renamed.Origin = "portcullis/receipts/10"
	if err := Continues(renamed, s.head(5), nil); !errors.Is(err, ErrHistory) {
		t.Errorf("another log: %v", err)
	}
}

func TestHeadNames(t *testing.T) {
	t.Parallel()
	s := logOf(t, 2)
	for _, name := range []string{"", "two words", "a+b", "two\nlines", strings.Repeat("long", 300)} {
		h := s.head(2)
		h.Origin = name
		if out, err := h.Sign(s.key); err == nil {
			t.Errorf("the name %.20q is signed: %q", name, out)
		}
	}
}

func FuzzProof(f *testing.F) {
	s := logOf(f, 6)
	f.Add(s.proof(3, 6))
	f.Add(s.proof(0, 1))
	f.Add([]byte(version + "\nindex 0\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParseProof(data)
		if err != nil {
			if !errors.Is(err, ErrForm) {
				t.Errorf("%v", err)
			}
			return
		}
		if !bytes.Equal(p.Marshal(), data) {
			t.Errorf("%q reads as %q", data, p.Marshal())
		}
		if at, err := Verify(text(3), data, s.keys); err == nil && (at.Index != 3 || at.Head.Size != 6) {
			t.Errorf("%q shows leaf %+v", data, at)
		}
	})
}

func FuzzHead(f *testing.F) {
	s := logOf(f, 6)
	genuine := map[string]bool{}
	for size := range int64(7) {
		out := s.sign(s.head(size))
		genuine[string(out)] = true
		f.Add(out)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := ReadHead(data)
		if err != nil && !errors.Is(err, ErrForm) {
			t.Errorf("%v", err)
		}
		if err == nil && !strings.HasPrefix(string(data), h.text()+"\n— "+h.Origin+" ") {
			t.Errorf("%q reads as %+v", data, h)
		}
		if _, err := OpenHead(data, s.keys); (err == nil) != genuine[string(data)] {
			t.Errorf("%q: %v", data, err)
		}
	})
}

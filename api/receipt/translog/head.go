package translog

import (
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"portcullis/api/receipt"
)

// MaxHead bounds a signed head, in bytes.
const MaxHead = 1 << 10

// What is wrong with a head, or with a proof.
var (
	ErrForm = errors.New("it is no such proof or tree head, or was altered")
	ErrKey  = errors.New("no key that is trusted signed the tree head, or it was altered")
	// ErrAbsent says that a receipt is not where the proof says that it is.
	ErrAbsent = errors.New("the proof is not about this receipt, or was altered")
	// ErrHistory says that of two heads, the later one does not continue the earlier one.
	ErrHistory = errors.New("there are two histories")
)

// Digest is the SHA-256 of a receipt, with its line feed.
type Digest [sha256.Size]byte

// DigestOf returns the digest of a receipt.
func DigestOf(receipt []byte) Digest { return sha256.Sum256(receipt) }

// String returns the digest in hexadecimal.
func (d Digest) String() string { return fmt.Sprintf("%x", d[:]) }

// Leaf returns the hash by which the tree has the receipt.
func (d Digest) Leaf() tlog.Hash { return tlog.RecordHash(d[:]) }

// Head is the state of a log: which log it is, how many receipts are in it, and the hash of them all.
type Head struct {
	Origin string // names the log
	Size   int64
	Root   tlog.Hash
}

// text returns what is signed.
func (h *Head) text() string { return fmt.Sprintf("%s\n%d\n%s\n", h.Origin, h.Size, h.Root) }

// signer signs notes with a key of receipts.
type signer struct {
	note.Verifier
	key crypto.Signer
}

func (s signer) Sign(msg []byte) ([]byte, error) { return s.key.Sign(nil, msg, crypto.Hash(0)) }

// Sign returns the head as a checkpoint that the key signed.
func (h *Head) Sign(key crypto.Signer) ([]byte, error) {
	public, ok := key.Public().(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("sign a tree head: the key is a %T: want Ed25519", key.Public())
	}
	trusted, err := receipt.NewPublicKey(public)
	if err != nil {
		return nil, fmt.Errorf("sign a tree head: %w", err)
	}
	v, err := verifier(h.Origin, trusted)
	if err != nil {
		return nil, fmt.Errorf("sign a tree head: %w", err)
	}
	out, err := note.Sign(&note.Note{Text: h.text()}, signer{v, key})
	if err != nil {
		return nil, fmt.Errorf("sign a tree head: %w", err)
	}
	if back, err := OpenHead(out, []receipt.PublicKey{trusted}); err != nil || *back != *h {
		return nil, fmt.Errorf("sign a tree head: it does not read back: %w", err)
	}
	return out, nil
}

// verifier returns what verifies notes that a key signs in the name of a log.
func verifier(origin string, key receipt.PublicKey) (note.Verifier, error) {
	text, err := note.NewEd25519VerifierKey(origin, key.Ed25519())
	if err != nil {
		return nil, err
	}
	v, err := note.NewVerifier(text)
	if err != nil {
		return nil, fmt.Errorf("log %.80q: %w", origin, err)
	}
	return v, nil
}

// OpenHead reads a signed head, and refuses it unless one of the keys signed it. The name of the log is what the head says: which
// log is wanted is for the caller to compare. Errors are ErrForm and ErrKey.
func OpenHead(data []byte, keys []receipt.PublicKey) (*Head, error) {
	h, err := ReadHead(data)
	if err != nil {
		return nil, err
	}
	known := make([]note.Verifier, len(keys))
	for i, k := range keys {
		if known[i], err = verifier(h.Origin, k); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrForm, err)
		}
	}
	if _, err := note.Open(data, note.VerifierList(known...)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	return h, nil
}

// ReadHead reads a signed head, and does not verify the signature. It is for heads that were verified before they were kept. The
// error is ErrForm.
func ReadHead(data []byte) (*Head, error) {
	text, sig, ok := strings.Cut(string(data), "\n\n")
	lines := strings.Split(text, "\n")
	if len(data) > MaxHead || !ok || len(lines) != 3 {
		return nil, fmt.Errorf("%w: want a checkpoint with origin, size and hash, of %d bytes at most", ErrForm, MaxHead)
	}
	h := &Head{Origin: lines[0]}
	var err error
	if h.Size, err = number(lines[1]); err != nil {
		return nil, fmt.Errorf("%w: size %.80q", ErrForm, lines[1])
	}
	if h.Root, err = hash(lines[2]); err != nil {
		return nil, fmt.Errorf("%w: hash %.80q", ErrForm, lines[2])
	}
	// Base64 has several spellings of some bytes, and a note may have several signatures: only one spelling of one is accepted.
	fields := strings.Split(sig, " ")
	if len(fields) != 3 || fields[0] != "—" || fields[1] != h.Origin {
		return nil, fmt.Errorf("%w: want one signature, in the name of %.80q", ErrForm, h.Origin)
	}
	raw, err := base64.StdEncoding.DecodeString(fields[2])
	if err != nil || len(raw) != 4+ed25519.SignatureSize || fields[2] != base64.StdEncoding.EncodeToString(raw)+"\n" {
		return nil, fmt.Errorf("%w: signature %.120q", ErrForm, fields[2])
	}
	return h, nil
}

// number reads a count as it is written.
func number(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || s != strconv.FormatInt(n, 10) {
		return 0, ErrForm
	}
	return n, nil
}

// hash reads a hash as it is written.
func hash(s string) (tlog.Hash, error) {
	h, err := tlog.ParseHash(s)
	if err != nil || h.String() != s {
		return tlog.Hash{}, ErrForm
	}
	return h, nil
}

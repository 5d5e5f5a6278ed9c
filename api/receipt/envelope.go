package receipt

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	"portcullis/api/strictjson"
)

const (
	// PayloadType is the type of the payload of an envelope.
	PayloadType = "application/vnd.in-toto+json"
	// MaxSize bounds an envelope, in bytes. 1,000 tenants are 500,000 pairs.
	MaxSize = 64 << 20
	// MaxKeyFile bounds a file with public keys, in bytes.
	MaxKeyFile = 16 << 10

	maxValues      = 8 << 20 // of a payload
	envelopeValues = 16
)

// What is wrong with a receipt.
var (
	ErrForm  = errors.New("it is no receipt, or was altered")
	ErrKey   = errors.New("no key that is trusted signed it, or it was altered")
	ErrStale = errors.New("something in it is too old, or not yet so")
)

// PublicKey is an Ed25519 key that is trusted to sign receipts.
type PublicKey struct {
	id  string
	key ed25519.PublicKey
}

// NewPublicKey returns a key by which receipts are verified.
func NewPublicKey(key ed25519.PublicKey) (PublicKey, error) {
	if len(key) != ed25519.PublicKeySize {
		return PublicKey{}, fmt.Errorf("an Ed25519 public key has %d bytes, and this has %d", ed25519.PublicKeySize, len(key))
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return PublicKey{}, fmt.Errorf("encode the public key: %w", err)
	}
	sum := sha256.Sum256(der)
	return PublicKey{hex.EncodeToString(sum[:]), slices.Clone(key)}, nil
}

// ParsePublicKeys reads PEM blocks of type PUBLIC KEY, as openssl and [PublicKey.PEM] write them. There is at least one.
func ParsePublicKeys(data []byte) ([]PublicKey, error) {
	if len(data) > MaxKeyFile {
		return nil, fmt.Errorf("a file of keys has at most %d bytes", MaxKeyFile)
	}
	var out []PublicKey
	for rest := data; len(out) == 0 || len(bytes.TrimSpace(rest)) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "PUBLIC KEY" {
			return nil, errors.New("want PEM blocks of type PUBLIC KEY: openssl pkey -pubout")
		}
		k, err := parsePublicKey(block.Bytes)
		if err != nil {
			return nil, err
		}
		out = append(out, k)
	}
	return out, nil
}

// PEM returns the key as openssl writes it.
func (k PublicKey) PEM() ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(k.key)
	if err != nil {
		return nil, fmt.Errorf("encode the public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

func parsePublicKey(der []byte) (PublicKey, error) {
	parsed, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return PublicKey{}, fmt.Errorf("read the public key: %w", err)
	}
	key, ok := parsed.(ed25519.PublicKey)
	if !ok {
		return PublicKey{}, fmt.Errorf("the public key is a %T: want Ed25519", parsed)
	}
	return NewPublicKey(key)
}

// ID returns the SHA-256 of the SubjectPublicKeyInfo in hexadecimal.
func (k PublicKey) ID() string { return k.id }

// Ed25519 returns the key as package crypto/ed25519 has it.
func (k PublicKey) Ed25519() ed25519.PublicKey { return slices.Clone(k.key) }

// envelope is a DSSE envelope.
type envelope struct {
	Payload     []byte      `json:"payload"`
	PayloadType string      `json:"payloadType"`
	Signatures  []signature `json:"signatures"`
}

type signature struct {
	KeyID string `json:"keyid"`
	Sig   []byte `json:"sig"`
}

// authenticated returns the bytes that a signature of DSSE is over (its pre-authentication encoding).
func authenticated(payload []byte) []byte {
	return append(fmt.Appendf(nil, "DSSEv1 %d %s %d ", len(PayloadType), PayloadType, len(payload)), payload...)
}

// Sign returns a receipt as one line of JSON. The key is Ed25519, in memory or in a token.
func Sign(p *Predicate, key crypto.Signer) ([]byte, error) {
	public, ok := key.Public().(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("sign a receipt: the key is a %T: want Ed25519", key.Public())
	}
	trusted, err := NewPublicKey(public)
	if err == nil {
		err = p.check()
	}
	if err != nil {
		return nil, fmt.Errorf("sign a receipt: %w", err)
	}
	payload, err := json.Marshal(statement{StatementType, []subject{{tables, digest{p.Reading.Digest}}}, PredicateType, p})
	if err != nil {
		return nil, fmt.Errorf("encode a receipt: %w", err)
	}
	sig, err := key.Sign(nil, authenticated(payload), crypto.Hash(0))
	if err != nil {
		return nil, fmt.Errorf("sign a receipt: %w", err)
	}
	line, err := json.Marshal(envelope{payload, PayloadType, []signature{{trusted.id, sig}}})
	if err != nil {
		return nil, fmt.Errorf("encode a receipt: %w", err)
	}
	line = append(line, '\n')
	// What others would refuse, or read as something else, is not given to them.
	if _, err := Verify(line, []PublicKey{trusted}, p.Issued.At); err != nil {
		return nil, fmt.Errorf("sign a receipt: %w", err)
	}
	return line, nil
}

// Receipt is a receipt that was verified.
type Receipt struct {
	Key       PublicKey // that signed it
	Predicate *Predicate
}

// Verify reads a receipt, and refuses it unless one of the keys signed exactly these bytes and everything in it counts at the
// given time. The verdict of what it returns is "isolated" only if it is that of every pair. Errors are ErrForm, ErrKey and
// ErrStale.
func Verify(data []byte, keys []PublicKey, now time.Time) (*Receipt, error) {
	var e envelope
	if err := decode(data, MaxSize, envelopeValues, &e, "payloadType"); err != nil {
		return nil, err
	}
	if e.PayloadType != PayloadType || len(e.Signatures) != 1 {
		return nil, fmt.Errorf("%w: its payload is %.80q with %d signatures: want %s with one", ErrForm, e.PayloadType, len(e.Signatures), PayloadType)
	}
	i := slices.IndexFunc(keys, func(k PublicKey) bool { return k.id == e.Signatures[0].KeyID && k.id != "" })
	if i < 0 || !ed25519.Verify(keys[i].key, authenticated(e.Payload), e.Signatures[0].Sig) {
		return nil, fmt.Errorf("%w: it names the key %.80q", ErrKey, e.Signatures[0].KeyID)
	}
	var s statement
	if err := decode(append(e.Payload, '\n'), MaxSize, maxValues, &s, "_type", "predicateType"); err != nil {
		return nil, err
	}
	p := s.Predicate
	if s.Type != StatementType || s.PredicateType != PredicateType || p == nil {
		return nil, fmt.Errorf("%w: it is a %.80q about %.80q: want %s about %s", ErrForm, s.Type, s.PredicateType, StatementType, PredicateType)
	}
	if len(s.Subject) != 1 || s.Subject[0] != (subject{tables, digest{p.Reading.Digest}}) {
		return nil, fmt.Errorf("%w: its subject is not the tables that were read", ErrForm)
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForm, err)
	}
	if err := p.stale(now); err != nil {
		return nil, err
	}
	return &Receipt{keys[i], p}, nil
}

// decode reads one line of JSON that must be exactly as Sign writes it, so that all readers of it read the same.
func decode(data []byte, most, values int, v any, also ...string) error {
	line, ended := bytes.CutSuffix(data, []byte{'\n'})
	if len(data) > most || !ended {
		return fmt.Errorf("%w: %d bytes: want one line of at most %d", ErrForm, len(data), most)
	}
	if err := strictjson.CheckOther(line, values, also...); err != nil {
		return fmt.Errorf("%w: %w", ErrForm, err)
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("%w: %w", ErrForm, err)
	}
	again, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrForm, err)
	}
	if !bytes.Equal(line, again) {
		return fmt.Errorf("%w: its JSON is not in the form in which receipts are written", ErrForm)
	}
	return nil
}

package vault

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Root wraps the key of a vault. It stands for any holder of the last secret: a file, a credential of systemd, a TPM, a key
// service.
type Root interface {
	// Name identifies the root for users: it is stored beside the wrapped key, and shown when another root is tried.
	Name() string
	// Wrap seals a key, bound to a context.
	Wrap(random io.Reader, context, key []byte) ([]byte, error)
	// Unwrap opens the result of Wrap in the same context. It fails for data that another root wrapped.
	Unwrap(context, wrapped []byte) ([]byte, error)
}

// SecretSize is the size of the secret of a root in bytes.
const SecretSize = 32

// secretRoot is a Root over a secret in memory.
type secretRoot struct {
	name string
	kek  cipher.AEAD
}

// NewRoot returns a Root over a secret of SecretSize random bytes.
func NewRoot(name string, secret []byte) (Root, error) {
	if len(secret) != SecretSize {
		return nil, fmt.Errorf("root %s: a secret of %d bytes: want %d from a random source", name, len(secret), SecretSize)
	}
	if distinct(secret) < SecretSize/2 {
		return nil, fmt.Errorf("root %s: too few bytes of its secret differ for a random one; make another", name)
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "portcullis vault root 1", 32)
	if err != nil {
		return nil, err
	}
	kek, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	return &secretRoot{name, kek}, nil
}

func distinct(b []byte) int {
	seen := make(map[byte]bool)
	for _, x := range b {
		seen[x] = true
	}
	return len(seen)
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func (r *secretRoot) Name() string { return r.name }

func (r *secretRoot) Wrap(random io.Reader, context, key []byte) ([]byte, error) {
	return seal(r.kek, random, context, key)
}

func (r *secretRoot) Unwrap(context, wrapped []byte) ([]byte, error) {
	return open(r.kek, context, wrapped)
}

// seal returns a random nonce and the ciphertext.
func seal(a cipher.AEAD, random io.Reader, context, plain []byte) ([]byte, error) {
	nonce := make([]byte, a.NonceSize(), a.NonceSize()+len(plain)+a.Overhead())
	if _, err := io.ReadFull(random, nonce); err != nil {
		return nil, fmt.Errorf("draw a nonce: %w", err)
	}
	return a.Seal(nonce, nonce, plain, context), nil
}

// errForged is the only known reason if data does not open.
var errForged = errors.New("it does not open")

func open(a cipher.AEAD, context, sealed []byte) ([]byte, error) {
	if len(sealed) < a.NonceSize()+a.Overhead() {
		return nil, errForged
	}
	plain, err := a.Open(nil, sealed[:a.NonceSize()], sealed[a.NonceSize():], context)
	if err != nil {
		return nil, errForged
	}
	return plain, nil
}

// FileRoot reads a Root from a file of 64 hexadecimal digits. Only the owner and the group of the service may read the
// file.
func FileRoot(file string) (Root, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("root of the vault: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return nil, fmt.Errorf("root of the vault: %w", err)
	} else if mode := info.Mode().Perm(); mode&0o037 != 0 {
		return nil, fmt.Errorf("root of the vault: %s has mode %#o, and others can read it: chmod 600 it", file, mode)
	}
	text, err := io.ReadAll(io.LimitReader(f, 200))
	if err != nil {
		return nil, fmt.Errorf("root of the vault: %w", err)
	}
	secret, err := hex.DecodeString(string(bytes.TrimSpace(text)))
	if err != nil || len(secret) != SecretSize {
		return nil, fmt.Errorf("root of the vault: %s: want %d hexadecimal digits; portcullis keys root makes such a file", file, 2*SecretSize)
	}
	return NewRoot(file, secret)
}

// CredentialRoot reads a Root from a credential that systemd decrypted for this
// service (LoadCredentialEncrypted=), in the directory that it names in
// CREDENTIALS_DIRECTORY.
func CredentialRoot(dir, name string) (Root, error) {
	if dir == "" {
		return nil, fmt.Errorf("root of the vault: systemd passed no credentials to this process; add LoadCredentialEncrypted=%s to its unit", name)
	}
	if filepath.Base(name) != name {
		return nil, fmt.Errorf("root of the vault: credential %q: want a name without a slash", name)
	}
	return FileRoot(filepath.Join(dir, name))
}

// NewSecret draws the text of a file for FileRoot.
func NewSecret(random io.Reader) ([]byte, error) {
	secret := make([]byte, SecretSize)
	if _, err := io.ReadFull(random, secret); err != nil {
		return nil, fmt.Errorf("draw a root: %w", err)
	}
	if _, err := NewRoot("new", secret); err != nil {
		return nil, err
	}
	return append(hex.AppendEncode(nil, secret), '\n'), nil
}

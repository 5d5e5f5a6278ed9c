// Package vault keeps keys at rest: its output is sealed, and may be in any file, store or backup.
//
// A vault has its own random key, which seals each record by AES-256-GCM. Each record is bound to the vault, to its name
// and to its epoch: a record that was changed, truncated or put in the place of another does not open. A Root wraps the key
// of the vault, and the header holds the result. So another root needs a new header (Rewrap), and another key of the vault
// needs all records to be sealed again (Rekey).
//
// It cannot detect that the whole state was replaced by an older one. Then devices have keys that the state does not know,
// and the escrow kit has to help.
package vault

import (
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
)

const (
	version = 1
	// maxSealed bounds a sealed record as text.
	maxSealed = 8 << 10
	// maxHeader bounds a header.
	maxHeader = 16 << 10
	keySize   = 32
)

// Error names the record that does not open, the reason, and the remedy.
type Error struct {
	Record string // "the header", or the name of a record
	Why    string
	Do     string
}

func (e *Error) Error() string {
	return fmt.Sprintf("vault: %s: %s; %s", e.Record, e.Why, e.Do)
}

// header is the stored form of a vault.
type header struct {
	Version int          `json:"version"`
	ID      string       `json:"id"` // of the vault: 32 hexadecimal digits
	Root    string       `json:"root"`
	Keys    []wrappedKey `json:"keys"` // the last one seals
}

type wrappedKey struct {
	Number  uint32 `json:"number"`
	Wrapped []byte `json:"wrapped"`
}

// Vault seals and opens records. It may be used by several goroutines, but for
// Rewrap, Rekey and Forget. Printed it shows nothing.
type Vault struct {
	random io.Reader
	head   header
	keys   map[uint32]cipher.AEAD
	raw    map[uint32]*box
}

// box hides the bytes of a key from fmt behind two pointers.
type box struct{ b **[keySize]byte }

func (b *box) bytes() []byte { return (**b.b)[:] }

// Create makes a vault under a root.
func Create(root Root, random io.Reader) (*Vault, error) {
	id := make([]byte, 16)
	if _, err := io.ReadFull(random, id); err != nil {
		return nil, fmt.Errorf("vault: draw its name: %w", err)
	}
	v := &Vault{
		random: random, head: header{Version: version, ID: hex.EncodeToString(id)},
		keys: make(map[uint32]cipher.AEAD), raw: make(map[uint32]*box),
	}
	if err := v.Rekey(root); err != nil {
		return nil, err
	}
	return v, nil
}

// Open opens a vault by its header.
func Open(head []byte, root Root, random io.Reader) (*Vault, error) {
	v := &Vault{random: random, keys: make(map[uint32]cipher.AEAD), raw: make(map[uint32]*box)}
	broken := &Error{"the header", "it is not one of this program", "restore it from a backup, or recover the keys from the escrow kit"}
	if len(head) > maxHeader || json.Unmarshal(head, &v.head) != nil {
		return nil, broken
	}
	h := &v.head
	if h.Version > version {
		return nil, &Error{"the header", fmt.Sprintf("it is of version %d, and this program knows %d", h.Version, version), "install a newer one"}
	}
	if id, err := hex.DecodeString(h.ID); err != nil || len(id) != 16 || h.Version != version || len(h.Keys) == 0 || len(h.Keys) > 8 {
		return nil, broken
	}
	for _, k := range h.Keys {
		plain, err := root.Unwrap(h.context(k.Number), k.Wrapped)
		if err != nil {
			return nil, &Error{
				"the header", fmt.Sprintf("root %s does not open it (%v)", root.Name(), err),
				fmt.Sprintf("it was wrapped under root %s: name that one, or recover the keys from the escrow kit", h.Root),
			}
		}
		if err := v.hold(k.Number, plain); err != nil {
			return nil, broken
		}
	}
	return v, nil
}

func (h *header) context(number uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte("portcullis vault key\x00"+h.ID+"\x00"), number)
}

func (v *Vault) hold(number uint32, plain []byte) error {
	if len(plain) != keySize {
		return errors.New("a key of the vault has the wrong size")
	}
	aead, err := newAEAD(plain)
	if err != nil {
		return err
	}
	own := (*[keySize]byte)(plain)
	v.keys[number], v.raw[number] = aead, &box{&own}
	return nil
}

// Header returns the data of the vault that has to be stored. It changes with Rewrap, Rekey and Forget.
func (v *Vault) Header() []byte {
	b, err := json.Marshal(v.head)
	if err != nil {
		panic(err) // strings, numbers and bytes
	}
	return b
}

// ID names the vault; it never changes.
func (v *Vault) ID() string { return v.head.ID }

// Rewrap puts the vault under another root. The records do not change. An attacker that had the old root and the old header
// had the vault's keys: after a theft, Rekey and rotate all keys.
func (v *Vault) Rewrap(root Root) error {
	next := header{Version: v.head.Version, ID: v.head.ID, Root: root.Name()}
	for _, k := range v.head.Keys {
		w, err := root.Wrap(v.random, v.head.context(k.Number), v.raw[k.Number].bytes())
		if err != nil {
			return fmt.Errorf("vault: wrap under root %s: %w", root.Name(), err)
		}
		next.Keys = append(next.Keys, wrappedKey{k.Number, w})
	}
	v.head = next
	return nil
}

// Rekey creates another key of the vault, which seals from now on. Records sealed before still open until Forget. Store the
// header first, then seal all records again, then call Forget.
func (v *Vault) Rekey(root Root) error {
	number := uint32(1)
	if n := len(v.head.Keys); n == 8 {
		return errors.New("vault: it has 8 keys; seal all records again and forget the old ones first")
	} else if n > 0 {
		number = v.head.Keys[n-1].Number + 1
	}
	plain := make([]byte, keySize)
	if _, err := io.ReadFull(v.random, plain); err != nil {
		return fmt.Errorf("vault: draw a key: %w", err)
	}
	if err := v.hold(number, plain); err != nil {
		return err
	}
	v.head.Keys = append(v.head.Keys, wrappedKey{Number: number})
	return v.Rewrap(root)
}

// Forget drops all keys of the vault but the last. Records that were not sealed again do not open any more.
func (v *Vault) Forget() {
	last := v.head.Keys[len(v.head.Keys)-1]
	for _, k := range v.head.Keys {
		if k.Number != last.Number {
			delete(v.keys, k.Number)
			delete(v.raw, k.Number)
		}
	}
	v.head.Keys = []wrappedKey{last}
}

// Seal seals a record under a name and an epoch, as text of letters, digits, "-",
// "_" and ".".
func (v *Vault) Seal(name string, epoch uint32, plain []byte) (string, error) {
	number := v.head.Keys[len(v.head.Keys)-1].Number
	sealed, err := seal(v.keys[number], v.random, v.context(name, epoch), plain)
	if err != nil {
		return "", fmt.Errorf("vault: seal %s: %w", name, err)
	}
	return fmt.Sprintf("%d.%d.%d.%s", version, number, epoch, base64.RawURLEncoding.EncodeToString(sealed)), nil
}

// Open opens a record by the name under which it was sealed.
func (v *Vault) Open(name, sealed string) (plain []byte, epoch uint32, err error) {
	const restore = "restore it from a backup, or recover the key from the escrow kit"
	parts := strings.Split(sealed, ".")
	if len(sealed) > maxSealed || len(parts) != 4 {
		return nil, 0, &Error{name, "it is cut short, or no sealed record", restore}
	}
	var numbers [3]uint32
	for i := range numbers {
		n, err := strconv.ParseUint(parts[i], 10, 32)
		if err != nil || strconv.FormatUint(n, 10) != parts[i] {
			return nil, 0, &Error{name, "it is cut short, or no sealed record", restore}
		}
		numbers[i] = uint32(n)
	}
	if numbers[0] != version {
		return nil, 0, &Error{name, fmt.Sprintf("it is of version %d, and this program knows %d", numbers[0], version), "install a newer one"}
	}
	aead := v.keys[numbers[1]]
	if aead == nil {
		return nil, 0, &Error{name, fmt.Sprintf("it was sealed by key %d of a vault, which this one does not have", numbers[1]), restore}
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(parts[3])
	if err != nil {
		return nil, 0, &Error{name, "it is cut short, or no sealed record", restore}
	}
	if plain, err = open(aead, v.context(name, numbers[2]), b); err != nil {
		return nil, 0, &Error{name, "it was changed, cut short, or is the record of another device, epoch or vault", restore}
	}
	return plain, numbers[2], nil
}

func (v *Vault) context(name string, epoch uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte("portcullis vault record\x00"+v.head.ID+"\x00"+name+"\x00"), epoch)
}

func (v *Vault) String() string             { return "vault " + v.head.ID }
func (v *Vault) GoString() string           { return v.String() }
func (v *Vault) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, v.String()) }

// LogValue implements slog.LogValuer.
func (v *Vault) LogValue() slog.Value { return slog.StringValue(v.String()) }

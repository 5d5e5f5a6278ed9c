package results

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/json"
	"fmt"
	"time"

	"portcullis/api/store"
	"portcullis/attest/result"
	"portcullis/attest/result/token"
)

const (
	// keyring is the key of the one record.
	keyring = "keyring"

	// MaxAge is how long whoever asks for the public keys may keep them.
	MaxAge = 5 * time.Minute
	// publishAhead is how long a key is published before it signs: twice what others
	// keep the keys for.
	publishAhead = 2 * MaxAge
	// publishAfter is how long a key is published after the next one signs: the life of
	// its last token, and what clocks may differ.
	publishAfter = result.MaxLife + 5*time.Minute
	// maxKeys bounds the keys that are published, well below token.MaxKeys.
	maxKeys = 8
)

// ring is the record: a vault, and the keys that are sealed in it, the oldest first.
type ring struct {
	Vault json.RawMessage `json:"vault"` // header, wrapped under the root
	Next  uint32          `json:"next"`  // number of the next key
	Keys  []key           `json:"keys"`
}

// key is a key that signs results.
type key struct {
	Number  uint32    `json:"number"` // counts keys; bound to what is sealed
	ID      string    `json:"kid"`
	Public  []byte    `json:"public"` // uncompressed point of P-256
	Sealed  string    `json:"sealed"` // private scalar, 32 bytes
	Created time.Time `json:"created"`
	Signs   time.Time `json:"signs"` // from then on, until the next one does
}

func rings() store.Collection[ring] { return store.NewCollection[ring]("result-keys", 1) }

// name is what a key is sealed under.
func (k *key) name() string { return fmt.Sprintf("result-key/%d", k.Number) }

// public reads the public half.
func (k *key) public() (*ecdsa.PublicKey, error) {
	p, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), k.Public)
	if err != nil {
		return nil, fmt.Errorf("result key %s: %w", k.ID, err)
	}
	return p, nil
}

// signing gives the index of the key that signs at a time, -1 if none does.
func (r *ring) signing(now time.Time) int {
	for i := len(r.Keys) - 1; i >= 0; i-- {
		if !now.Before(r.Keys[i].Signs) {
			return i
		}
	}
	return -1
}

// until gives when key i is published no longer; zero for the newest.
func (r *ring) until(i int) time.Time {
	if i+1 >= len(r.Keys) {
		return time.Time{}
	}
	return r.Keys[i+1].Signs.Add(publishAfter)
}

// prune drops keys that are published no longer.
func (r *ring) prune(now time.Time) {
	for len(r.Keys) > 1 && !now.Before(r.until(0)) {
		r.Keys = r.Keys[1:]
	}
}

// published gives the public halves at a time, the newest first.
func (r *ring) published(now time.Time) (*token.Keys, error) {
	out := new(token.Keys)
	for i := len(r.Keys) - 1; i >= 0; i-- {
		if end := r.until(i); !end.IsZero() && !now.Before(end) {
			continue
		}
		p, err := r.Keys[i].public()
		if err == nil {
			err = out.Add(p)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

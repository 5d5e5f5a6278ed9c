package inventory

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"time"

	"portcullis/api/refusal"
	"portcullis/api/store"
)

// DeniedEK is an EK that was a known host's and was replaced.
type DeniedEK struct {
	Time   time.Time `json:"time"`
	Host   string    `json:"host"` // that had it
	Ticket string    `json:"ticket"`
	By     string    `json:"by"` // who confirmed it
}

// DeniedEKs holds the EKs that were replaced, by their digests.
func DeniedEKs() store.Collection[DeniedEK] {
	return store.NewCollection[DeniedEK]("inventory/denied", 1)
}

// NoEK is an EK digest that no TPM has.
var NoEK = strings.Repeat("0", 2*sha256.Size)

// Find returns a host, and the revision of its record.
func Find(ctx context.Context, r store.Reader, id string) (Host, int64, error) {
	if !ValidHostID(id) {
		return Host{}, 0, NoHost(id)
	}
	rec, err := Hosts().Get(ctx, r, id)
	if errors.Is(err, store.ErrNotFound) {
		return Host{}, 0, NoHost(id)
	}
	return rec.Value, rec.Modified, err
}

// NoHost is the refusal of a host that is not in inventory.
func NoHost(id string) *refusal.Error {
	return refusal.New(refusal.NotFound, "host_unknown", "list hosts to see their ids, or import the host's inventory", "no host %q in inventory", refusal.Clip(id))
}

package idempotency

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"portcullis/api/limit"
	"portcullis/api/refusal"
	"portcullis/api/store"
)

// Limits of what is kept.
const (
	MaxKey  = 128            // characters of a key
	MaxBody = 16 << 10       // bytes of an answer; a longer one is not kept, only that there was one
	keptFor = 24 * time.Hour // at least
	// bucket is how long records share a lease of the store: a lease for each would cost more than the record.
	bucket = time.Hour
)

// Codes of refusals.
const (
	CodeReused  = "idempotency_key_reused"  // 409: the key named another request before
	CodePending = "idempotency_key_pending" // 409: the first request has no answer yet, or never will
	CodeNotKept = "idempotency_answer_lost" // 409: the first request was carried out, and its answer was too long to be kept
)

// DefaultRate bounds the keys of a credential: 20,000 at once, 86,400 a day. That is about 80 MB of the store.
func DefaultRate() limit.Rate { return limit.Rate{PerSecond: 1, Burst: 20_000} }

// Request names a request.
type Request struct {
	Caller      string            // name of the credential
	Key         string            // 1 to MaxKey characters; see ValidKey
	Fingerprint [sha256.Size]byte // of all that makes the request what it is
}

// record returns the key of the request's record. It has a fixed length and shows neither name nor key.
func (r *Request) record() string {
	sum := sha256.Sum256([]byte(r.Caller + "\x00" + r.Key))
	return hex.EncodeToString(sum[:])
}

// Answer is the answer to a request as it was sent.
type Answer struct {
	Status int               `json:"status"`           // of HTTP
	Header map[string]string `json:"header,omitempty"` // those that belong to the answer
	Body   []byte            `json:"body,omitempty"`
}

type entry struct {
	Fingerprint string    `json:"fingerprint"` // 64 hex digits
	At          time.Time `json:"at"`
	Answer      *Answer   `json:"answer,omitempty"`   // nil: none yet
	TooLong     bool      `json:"too_long,omitempty"` // the body is not kept
}

func entries() store.Collection[entry] { return store.NewCollection[entry]("idempotency", 1) }

// ValidKey reports whether s can be a key: 1 to MaxKey printable characters of ASCII, without a space.
func ValidKey(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != "" && len(s) <= MaxKey
}

// Keeper keeps first answers in the store, so that each instance knows them. It is safe for concurrent use.
type Keeper struct {
	store *store.Store
	now   func() time.Time
	rate  *limit.Limiter[string]

	mu    sync.Mutex
	lease store.Lease
	since time.Time // when the lease was granted; zero: there is none
}

// New returns a keeper. Each credential may use new keys at the given rate.
func New(s *store.Store, now func() time.Time, rate limit.Rate) *Keeper {
	return &Keeper{store: s, now: now, rate: limit.New[string](rate)}
}

// Begin records that a request begins. It returns the first answer if there is one already, and nil if the request is to be
// carried out: Finish or Forget follows then. The error is a *refusal.Error if the key names another request, or one without an answer.
func (k *Keeper) Begin(ctx context.Context, r *Request) (*Answer, error) {
	// Most keys are new, and reading costs less than a lease and a commit.
	if first, err := k.first(ctx, k.store, r); first != nil || err != nil {
		return first, err
	}
	if !k.rate.Allow(r.Caller, k.now()) {
		return nil, refusal.New(refusal.Limited, "rate_limited", "wait a second, then try again; leave Idempotency-Key out where a repetition does no harm",
			"token %s used %d keys at once, and more than %g a second", r.Caller, k.rate.Rate().Burst, k.rate.Rate().PerSecond)
	}
	lease, err := k.leased(ctx)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	var first *Answer
	_, err = k.store.Update(ctx, func(tx *store.Tx) error {
		if first, err = k.first(ctx, tx, r); first != nil || err != nil {
			return err
		}
		return entries().PutLeased(tx, r.record(), entry{Fingerprint: hex.EncodeToString(r.Fingerprint[:]), At: k.now()}, lease)
	})
	return first, refusal.Explain(err)
}

// first returns the answer to the request with the key of r, nil if there was no such request.
func (k *Keeper) first(ctx context.Context, from store.Reader, r *Request) (*Answer, error) {
	rec, err := entries().Get(ctx, from, r.record())
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, refusal.Explain(err)
	}
	e := &rec.Value
	switch {
	case e.Fingerprint != hex.EncodeToString(r.Fingerprint[:]):
		return nil, refusal.New(refusal.Conflict, CodeReused, "use a new Idempotency-Key for each request; the same one only to send the same request again",
			"Idempotency-Key %s named another request at %s", refusal.Clip(r.Key), stamp(e.At))
	case e.Answer == nil:
		return nil, refusal.New(refusal.Conflict, CodePending, "wait a minute; if it has no answer then, look at the object and use a new Idempotency-Key",
			"the request with Idempotency-Key %s, sent at %s, has no answer: it is under way, or its instance ended", refusal.Clip(r.Key), stamp(e.At))
	case e.TooLong:
		return nil, refusal.New(refusal.Conflict, CodeNotKept, "look at the object",
			"the request with Idempotency-Key %s was answered at %s with %d; its answer was too long to be kept", refusal.Clip(r.Key), stamp(e.At), e.Answer.Status)
	}
	return e.Answer, nil
}

// Finish records the answer to a request that Begin let begin.
func (k *Keeper) Finish(ctx context.Context, r *Request, a Answer) error {
	lease, err := k.leased(ctx)
	if err != nil {
		return fmt.Errorf("keep the answer to a request: %w", err)
	}
	e := entry{Fingerprint: hex.EncodeToString(r.Fingerprint[:]), At: k.now(), Answer: &a, TooLong: len(a.Body) > MaxBody}
	if e.TooLong {
		a.Body = nil
	}
	return k.update(ctx, func(tx *store.Tx) error { return entries().PutLeased(tx, r.record(), e, lease) })
}

// Forget removes the record of a request that Begin let begin and that changed nothing, so that it can be sent again.
func (k *Keeper) Forget(ctx context.Context, r *Request) error {
	return k.update(ctx, func(tx *store.Tx) error {
		entries().Delete(tx, r.record())
		return nil
	})
}

func (k *Keeper) update(ctx context.Context, fn func(*store.Tx) error) error {
	if _, err := k.store.Update(ctx, fn); err != nil {
		return fmt.Errorf("keep the answer to a request: %w", err)
	}
	return nil
}

// leased returns a lease that lasts for keptFor at least.
func (k *Keeper) leased(ctx context.Context) (store.Lease, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	if age := now.Sub(k.since); !k.since.IsZero() && age >= 0 && age < bucket {
		return k.lease, nil
	}
	l, err := k.store.NewLease(ctx, keptFor+2*bucket)
	if err != nil {
		return 0, err
	}
	k.lease, k.since = l, now
	return l, nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

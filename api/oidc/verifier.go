package oidc

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"portcullis/api/credential"
)

// Bounds of the work of a Verifier.
const (
	maxVerified = 4096            // tokens that it remembers
	maxWaiting  = 64              // requests that wait for keys, of all sources together
	waitFor     = 3 * time.Second // of one of them
)

// Verifier verifies tokens of issuers. Its methods are safe for concurrent use.
type Verifier struct {
	providers map[string]*provider // by iss
	waiting   chan struct{}        // has an element for each request that waits for keys

	mu       sync.Mutex
	verified map[[sha256.Size]byte]verified
}

// verified is a token that was verified with keys of a generation.
type verified struct {
	owner      credential.Principal
	by         *provider
	generation int
}

// Turn is what Authenticate waits for before it looks at a token that is not verified. It reports whether there was one in time.
type Turn func(ctx context.Context) (leave func(), ok bool)

// New makes a Verifier of issuers without problems. Its tokens are refused until Run has read their keys.
func New(issuers []Issuer, log *slog.Logger, now func() time.Time) (*Verifier, error) {
	return newVerifier(issuers, log, now, func(i *Issuer) fetcher { return newFetcher(i.TLS) })
}

func newVerifier(issuers []Issuer, log *slog.Logger, now func() time.Time, fetch func(*Issuer) fetcher) (*Verifier, error) {
	v := &Verifier{
		providers: map[string]*provider{}, waiting: make(chan struct{}, maxWaiting),
		verified: map[[sha256.Size]byte]verified{},
	}
	if len(issuers) > MaxIssuers {
		return nil, fmt.Errorf("%d issuers of tokens, at most %d", len(issuers), MaxIssuers)
	}
	for _, i := range issuers {
		if p := i.Problems(); len(p) > 0 {
			return nil, fmt.Errorf("issuer %q: %s: %s", i.Name, p[0].Field, p[0].Text)
		}
		if v.providers[i.URL] != nil {
			return nil, fmt.Errorf("issuer %q: %s is there twice", i.Name, i.URL)
		}
		v.providers[i.URL] = &provider{
			Issuer: i, fetch: fetch(&i), log: log, now: now,
			wanted: make(chan struct{}, 1), next: make(chan struct{}),
		}
	}
	return v, nil
}

// Run reads keys of the providers until ctx ends.
func (v *Verifier) Run(ctx context.Context) {
	var group sync.WaitGroup
	for _, p := range v.providers {
		group.Go(func() { p.follow(ctx) })
	}
	group.Wait()
}

// Known returns the owner of a token that was verified before and is still good. It costs a digest and no more.
func (v *Verifier) Known(token string, now time.Time) (credential.Principal, bool) {
	digest := sha256.Sum256([]byte(token))
	v.mu.Lock()
	e, ok := v.verified[digest]
	v.mu.Unlock()
	if !ok {
		return credential.Principal{}, false
	}
	if _, generation, err := e.by.current(now); err != nil || generation != e.generation || e.owner.Ended(now) {
		v.mu.Lock()
		delete(v.verified, digest)
		v.mu.Unlock()
		return credential.Principal{}, false
	}
	return e.owner, true
}

// Authenticate returns the owner of a token. Every refusal is a *Refused. It takes a turn while it verifies, and none while it
// waits for keys.
func (v *Verifier) Authenticate(ctx context.Context, token string, now time.Time, turn Turn) (credential.Principal, error) {
	if who, ok := v.Known(token, now); ok {
		return who, nil
	}
	who, err := v.inTurn(ctx, token, now, turn)
	r := asRefused(err)
	if r == nil || r.pending == nil || !v.wait(ctx, r.pending) {
		return who, err
	}
	return v.inTurn(ctx, token, now, turn)
}

func (v *Verifier) inTurn(ctx context.Context, token string, now time.Time, turn Turn) (credential.Principal, error) {
	leave, ok := turn(ctx)
	if !ok {
		return credential.Principal{}, &Refused{Busy: true, Detail: "too many requests without a known token are under way", Hint: "try again"}
	}
	defer leave()
	return v.verify(token, now)
}

// wait waits until keys were read again, and reports whether they were.
func (v *Verifier) wait(ctx context.Context, read <-chan struct{}) bool {
	select {
	case v.waiting <- struct{}{}:
	default:
		return false
	}
	defer func() { <-v.waiting }()
	timer := time.NewTimer(waitFor)
	defer timer.Stop()
	select {
	case <-read:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// verify verifies a token, and remembers a good one.
func (v *Verifier) verify(token string, now time.Time) (who credential.Principal, _ error) {
	u, err := parse(token)
	if err != nil {
		return who, err
	}
	p := v.providers[u.claims.Issuer]
	if p == nil {
		return who, refuse("its issuer %.128q is none of those that are accepted here", "log in at an identity provider that the configuration of the service names at oidc", u.claims.Issuer)
	}
	keys, generation, err := p.current(now)
	if err != nil {
		return who, err
	}
	switch err := u.verify(keys); {
	case errors.Is(err, errUnknownKey):
		return who, &Refused{
			Detail: fmt.Sprintf("it is signed with a key of the id %.64q, which the issuer %s has not", u.header.Key, p.Name),
			Hint:   "try again in some seconds: the keys are being read again", pending: p.want(),
		}
	case err != nil:
		return who, err
	}
	if err := u.claims.check(&p.Issuer, now); err != nil {
		return who, err
	}
	if who, err = p.owner(&u.claims); err != nil {
		return credential.Principal{}, err
	}
	v.remember(token, verified{who, p, generation})
	return who, nil
}

// remember keeps a verified token, in place of any other one where there are as many as may be.
func (v *Verifier) remember(token string, e verified) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.verified) >= maxVerified {
		for other := range v.verified {
			delete(v.verified, other)
			break
		}
	}
	v.verified[sha256.Sum256([]byte(token))] = e
}

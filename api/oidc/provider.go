package oidc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4/json"

	"portcullis/api/outgoing"
)

// How keys of a provider are kept.
const (
	// RefreshEvery is how often they are read again, so that a key which is published ahead is known when it signs first.
	RefreshEvery = 5 * time.Minute
	// RefreshGap is the least time between two readings, however many callers want one.
	RefreshGap = 10 * time.Second
	// KeysLife is how long keys count after they were read last. It outlives most tokens that were made before the provider went
	// away, and bounds for how long a key counts that the provider took back while it could not be reached.
	KeysLife = 4 * time.Hour

	retryAfter  = 30 * time.Second // a reading that failed
	fetchWithin = 10 * time.Second
)

// fetcher reads a document of at most so many bytes.
type fetcher func(ctx context.Context, url string, most int64) ([]byte, error)

// provider is an issuer, and what is known of its keys.
type provider struct {
	Issuer

	fetch  fetcher
	log    *slog.Logger
	now    func() time.Time
	wanted chan struct{} // has a token when a key is wanted that is not known

	mu         sync.Mutex
	keys       *keySet       // nil: never read
	generation int           // of keys: another one where they changed
	read       time.Time     // when they were read last
	failed     error         // of the last reading
	next       chan struct{} // closed at the end of the next reading
}

// metadata is what is read of a provider's discovery document.
type metadata struct {
	Issuer  string `json:"issuer"`
	KeysURL string `json:"jwks_uri"`
}

// parseMetadata reads a discovery document, and returns where the keys are.
func parseMetadata(b []byte, issuer string) (keysURL string, _ error) {
	var m metadata
	if err := json.Unmarshal(b, &m); err != nil {
		return "", fmt.Errorf("its metadata is no JSON object: %w", err)
	}
	if m.Issuer != issuer {
		return "", fmt.Errorf("its metadata is of the issuer %.128q: write the key issuer just so, or ask its operator", m.Issuer)
	}
	if err := checkURL(m.KeysURL); err != nil {
		return "", fmt.Errorf("its jwks_uri %.128q: %w", m.KeysURL, err)
	}
	return m.KeysURL, nil
}

// load reads metadata and keys.
func (p *provider) load(ctx context.Context) (*keySet, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchWithin)
	defer cancel()
	doc, err := p.fetch(ctx, strings.TrimSuffix(p.URL, "/")+"/.well-known/openid-configuration", maxMetadata)
	if err != nil {
		return nil, fmt.Errorf("read its metadata: %w", err)
	}
	from, err := parseMetadata(doc, p.URL)
	if err != nil {
		return nil, err
	}
	set, err := p.fetch(ctx, from, maxKeySet)
	if err != nil {
		return nil, fmt.Errorf("read its keys: %w", err)
	}
	return parseKeys(set)
}

// refresh reads the keys, and keeps those it has where that fails.
func (p *provider) refresh(ctx context.Context) error {
	keys, err := p.load(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.next)
	p.next = make(chan struct{})
	was := p.failed
	p.failed = err
	if err != nil {
		if was == nil || was.Error() != err.Error() {
			p.log.Warn("keys of the identity provider can't be read", "issuer", p.Name, "url", p.URL, "error", err, "keys_read", p.read)
		}
		return err
	}
	p.read = p.now()
	if !p.keys.equal(keys) {
		p.keys = keys
		p.generation++
		p.log.Info("the identity provider has other keys than before", "issuer", p.Name, "url", p.URL, "keys", len(keys.keys))
	} else if was != nil {
		p.log.Info("keys of the identity provider can be read again", "issuer", p.Name, "url", p.URL)
	}
	return nil
}

// follow reads the keys now and again until ctx ends.
func (p *provider) follow(ctx context.Context) {
	for {
		tried := p.now()
		wait := RefreshEvery
		if p.refresh(ctx) != nil {
			wait = retryAfter
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			continue
		case <-p.wanted:
		}
		timer.Stop()
		timer.Reset(max(0, min(RefreshGap, tried.Add(RefreshGap).Sub(p.now()))))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// want has the keys read again, and returns what is closed then.
func (p *provider) want() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.wanted <- struct{}{}:
	default:
	}
	return p.next
}

// current returns the keys that count at now, and their generation.
func (p *provider) current(now time.Time) (*keySet, int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.keys == nil:
		return nil, 0, &Refused{
			Detail: "the keys of the issuer " + p.Name + " were not read yet", Hint: "try again in a minute; if that lasts, look into the log of the service",
			pending: p.next,
		}
	case now.Sub(p.read) > KeysLife:
		return nil, 0, refuse("the keys of the issuer %s were read at %s last, and count for %v", "have this service reach the provider again; its log says what fails. Meanwhile use a token of the tokens file", p.Name, stamp(p.read), KeysLife)
	}
	return p.keys, p.generation, nil
}

// newFetcher returns what reads documents over HTTPS. It follows no redirect.
func newFetcher(config *tls.Config) fetcher {
	client := outgoing.Client(&http.Transport{
		TLSClientConfig: config, Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, DisableCompression: true,
	}, fetchWithin)
	return func(ctx context.Context, from string, most int64) ([]byte, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Accept", "application/json")
		resp, err := client.Do(req)
		if e, ok := errors.AsType[*url.Error](err); ok {
			return nil, fmt.Errorf("%.128s: %w", from, e.Err)
		}
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("%.128s answers %s", from, resp.Status)
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
		if err != nil {
			return nil, fmt.Errorf("%.128s: %w", from, err)
		}
		if int64(len(body)) > most {
			return nil, fmt.Errorf("%.128s answers with more than %d bytes", from, most)
		}
		return body, nil
	}
}

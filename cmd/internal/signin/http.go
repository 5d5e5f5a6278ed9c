package signin

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// Bounds of what a provider answers.
const (
	maxAnswer    = 256 << 10 // bytes
	maxHeader    = 64 << 10  // bytes
	answerWithin = 15 * time.Second
)

// roundTrip is a function as http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// client returns a client whose requests end with ctx, and whose answers are bounded. The library for OAuth starts some requests
// without a context, and reads on for as long as an answer lasts; both is held here.
func (p *Provider) client(ctx context.Context) *http.Client {
	return &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		within, cancel := context.WithTimeout(ctx, answerWithin)
		defer cancel()
		defer context.AfterFunc(r.Context(), cancel)()
		r = r.Clone(within)
		r.Header.Set("Accept", "application/json")
		resp, err := p.base.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		if resp.StatusCode >= 300 && resp.StatusCode < 400 {
			return nil, &Error{
				Detail: fmt.Sprintf("%s redirects to another address (%d), which is not followed", placeOf(r.URL), resp.StatusCode),
				Hint:   "have the operator of the service compare oidc.issuer with the issuer of the provider",
			}
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
		if err != nil {
			return nil, fmt.Errorf("read the answer of %s: %w", placeOf(r.URL), err)
		}
		if len(body) > maxAnswer {
			return nil, &Error{Detail: fmt.Sprintf("%s answers with more than %d bytes", placeOf(r.URL), maxAnswer), Hint: "ask the operator of the provider"}
		}
		resp.Body = io.NopCloser(bytes.NewReader(body))
		return resp, nil
	})}
}

// placeOf returns a URL without its query, which may have a secret.
func placeOf(u *url.URL) string { return fmt.Sprintf("%.256s", u.Scheme+"://"+u.Host+u.Path) }

// within returns a context in which the library for OAuth asks this provider.
func (p *Provider) within(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, p.client(ctx))
}

// ask sends one request, with a form unless that is nil, and returns the answer.
func (p *Provider) ask(ctx context.Context, method, to string, form url.Values) (status int, body []byte, _ error) {
	var in io.Reader
	if form != nil {
		in = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(ctx, method, to, in)
	if err != nil {
		return 0, nil, err
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := p.client(ctx).Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

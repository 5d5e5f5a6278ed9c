package signin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// Bounds of a device authorization.
const (
	signInWithin  = 15 * time.Minute // whatever longer time the provider returns
	mostInterval  = 60               // seconds between two polls
	mostUserCode  = 64               // bytes
	mostDevice    = 4 << 10          // bytes
	defaultPoll   = 5                // seconds, RFC 8628, section 3.2
	mostTransient = 3                // failures to reach the provider in one sign-in
)

// Code is what a person is shown.
type Code struct {
	URL      string    // to open in any browser
	Complete string    // the same with the code in it, "" without one
	Code     string    // to enter there
	Expires  time.Time // of the code
}

// Device signs a person in with a code that is entered in any browser. It calls show once.
func (p *Provider) Device(ctx context.Context, show func(*Code)) (*Tokens, error) {
	const doing = "sign in with a code"
	if p.meta.Device == "" {
		return nil, &Error{Detail: "the identity provider has no device authorization (RFC 8628)", Hint: "portcullis login --browser"}
	}
	device, err := p.authorizeDevice(ctx, doing)
	if err != nil {
		return nil, err
	}
	code, err := checkDevice(device, time.Now())
	if err != nil {
		return nil, err
	}
	show(code)
	until, cancel := context.WithDeadline(ctx, code.Expires)
	defer cancel()
	for failures := 0; ; {
		answer, err := p.config().DeviceAccessToken(p.within(until), device)
		if err == nil {
			return p.tokens(answer, "", "")
		}
		if !time.Now().Before(code.Expires) && ctx.Err() == nil {
			return nil, &Error{Detail: "the code ended before it was entered and approved", Hint: hints["expired_token"]}
		}
		if failures++; !transient(err) || failures > mostTransient {
			return nil, p.failed(ctx, doing, err)
		}
		device.Interval = min(2*max(device.Interval, defaultPoll), mostInterval) // RFC 8628, section 3.5
	}
}

// authorizeDevice asks for a code. The library's own request for it panics where the answer is null.
func (p *Provider) authorizeDevice(ctx context.Context, doing string) (*oauth2.DeviceAuthResponse, error) {
	form := url.Values{"client_id": {p.settings.ClientID}}
	if len(p.settings.Scopes) > 0 {
		form.Set("scope", strings.Join(p.settings.Scopes, " "))
	}
	status, body, err := p.ask(ctx, http.MethodPost, p.meta.Device, form)
	if err != nil {
		return nil, p.failed(ctx, doing, err)
	}
	if status < 200 || status > 299 {
		return nil, refusedBy(doing, status, body)
	}
	return parseDevice(body, time.Now()), nil
}

// parseDevice reads the answer to a device authorization. One that can't be read is one without a code, and an end that is later than
// signInWithin is none.
func parseDevice(body []byte, now time.Time) *oauth2.DeviceAuthResponse {
	var d struct {
		DeviceCode string      `json:"device_code"`
		UserCode   string      `json:"user_code"`
		URI        string      `json:"verification_uri"`
		URL        string      `json:"verification_url"` // as some providers spell it
		Complete   string      `json:"verification_uri_complete"`
		Life       json.Number `json:"expires_in"`
		Interval   json.Number `json:"interval"`
	}
	if json.Unmarshal(body, &d) != nil {
		return &oauth2.DeviceAuthResponse{}
	}
	out := &oauth2.DeviceAuthResponse{
		DeviceCode: d.DeviceCode, UserCode: d.UserCode, VerificationURI: cmp.Or(d.URI, d.URL), VerificationURIComplete: d.Complete,
	}
	if life, err := d.Life.Int64(); err == nil && life > 0 && life < int64(signInWithin/time.Second) {
		out.Expiry = now.Add(time.Duration(life) * time.Second)
	}
	if d.Interval != "" {
		var err error
		if out.Interval, err = d.Interval.Int64(); err != nil {
			out.Interval = -1 // refused
		}
	}
	return out
}

// checkDevice checks the answer to a device authorization, and returns what the person is shown.
func checkDevice(d *oauth2.DeviceAuthResponse, now time.Time) (*Code, error) {
	hint := "ask the operator of the provider; --browser is another way to sign in"
	switch {
	case d.DeviceCode == "" || len(d.DeviceCode) > mostDevice:
		return nil, &Error{Detail: fmt.Sprintf("the identity provider returns no device code of at most %d bytes", mostDevice), Hint: hint}
	case d.UserCode == "" || len(d.UserCode) > mostUserCode || !printable(d.UserCode):
		return nil, &Error{Detail: fmt.Sprintf("the identity provider returns no code of at most %d printable characters to enter", mostUserCode), Hint: hint}
	case checkURL(d.VerificationURI) != nil:
		return nil, &Error{Detail: fmt.Sprintf("the page %s of the identity provider, where the code is to be entered, is no https URL", bounded(d.VerificationURI, 128)), Hint: hint}
	case d.VerificationURIComplete != "" && checkURL(d.VerificationURIComplete) != nil:
		return nil, &Error{Detail: fmt.Sprintf("the page %s of the identity provider, which has the code, is no https URL", bounded(d.VerificationURIComplete, 128)), Hint: hint}
	case d.Interval < 0 || d.Interval > mostInterval:
		return nil, &Error{Detail: fmt.Sprintf("the identity provider wants to be asked each %d s: 0 to %d are possible", d.Interval, mostInterval), Hint: hint}
	}
	if d.Expiry.IsZero() {
		d.Expiry = now.Add(signInWithin)
	}
	return &Code{URL: d.VerificationURI, Complete: d.VerificationURIComplete, Code: d.UserCode, Expires: d.Expiry}, nil
}

// transient reports whether the provider was not reached, or did not answer in time: it may the next time.
func transient(err error) bool {
	if _, ok := errors.AsType[*Error](err); ok {
		return false
	}
	if _, ok := errors.AsType[*url.Error](err); ok {
		return true
	}
	if r, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return r.ErrorCode == "" && r.Response != nil && r.Response.StatusCode >= 500
	}
	return false
}

package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"portcullis/api/outgoing"
)

const (
	sendTimeout = 15 * time.Second // of a request with its answer
	dialTimeout = 5 * time.Second
	maxAnswer   = 16 << 10 // bytes of an answer's body, which is not looked at
	contentType = "application/cloudevents+json"
)

// Target is where requests of a destination go. All but Certificates and Addresses are required.
type Target struct {
	URL          string // CheckURL
	Secret       Secret
	Certificates *tls.Config // nil: authorities of the system, no certificate of a client
	Addresses    Addresses
}

// CheckURL refuses what is no https URL, and one with a password in it.
func CheckURL(text string) error {
	u, fault := outgoing.Judge(text)
	switch {
	case fault == outgoing.Form || u.Scheme != "https":
		return errors.New("want https://HOST[:PORT]/PATH")
	case fault == outgoing.Password:
		return errors.New("a password in a URL gets into logs: the signature shows which service sends a request")
	}
	return nil
}

// Sender sends requests to one server over HTTPS. It follows no redirect and uses no proxy, so that the address that
// is checked is the one that is spoken to.
type Sender struct {
	target Target
	client *http.Client
}

// NewSender makes a Sender. The error is that of CheckURL.
func NewSender(t Target) (*Sender, error) {
	if err := CheckURL(t.URL); err != nil {
		return nil, err
	}
	if t.Secret.IsZero() {
		return nil, errors.New("there is no secret to sign with")
	}
	s := &Sender{target: t}
	dialer := &net.Dialer{Timeout: dialTimeout, ControlContext: s.control}
	s.client = outgoing.Client(&http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: t.Certificates, DisableKeepAlives: true, DisableCompression: true, TLSHandshakeTimeout: dialTimeout,
	}, sendTimeout)
	return s, nil
}

// AnswerError is an answer that is not of 2xx: the server does not have the message.
type AnswerError struct{ Status int }

func (e *AnswerError) Error() string {
	if e.Status >= 300 && e.Status <= 399 {
		return fmt.Sprintf("the server answers %d, a redirect, which is not followed: name the URL that it leads to", e.Status)
	}
	return fmt.Sprintf("the server answers %d %s", e.Status, http.StatusText(e.Status))
}

// AboutMessage reports whether a server does not want this message, and may take others.
func AboutMessage(err error) bool {
	e, ok := errors.AsType[*AnswerError](err)
	if !ok {
		return false
	}
	switch e.Status {
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	default:
		return false
	}
}

// control refuses addresses once a name is resolved, when a connection is about to be opened.
func (s *Sender) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return s.target.Addresses.Check(at.Addr())
}

// Send sends a message once, at a time. Any answer of 2xx means that the server has it. Errors have no path and no query of the
// URL, which may be secrets.
func (s *Sender) Send(ctx context.Context, id string, at time.Time, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.target.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	setHeaders(req.Header, &s.target.Secret, id, at, body)
	resp, err := s.client.Do(req)
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return &AnswerError{resp.StatusCode}
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer)) // the server has the message, however its answer ends
	return nil
}

func setHeaders(h http.Header, secret *Secret, id string, at time.Time, body []byte) {
	h.Set("Content-Type", contentType)
	h.Set("User-Agent", "portcullis")
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, seconds(at))
	h.Set(HeaderSignature, secret.Sign(id, at, body))
}

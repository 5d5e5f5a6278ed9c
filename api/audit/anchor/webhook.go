package anchor

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"portcullis/api/audit/chain"
	"portcullis/api/outgoing"
	"portcullis/fabricsm/ib"
)

// SignatureHeader has the HMAC-SHA-256 of the body of a POST under the shared secret, as "sha256=" and 64 hexadecimal
// digits. A POST that another program repeats says nothing new: an anchor names its entry and time.
const SignatureHeader = "Portcullis-Signature"

// Bounds of answers of web servers, in bytes.
const (
	maxAnswer  = 64 << 10 // to a POST, which is not looked at
	maxAnchors = 4 << 20  // to a GET
)

// WebhookOptions say where a web server is and how it is spoken to.
type WebhookOptions struct {
	URL    string // CheckURL
	TLS    *tls.Config
	Secret ib.SecretText // zero: bodies are not signed
	Reads  bool          // a GET is answered with anchors, as in a file
}

// Webhook is a Sink that sends each anchor to a web server, as the body of a POST over HTTPS. Any answer of 2xx means
// that the server has it; redirects are not followed.
type Webhook struct {
	o      WebhookOptions
	client *http.Client
	name   string
}

// CheckURL refuses what is no https URL, and one with a password in it.
func CheckURL(text string) error {
	u, fault := outgoing.Judge(text)
	switch {
	case fault == outgoing.Form || u.Scheme != "https":
		return errors.New("want https://HOST[:PORT]/PATH")
	case fault == outgoing.Password:
		return errors.New("a password in a URL gets into logs: name a file of a shared secret, or a client certificate")
	}
	return nil
}

// NewWebhook makes a Webhook. The error is that of CheckURL.
func NewWebhook(o WebhookOptions) (*Webhook, error) {
	if err := CheckURL(o.URL); err != nil {
		return nil, err
	}
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, err
	}
	return &Webhook{
		o: o, name: "webhook:https://" + u.Host + u.EscapedPath(), // a query may have a secret in it
		client: outgoing.Client(&http.Transport{TLSClientConfig: o.TLS, Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}, sinkTimeout),
	}, nil
}

// Kind implements Sink.
func (*Webhook) Kind() string { return "webhook" }

// Name implements Sink.
func (w *Webhook) Name() string { return w.name }

// Write implements Sink.
func (w *Webhook) Write(ctx context.Context, a *chain.Anchor) error {
	body, err := a.Line()
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.o.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if !w.o.Secret.IsZero() {
		mac := hmac.New(sha256.New, []byte(w.o.Secret.Reveal()))
		mac.Write(body)
		req.Header.Set(SignatureHeader, "sha256="+hex.EncodeToString(mac.Sum(nil)))
	}
	resp, err := w.do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("the server answers %s", resp.Status)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer))
	return err
}

// do sends a request. Errors have no query of the URL, which may be a secret.
func (w *Webhook) do(req *http.Request) (*http.Response, error) {
	resp, err := w.client.Do(req)
	if e, ok := errors.AsType[*url.Error](err); ok {
		return nil, e.Err
	}
	return resp, err
}

// Reads reports whether the server answers a GET with anchors.
func (w *Webhook) Reads() bool { return w.o.Reads }

// Read implements Reader: it returns what the server answers a GET with, a JSON object on each line. 204 and 404 mean
// that it has none yet.
func (w *Webhook) Read(ctx context.Context) ([]chain.Anchor, error) {
	if !w.o.Reads {
		return nil, nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.o.URL, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := w.do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNoContent, http.StatusNotFound:
		return nil, nil
	default:
		return nil, fmt.Errorf("the server answers %s", resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnchors+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxAnchors {
		return nil, fmt.Errorf("the server answers with more than %d bytes", maxAnchors)
	}
	if len(body) > 0 && body[len(body)-1] != '\n' {
		body = append(body, '\n') // a server need not end the last object with one
	}
	return chain.ReadAnchors(bytes.NewReader(body))
}

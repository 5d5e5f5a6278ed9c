package exits

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"portcullis/api/outgoing"
	v1 "portcullis/api/v1"
	"portcullis/api/webhook"
	"portcullis/fabricsm/ib"
)

const (
	alertsPath  = "/api/v2/alerts"
	postTimeout = 15 * time.Second
	dialTimeout = 5 * time.Second
	maxAnswer   = 16 << 10 // bytes of an answer's body, which is not looked at
	// perRequest is how many alerts a request has: each has some 4 KiB at most, and proxies take 1 MiB by default.
	perRequest = 200
)

// AlertmanagerOptions say where an Alertmanager is and what it has. All but URL are optional.
type AlertmanagerOptions struct {
	URL    string // CheckURL: without the path of its API
	TLS    *tls.Config
	Bearer ib.SecretText
	Labels map[string]string // of each alert
	// Wanted selects events that begin something or report a moment; nil: all.
	Wanted func(*v1.Event) bool
}

// Alertmanager sends events to an Alertmanager as alerts. It follows no redirect and uses no proxy.
type Alertmanager struct {
	o      AlertmanagerOptions
	client *http.Client
}

// CheckURL refuses what is no URL of https, or of http at an address of this machine, and one with a password or a query in it.
func CheckURL(text string) error {
	u, fault := outgoing.Judge(text)
	switch {
	case fault == outgoing.Form || strings.Contains(text, "?"):
		return errors.New("want https://HOST[:PORT][/PREFIX]")
	case strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), alertsPath):
		return errors.New("want the URL without " + alertsPath + ", which is added")
	case fault == outgoing.Password:
		return errors.New("a password in a URL gets into logs: name a file of a bearer token, or a client certificate")
	case fault == outgoing.Plain:
		return errors.New("over http any host on the way could answer: want https, or an address of this machine such as http://127.0.0.1:9093")
	}
	return nil
}

// NewAlertmanager makes an Alertmanager. The error is that of CheckURL.
func NewAlertmanager(o AlertmanagerOptions) (*Alertmanager, error) {
	if err := CheckURL(o.URL); err != nil {
		return nil, err
	}
	if o.Wanted == nil {
		o.Wanted = func(*v1.Event) bool { return true }
	}
	o.URL = strings.TrimSuffix(o.URL, "/") + alertsPath
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &Alertmanager{o: o, client: outgoing.Client(&http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: o.TLS, DisableKeepAlives: true, DisableCompression: true, TLSHandshakeTimeout: dialTimeout,
	}, postTimeout)}, nil
}

// Send sends the alerts of an event.
func (a *Alertmanager) Send(ctx context.Context, _ string, at time.Time, body []byte) error {
	var e v1.CloudEvent
	if err := json.Unmarshal(body, &e); err != nil {
		return fmt.Errorf("the event is not readable: %w", err)
	}
	return a.post(ctx, OfEvent(&e.Data, at, a.o.Labels))
}

// Refresh sends the alerts of all events on record: Alertmanager forgets those that
// are not sent again, and all when it starts.
func (a *Alertmanager) Refresh(ctx context.Context, at time.Time, all []v1.Event) error {
	list := Standing(all, at, a.o.Labels, a.o.Wanted)
	if len(list) == 0 {
		return a.post(ctx, []Alert{}) // shows whether it answers
	}
	for some := range slices.Chunk(list, perRequest) {
		if err := a.post(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

func (a *Alertmanager) post(ctx context.Context, list []Alert) error {
	body, err := json.Marshal(list)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.o.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "portcullis")
	if !a.o.Bearer.IsZero() {
		req.Header.Set("Authorization", "Bearer "+a.o.Bearer.Reveal())
	}
	resp, err := a.client.Do(req)
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return &webhook.AnswerError{Status: resp.StatusCode}
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer)) // it has the alerts, however its answer ends
	return nil
}

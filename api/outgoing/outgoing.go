// Package outgoing has what requests of the service to servers of others have in common: which URLs a configuration may name, and a
// client that follows no redirect.
package outgoing

import (
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// maxURL bounds a URL, in bytes.
	maxURL = 2048
	// maxHeaders bounds the headers of an answer, in bytes.
	maxHeaders = 64 << 10
)

// Fault is what is wrong with a URL.
type Fault uint8

// Faults, the first that a URL has.
const (
	None     Fault = iota
	Form           // it is no absolute URL of https or http with a host, or it has a fragment, a port that there is not, or more than 2048 bytes
	Password       // it has a user or a password, which would get into logs
	Plain          // it is of http, and not at an address of this machine: hosts on the way could read and answer
)

// Judge parses the URL of a server. The URL is nil where the fault is Form.
func Judge(text string) (*url.URL, Fault) {
	u, err := url.Parse(text)
	switch {
	case err != nil || len(text) > maxURL || u.Hostname() == "" || u.Opaque != "" || strings.Contains(text, "#") || badPort(u) || u.Scheme != "https" && u.Scheme != "http":
		return nil, Form
	case u.User != nil:
		return u, Password
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return u, Plain
	}
	return u, None
}

// badPort reports whether a URL names a port that there is not.
func badPort(u *url.URL) bool {
	if u.Port() == "" {
		return strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return err != nil || n == 0
}

// loopback reports whether a host is an address of this machine. A name is none: it is looked up elsewhere.
func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// Client returns a client that uses a transport, which it bounds: a request ends within a time, and headers of an answer have 64 KiB at most.
// It follows no redirect, which would carry credentials elsewhere: a redirect is the answer.
func Client(t *http.Transport, within time.Duration) *http.Client {
	t.ResponseHeaderTimeout, t.MaxResponseHeaderBytes = within, maxHeaders
	if t.TLSHandshakeTimeout == 0 {
		t.TLSHandshakeTimeout = within
	}
	return &http.Client{
		Timeout: within, Transport: t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

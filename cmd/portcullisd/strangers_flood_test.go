package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// strangers is a program of these tests: requests without a credential, from many addresses at once, until its
// standard input ends. Then it prints how often which status was answered.
func strangers() {
	address := os.Args[1]
	count, err := strconv.Atoi(os.Args[2])
	if err != nil {
		fatalStrangers(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	var answers statuses
	for i := range count {
		from := net.IPv4(127, 1, byte(i/200), byte(1+i%200))
		for kind := range strangerKinds {
			all.Go(func() { flood(ctx, address, from, kind, &answers) })
		}
		for range 4 {
			all.Go(func() { hold(ctx, address, from, &answers) })
		}
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	all.Wait()
	fmt.Print(answers.String())
}

func fatalStrangers(err error) {
	fmt.Fprintln(os.Stderr, "strangers:", err)
	os.Exit(1)
}

// statuses counts answers by status; 0 is a connection that failed.
type statuses [600]atomic.Int64

func (s *statuses) String() string {
	seen := map[int]int64{}
	for code := range s {
		if n := s[code].Load(); n > 0 {
			seen[code] = n
		}
	}
	var text []string
	for _, code := range slices.Sorted(maps.Keys(seen)) {
		text = append(text, fmt.Sprintf("%d times %d", seen[code], code))
	}
	return strings.Join(text, ", ")
}

// strangerKinds are the requests that an address sends one after the other, each kind over connections of its own.
var strangerKinds = []func(url string) *http.Request{
	// A session with a certificate that is large and no certificate.
	func(url string) *http.Request {
		return stranger("POST", url+"/v1/attest/sessions", fmt.Sprintf(
			`{"host":"zz%s","ek":{"kind":"ecc-p256","certificates":[%q]},"start":{},"statement_digests":[],"ak1_public":"","ak2_public":""}`,
			unknownID()[:8], strings.Repeat("QUFB", 20<<10)))
	},
	// A body of many members that do not exist.
	func(url string) *http.Request {
		var b strings.Builder
		b.WriteString("{")
		for i := range 4000 {
			fmt.Fprintf(&b, `"member%d":%d,`, i, i)
		}
		b.WriteString(`"host":"h1"}`)
		return stranger("POST", url+"/v1/attest/sessions", b.String())
	},
	// Evidence of a session that nothing knows.
	func(url string) *http.Request {
		return stranger("PUT", url+"/v1/attest/sessions/"+unknownID()+"/evidence", strings.Repeat("A", 700<<10))
	},
	// Locks for a ticket that nothing knows.
	func(url string) *http.Request {
		r := stranger("POST", url+"/v1/attest/locks", `{"adapters":[`+strings.Repeat(`{},`, 50<<10)+`{}]}`)
		r.Header.Set("Authorization", "Bearer "+unknownID())
		return r
	},
	// A token that nothing knows.
	func(url string) *http.Request {
		r := stranger("GET", url+"/v1/hosts", "")
		r.Header.Set("Authorization", "Bearer "+unknownID())
		return r
	},
}

func unknownID() string {
	var id [16]byte
	_, _ = rand.Read(id[:])
	return hex.EncodeToString(id[:])
}

func stranger(method, url, body string) *http.Request {
	r, err := http.NewRequest(method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		fatalStrangers(err)
	}
	r.Header.Set("Content-Type", "application/json")
	return r
}

// dialFrom returns a function that connects from an address. The service's certificate does not matter to a stranger.
func dialFrom(from net.IP) (*net.Dialer, *tls.Config) {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: from}, Timeout: 5 * time.Second}, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
}

// flood sends requests of one kind as fast as they are answered.
func flood(ctx context.Context, address string, from net.IP, kind int, answers *statuses) {
	dialer, config := dialFrom(from)
	c := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: config, ForceAttemptHTTP2: kind%2 == 0}}
	for ctx.Err() == nil {
		resp, err := c.Do(strangerKinds[kind]("https://" + address).WithContext(ctx))
		if err != nil {
			answers[0].Add(1)
			continue
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		answers[resp.StatusCode].Add(1)
	}
	c.CloseIdleConnections()
}

// hold begins bodies and never ends them.
func hold(ctx context.Context, address string, from net.IP, answers *statuses) {
	dialer, config := dialFrom(from)
	for ctx.Err() == nil {
		conn, err := (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", address)
		if err != nil {
			answers[0].Add(1)
			continue
		}
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		const all = 128 << 10
		_, err = fmt.Fprintf(conn, "POST /v1/attest/sessions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", all, strings.Repeat(" ", all-1))
		if err == nil {
			_, _ = io.Copy(io.Discard, conn) // until the service ends it
		}
		stop()
		conn.Close()
	}
}

package signin

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"golang.org/x/oauth2"
)

const (
	callback   = "/callback"
	pageWithin = 5 * time.Second // for a request of the browser, and for its answer to leave
	maxCode    = 8 << 10         // bytes
)

// Browser signs a person in with a browser on this machine, which show has open a URL. It waits on 127.0.0.1 for the one answer that
// the browser brings.
func (p *Provider) Browser(ctx context.Context, show func(url string)) (*Tokens, error) {
	const doing = "sign in with a browser"
	if p.meta.Authorization == "" {
		return nil, &Error{Detail: "the identity provider has no authorization_endpoint", Hint: "portcullis login, without --browser"}
	}
	if len(p.meta.Challenges) > 0 && !slices.Contains(p.meta.Challenges, "S256") {
		return nil, &Error{Detail: "the identity provider does not know PKCE with S256 (RFC 7636)", Hint: "portcullis login, without --browser"}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("wait for the browser: %w", err)
	}
	within, cancel := context.WithTimeout(ctx, signInWithin)
	defer cancel()
	r := &receiver{host: l.Addr().String(), state: rand.Text(), issuer: p.settings.Issuer, named: p.meta.NamesItself, answer: make(chan answer, 1)}
	nonce, verifier := rand.Text(), oauth2.GenerateVerifier()
	config := p.config()
	config.RedirectURL = "http://" + r.host + callback
	code, err := r.receive(within, l, func() {
		show(config.AuthCodeURL(r.state, oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("nonce", nonce)))
	})
	switch {
	case err != nil && within.Err() != nil && ctx.Err() == nil:
		return nil, &Error{Detail: fmt.Sprintf("the browser brought no answer within %v", signInWithin), Hint: "sign in again"}
	case err != nil:
		return nil, p.failed(ctx, doing, err)
	}
	got, err := config.Exchange(p.within(ctx), code, oauth2.VerifierOption(verifier))
	if err != nil {
		return nil, p.failed(ctx, doing, err)
	}
	return p.tokens(got, nonce, "")
}

// answer is what a browser brought.
type answer struct {
	code string
	err  error
}

// receiver waits for the answer to one sign-in.
type receiver struct {
	host   string // its address, which requests must name
	state  string
	issuer string
	named  bool        // the provider names itself in answers (RFC 9207)
	answer chan answer // the first one
	done   sync.Once
}

// receive serves l until there is an answer or ctx ends, and returns the code. It closes l. Ready is called when a browser may come.
func (r *receiver) receive(ctx context.Context, l net.Listener, ready func()) (string, error) {
	server := &http.Server{
		Handler: r, ReadTimeout: pageWithin, WriteTimeout: pageWithin, IdleTimeout: pageWithin, MaxHeaderBytes: 2 * maxCode,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	served := make(chan error, 1)
	var serving sync.WaitGroup
	serving.Go(func() { served <- server.Serve(l) })
	defer serving.Wait()
	defer server.Close()
	ready()
	select {
	case a := <-r.answer:
		leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), pageWithin)
		defer cancel()
		_ = server.Shutdown(leave) // the page that the person reads; what does not leave in time is closed
		return a.code, a.err
	case err := <-served:
		return "", fmt.Errorf("wait for the browser: %w", err)
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// ServeHTTP takes the first answer, and says in plain text that it came. What the answer says is not repeated.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	say := func(status int, text string) {
		h := w.Header()
		h.Set("Content-Type", "text/plain; charset=utf-8")
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Connection", "close")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text+"\n") // the browser may be gone
	}
	switch {
	case req.Host != r.host:
		say(http.StatusMisdirectedRequest, "This is not the address that was asked for.")
		return
	case req.URL.Path != callback:
		say(http.StatusNotFound, "There is nothing here.")
		return
	case req.Method != http.MethodGet:
		say(http.StatusMethodNotAllowed, "Only GET is answered.")
		return
	}
	first := false
	r.done.Do(func() {
		first = true
		code, err := r.read(req.URL)
		r.answer <- answer{code, err}
	})
	if !first {
		say(http.StatusGone, "There was an answer already.")
		return
	}
	say(http.StatusOK, "The answer of the identity provider has arrived. Close this page; the terminal shows the result.")
}

// read returns the code of an answer.
func (r *receiver) read(u *url.URL) (string, error) {
	again := "sign in again, and let no other page open that address"
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "", &Error{Detail: "the answer that the browser brought is malformed", Hint: again}
	}
	for name, values := range q {
		if len(values) > 1 {
			return "", &Error{Detail: fmt.Sprintf("the answer that the browser brought has %s twice", bounded(name, 64)), Hint: again}
		}
	}
	if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(r.state)) != 1 {
		return "", &Error{Detail: "the answer that the browser brought is of another sign-in: its state differs", Hint: again}
	}
	if iss := q.Get("iss"); (iss != "" || r.named) && iss != r.issuer {
		return "", &Error{Detail: fmt.Sprintf("the answer that the browser brought is of the issuer %q", bounded(iss, 128)), Hint: again}
	}
	if q.Has("error") {
		return "", refusal("sign in with a browser", 0, cmp.Or(q.Get("error"), "an error without a code"), q.Get("error_description"))
	}
	code := q.Get("code")
	if code == "" || len(code) > maxCode {
		return "", &Error{Detail: fmt.Sprintf("the answer that the browser brought has no code of at most %d bytes", maxCode), Hint: again}
	}
	return code, nil
}

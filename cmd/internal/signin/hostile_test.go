package signin

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// hostile is a provider that answers as a test wants. Pages without an answer are those of an honest one.
type hostile struct {
	url   string
	pages map[string]http.HandlerFunc
	asked map[string]int
}

func (h *hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.asked[r.URL.Path]++
	if page := h.pages[r.URL.Path]; page != nil {
		page(w, r)
		return
	}
	answers := map[string]map[string]any{
		"/.well-known/openid-configuration": h.metadata(),
		"/device": {
			"device_code": "d", "user_code": "ABCD-EFGH", "verification_uri": h.url + "/enter", "expires_in": 600, "interval": 1,
		},
		"/token": {"access_token": h.token(nil), "id_token": h.token(nil), "refresh_token": "r1", "token_type": "Bearer"},
	}
	give(answers[r.URL.Path])(w, r)
}

func (h *hostile) metadata() map[string]any {
	return map[string]any{
		"issuer": h.url, "authorization_endpoint": h.url + "/authorize", "token_endpoint": h.url + "/token",
		"device_authorization_endpoint": h.url + "/device", "revocation_endpoint": h.url + "/revoke",
		"code_challenge_methods_supported": []string{"S256"},
	}
}

// token returns a JWT, changed in some claims. Its signature is none.
func (h *hostile) token(change map[string]any) string {
	claims := map[string]any{
		"iss": h.url, "sub": "olga", "aud": "cli", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	maps.Copy(claims, change)
	body, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	return "eyJhbGciOiJSUzI1NiJ9." + base64.RawURLEncoding.EncodeToString(body) + ".c2ln"
}

func give(v any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
}

// with returns a changed copy of what an honest provider answers.
func with(v map[string]any, change map[string]any) http.HandlerFunc {
	out := maps.Clone(v)
	maps.Copy(out, change)
	for name, value := range out {
		if value == nil {
			delete(out, name)
		}
	}
	return give(out)
}

func refuse(code string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":%q,"error_description":"no\u001b[2J more"}`, code)
	}
}

func endless(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	for r.Context().Err() == nil {
		if _, err := io.WriteString(w, `{"issuer":"`+strings.Repeat("x", 1<<16)); err != nil {
			return
		}
	}
}

// served starts a hostile provider over TLS.
func served(t *testing.T, pages func(*hostile) map[string]http.HandlerFunc) (*hostile, Settings) {
	t.Helper()
	h := &hostile{asked: map[string]int{}}
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	h.url = s.URL
	if pages != nil {
		h.pages = pages(h)
	}
	return h, Settings{
		Issuer: s.URL, ClientID: "cli", Scopes: []string{"openid"}, UseID: true,
		CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
	}
}

type pages = map[string]http.HandlerFunc

// TestHostileProvider: whatever a provider answers, it ends in an error that names it, within bounds.
func TestHostileProvider(t *testing.T) {
	t.Parallel()
	const discovery = "/.well-known/openid-configuration"
	meta := func(change map[string]any) func(*hostile) pages {
		return func(h *hostile) pages { return pages{discovery: with(h.metadata(), change)} }
	}
	device := func(change map[string]any) func(*hostile) pages {
		return func(h *hostile) pages {
			return pages{"/device": with(map[string]any{"device_code": "d", "user_code": "A", "verification_uri": h.url, "expires_in": 600, "interval": 1}, change)}
		}
	}
	token := func(access, id map[string]any) func(*hostile) pages {
		return func(h *hostile) pages {
			return pages{"/token": give(map[string]any{"access_token": h.token(access), "id_token": h.token(id), "refresh_token": "r", "token_type": "Bearer"})}
		}
	}
	one := func(path string, page http.HandlerFunc) func(*hostile) pages {
		return func(*hostile) pages { return pages{path: page} }
	}
	var group sync.WaitGroup
	for name, tt := range map[string]struct {
		pages  func(*hostile) pages
		edit   func(*Settings)
		detail string
	}{
		"metadata without end":         {one(discovery, endless), nil, "answers with more than 262144 bytes"},
		"metadata that redirects":      {one(discovery, http.RedirectHandler("https://other.test/", 302).ServeHTTP), nil, "redirects to another address (302)"},
		"metadata of another issuer":   {meta(map[string]any{"issuer": "https://other.test"}), nil, `is of the issuer "https://other.test"`},
		"metadata of no issuer":        {meta(map[string]any{"issuer": nil}), nil, `is of the issuer ""`},
		"no metadata":                  {one(discovery, http.NotFound), nil, "answers 404"},
		"metadata that is no JSON":     {one(discovery, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }), nil, "is no JSON object"},
		"an issuer over HTTP":          {nil, func(s *Settings) { s.Issuer = strings.Replace(s.Issuer, "https", "http", 1) }, "is not https://"},
		"an issuer with a query":       {nil, func(s *Settings) { s.Issuer += "?x" }, "is not https://"},
		"a token endpoint over HTTP":   {meta(map[string]any{"token_endpoint": "http://a.test/t"}), nil, `the token_endpoint "http://a.test/t"`},
		"no token endpoint":            {meta(map[string]any{"token_endpoint": nil}), nil, `the token_endpoint ""`},
		"a device endpoint over HTTP":  {meta(map[string]any{"device_authorization_endpoint": "http://a.test/t"}), nil, "the device_authorization_endpoint"},
		"a revocation with a password": {meta(map[string]any{"revocation_endpoint": "https://a:b@a.test/t"}), nil, "the revocation_endpoint"},
		"no device authorization":      {meta(map[string]any{"device_authorization_endpoint": nil}), nil, "has no device authorization"},
		"a device code without end":    {one("/device", endless), nil, "answers with more than 262144 bytes"},
		"device codes elsewhere":       {one("/device", http.RedirectHandler("https://other.test/", 307).ServeHTTP), nil, "redirects to another address (307)"},
		"no device code":               {device(map[string]any{"device_code": nil}), nil, "returns no device code"},
		"null for a device code":       {one("/device", give(nil)), nil, "returns no device code"},
		"a device code as a list":      {device(map[string]any{"device_code": []string{"d"}}), nil, "returns no device code"},
		"half an interval":             {device(map[string]any{"interval": 0.5}), nil, "wants to be asked each -1 s"},
		"no user code":                 {device(map[string]any{"user_code": nil}), nil, "returns no code"},
		"a user code that draws":       {device(map[string]any{"user_code": "\x1b[2J"}), nil, "returns no code"},
		"a page over HTTP":             {device(map[string]any{"verification_uri": "http://a.test"}), nil, "is no https URL"},
		"a page that draws":            {device(map[string]any{"verification_uri": "https://a.test/\x1b[2J"}), nil, "is no https URL"},
		"a complete page over HTTP":    {device(map[string]any{"verification_uri_complete": "javascript:alert(1)"}), nil, "is no https URL"},
		"an interval of a year":        {device(map[string]any{"interval": 31536000}), nil, "wants to be asked each 31536000 s"},
		"an interval beyond time":      {device(map[string]any{"interval": int64(1) << 62}), nil, "wants to be asked each"},
		"an interval before now":       {device(map[string]any{"interval": -1}), nil, "wants to be asked each -1 s"},
		"a denial":                     {one("/token", refuse("access_denied")), nil, "answers access_denied: no?[2J more"},
		"an expired code":              {one("/token", refuse("expired_token")), nil, "answers expired_token"},
		"an unknown refusal":           {one("/token", refuse(strings.Repeat("x", 1<<10))), nil, "answers " + strings.Repeat("x", 64) + "..."},
		"a token answer without end":   {one("/token", endless), nil, "answers with more than 262144 bytes"},
		"tokens elsewhere":             {one("/token", http.RedirectHandler("https://other.test/", 308).ServeHTTP), nil, "redirects to another address (308)"},
		"no token":                     {one("/token", give(map[string]any{"token_type": "Bearer"})), nil, "is not as OAuth 2.0 has it"},
		"no ID token":                  {one("/token", give(map[string]any{"access_token": "a"})), nil, "returns no ID token, which the service accepts"},
		"an opaque access token":       {one("/token", give(map[string]any{"access_token": "a"})), func(s *Settings) { s.UseID = false }, "is no JWT"},
		"a token of another issuer":    {token(nil, map[string]any{"iss": "https://other.test"}), nil, "is of the issuer https://other.test"},
		"a token for another client":   {token(nil, map[string]any{"aud": []string{"billing"}}), nil, "was made for another client"},
		"a token without an end":       {token(nil, map[string]any{"exp": nil}), nil, "is no JWT with exp"},
		"a token that never ends":      {token(nil, map[string]any{"exp": int64(1) << 60}), nil, "is no JWT with exp"},
		"a token before time":          {token(nil, map[string]any{"exp": -5}), nil, "is no JWT with exp"},
		"a token that ends before":     {token(nil, map[string]any{"exp": 5}), nil, "is no JWT with exp"},
		"a huge token":                 {token(nil, map[string]any{"pad": strings.Repeat("x", 8<<10)}), nil, "is no JWT with exp of at most 8192 bytes"},
		"a huge access token":          {token(map[string]any{"pad": strings.Repeat("x", 8<<10)}, nil), func(s *Settings) { s.UseID = false }, "is no JWT with exp of at most 8192 bytes"},
		"an access token for others":   {token(map[string]any{"aud": []string{"\x1b[2Jmail", "cli"}}, nil), func(s *Settings) { s.UseID, s.Audience = false, "fabric" }, `is for ["\x1b[2Jmail" "cli"], and not for fabric: it was not sent`},
		"an ID token for others":       {nil, func(s *Settings) { s.Audience = "fabric" }, `is for ["cli"], and not for fabric`},
		"an audience that draws":       {nil, func(s *Settings) { s.Audience = "\x1b[2J" }, "the audience"},
		"a huge refresh token": {func(h *hostile) pages {
			return pages{"/token": give(map[string]any{"access_token": "a", "id_token": h.token(nil), "refresh_token": strings.Repeat("x", 16<<10+1)})}
		}, nil, "the refresh token of the identity provider has more than 16384 bytes"},
		"settings without client": {nil, func(s *Settings) { s.ClientID = "" }, "the client id"},
		"scopes with blanks":      {nil, func(s *Settings) { s.Scopes = []string{"a b"} }, "the scopes"},
		"a CA that is none":       {nil, func(s *Settings) { s.CA = []byte("x") }, "has no certificate in PEM"},
	} {
		group.Go(func() { // all of them together: each waits a second before it polls
			_, s := served(t, tt.pages)
			if tt.edit != nil {
				tt.edit(&s)
			}
			p, err := Discover(t.Context(), s)
			if err == nil {
				_, err = p.Device(t.Context(), func(*Code) {})
			}
			wantError(t, name, err, tt.detail, "")
			if err != nil && (len(err.Error()) > 1024 || !printable(err.Error())) {
				t.Errorf("%s: the error has %d bytes: %q", name, len(err.Error()), err)
			}
		})
	}
	group.Wait()
}

// inMemory is a hostile provider without a network, for tests in a bubble of time.
func inMemory(page map[string]http.HandlerFunc) (*hostile, Settings, http.RoundTripper) {
	h := &hostile{url: "https://idp.test", pages: page, asked: map[string]int{}}
	return h, Settings{Issuer: h.url, ClientID: "cli", Scopes: []string{"openid"}, UseID: true}, roundTrip(func(r *http.Request) (*http.Response, error) {
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result(), nil
	})
}

// TestPollsAsTheProviderWants: pauses are as long as the provider says, longer after slow_down, and end with the code; whatever life it
// returns the code, they end after 15 minutes. A provider that is away for a moment is asked again, later.
func TestPollsAsTheProviderWants(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		life      int
		interval  int
		answers   []string // of the token endpoint, one after another; then the last one again
		asked     int
		after     time.Duration
		want      string // "": a token
		interrupt bool
	}{
		"approved at the third poll":      {600, 2, []string{"authorization_pending", "authorization_pending", ""}, 3, 6 * time.Second, "", false},
		"slower each time":                {600, 2, []string{"slow_down", "authorization_pending", "slow_down", ""}, 4, 2*time.Second + 2*7*time.Second + 12*time.Second, "", false},
		"slow_down for ever":              {600, 2, []string{"slow_down"}, 15, 600 * time.Second, "the code ended before it was entered", false},
		"pending for ever":                {61, 2, []string{"authorization_pending"}, 30, 61 * time.Second, "the code ended before it was entered", false},
		"a code that is good for a year":  {31536000, 7, []string{"authorization_pending"}, 128, 15 * time.Minute, "the code ended before it was entered", false},
		"a code without an end":           {0, 7, []string{"authorization_pending"}, 128, 15 * time.Minute, "the code ended before it was entered", false},
		"away for a moment":               {600, 2, []string{"500", "500", ""}, 3, 2*time.Second + 10*time.Second + 20*time.Second, "", false},
		"away for long":                   {600, 2, []string{"500"}, 4, 2*time.Second + (10+20+40)*time.Second, "answers 500", false},
		"interrupted while it is waiting": {600, 2, []string{"authorization_pending"}, 2, 5 * time.Second, "interrupted", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var h *hostile
				h, s, base := inMemory(pages{
					"/token": func(w http.ResponseWriter, r *http.Request) {
						switch answer := tt.answers[min(h.asked["/token"], len(tt.answers))-1]; answer {
						case "":
							give(map[string]any{"access_token": "a", "id_token": h.token(nil)})(w, r)
						case "500":
							http.Error(w, "", http.StatusInternalServerError)
						default:
							refuse(answer)(w, r)
						}
					},
				})
				h.pages["/device"] = with(map[string]any{"device_code": "d", "user_code": "A", "verification_uri": h.url, "interval": tt.interval, "expires_in": tt.life}, nil)
				p, err := discover(t.Context(), s, base)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.interrupt {
					time.AfterFunc(tt.after, cancel)
				}
				start := time.Now()
				_, err = p.Device(ctx, func(*Code) {})
				if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %v, want %q", err, tt.want)
				}
				if got := time.Since(start); got != tt.after || h.asked["/token"] != tt.asked {
					t.Errorf("after %v and %d polls, want %v and %d", got, h.asked["/token"], tt.after, tt.asked)
				}
			})
		})
	}
}

// TestSilentProvider: a provider that does not answer, or whose answer does not end, is given up after a while.
func TestSilentProvider(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, s, _ := inMemory(nil)
		for name, base := range map[string]roundTrip{
			"no answer": func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() },
			"a body that stops": func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Body: stopping{r.Context()}}, nil
			},
		} {
			start := time.Now()
			_, err := discover(t.Context(), s, base)
			wantError(t, name, err, "no answer within 15s", "check that this machine reaches")
			if d := time.Since(start); d != answerWithin {
				t.Errorf("%s: after %v", name, d)
			}
		}
	})
}

// stopping is a body that does not go on until its request ends.
type stopping struct{ ctx context.Context }

func (s stopping) Read([]byte) (int, error) { <-s.ctx.Done(); return 0, s.ctx.Err() }
func (s stopping) Close() error             { return nil }

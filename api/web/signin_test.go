package web_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/credential"
	"portcullis/api/oidc"
	v1 "portcullis/api/v1"
	"portcullis/api/web/webtest"
	"portcullis/packaging/testenv"
)

// TestSignInAtAProvider: a person signs in with the pages at a provider of another project, and no token is left where others can read it.
func TestSignInAtAProvider(t *testing.T) {
	t.Parallel()
	real := testenv.StartProviders(t)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(real.CA)
	issuers := []oidc.Issuer{{
		Name: "corp", URL: real.URLs[0], Audience: "portcullis-cli", CA: real.CA, TLS: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13},
		Rules: []oidc.Rule{{Claim: "sub", Value: "id1", Role: credential.Viewer}}, Login: &oidc.Login{ClientID: "portcullis-cli"},
	}}
	verifier, err := oidc.New(issuers, slog.New(slog.DiscardHandler), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { verifier.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	_, server := served(t, func(o *api.Options) { o.Verifier, o.Logins = verifier, api.LoginsOf(issuers) }, "h1")
	real.Order("redirect 0 %s/ui/", server.URL)
	p := webtest.Open(t, server.URL+"/ui/#/hosts", "/v1/whoami", "/v1/sm", "/v1/fabric/overview")
	p.AwaitText("Sign in with corp")
	p.Look("sign-in provider")
	p.Click(".people button")
	p.AwaitText("oidc:corp:id1 viewer")
	p.AwaitText("Page 1, 1 hosts") // of the page that was asked for
	kept := webtest.Value[string](p, `[document.cookie, JSON.stringify(localStorage), JSON.stringify(sessionStorage), location.href, document.documentElement.outerHTML].join(' ')`)
	if strings.Contains(kept, "eyJ") || !strings.HasSuffix(webtest.Value[string](p, "location.href"), "/ui/#/hosts") || webtest.Value[int](p, "sessionStorage.length") != 0 {
		t.Errorf("after the sign-in the page keeps %s", kept)
	}
	p.Click("#who button")
	p.AwaitText("Sign in with corp")
	p.Quiet()
}

// fake is a provider that answers as a test wants, to any origin.
type fake struct {
	mu     sync.Mutex
	url    string
	meta   map[string]any                   // that differ
	answer func(asked, answer url.Values)   // changes what the browser brings
	claims map[string]any                   // that differ, of the ID token
	token  func(w http.ResponseWriter) bool // answers instead
	stay   bool                             // answers no page to the browser
	access string                           // the access token; "": one that says nothing
	asked  url.Values                       // the request for authorization
	got    url.Values                       // the request for a token
}

func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.meta, f.answer, f.claims, f.token, f.asked, f.got, f.stay, f.access = nil, nil, nil, nil, nil, nil, false, "a"
	change()
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Header().Set("Access-Control-Allow-Origin", "*")
	give := func(v map[string]any) { _ = json.NewEncoder(w).Encode(v) }
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		meta := map[string]any{
			"issuer": f.url, "authorization_endpoint": f.url + "/authorize", "token_endpoint": f.url + "/token", "code_challenge_methods_supported": []string{"S256"},
		}
		maps.Copy(meta, f.meta)
		give(meta)
	case "/authorize":
		f.asked = r.URL.Query()
		if f.stay {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		answer := url.Values{"state": {f.asked.Get("state")}, "code": {"c0de"}}
		if f.answer != nil {
			f.answer(f.asked, answer)
		}
		http.Redirect(w, r, f.asked.Get("redirect_uri")+"?"+answer.Encode(), http.StatusFound)
	case "/token":
		_ = r.ParseForm()
		f.got = r.PostForm
		if f.token != nil && f.token(w) {
			return
		}
		claims := map[string]any{"iss": f.url, "sub": "olga", "aud": "cli", "nonce": f.asked.Get("nonce"), "exp": time.Now().Add(time.Hour).Unix()}
		maps.Copy(claims, f.claims)
		give(map[string]any{"access_token": f.access, "id_token": unsigned(claims)})
	default:
		http.NotFound(w, r)
	}
}

// unsigned makes a token of claims.
func unsigned(claims map[string]any) string {
	body, _ := json.Marshal(claims)
	return "eyJhbGciOiJSUzI1NiJ9." + base64.RawURLEncoding.EncodeToString(body) + ".c2ln"
}

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// TestAnswersOfProviders: what a browser brings from a provider counts only as the answer to this attempt of this page, and what the provider
// makes only as what was asked for.
func TestAnswersOfProviders(t *testing.T) {
	t.Parallel()
	f, second := &fake{}, &fake{}
	for _, one := range []*fake{f, second} {
		idp := httptest.NewTLSServer(one)
		t.Cleanup(idp.Close)
		one.url = idp.URL
	}
	_, server := served(t, func(o *api.Options) {
		o.Logins = []v1.LoginProvider{
			{Name: "fake", Issuer: f.url, ClientID: "cli", Scopes: []string{"openid", "groups", "offline_access"}, Audience: "cli", Token: "id"},
			{Name: "second", Issuer: second.url, ClientID: "cli", Scopes: []string{"openid"}, Audience: "api", Token: "access"},
		}
	}, "h1")
	p := webtest.Open(t, server.URL+"/ui/#/keys", "/v1/whoami", "/token", "/elsewhere")
	refused := func(want string) {
		t.Helper()
		quoted, _ := json.Marshal(want)
		p.Await(`(document.querySelector('.refusal')?.textContent || '').includes(` + string(quoted) + `) && document.querySelector('.people button')?.disabled === false`)
	}
	tryAt := func(is *fake, name, want string, change func()) {
		t.Helper()
		is.set(change)
		p.AwaitText("Sign in with second")
		p.Click(map[*fake]string{f: ".people button", second: ".people button:nth-of-type(2)"}[is])
		refused(want)
		if got := webtest.Value[string](p, "location.search + location.hash + sessionStorage.length"); got != "#/keys0" {
			t.Errorf("%s: the address and the storage are %q", name, got)
		}
		p.Reload() // so that no reason is left of this one
	}
	try := func(name, want string, change func()) { t.Helper(); tryAt(f, name, want, change) }
	refuse := func(change func(asked, answer url.Values)) func() { return func() { f.answer = change } }
	// All is as it should be but the signature, which the service verifies.
	try("accepted by the page", "the token", func() {})
	f.mu.Lock()
	sum := f.asked
	if sum.Get("code_challenge_method") != "S256" || len(sum.Get("code_challenge")) != 43 || len(sum.Get("state")) != 43 || len(sum.Get("nonce")) != 43 || sum.Get("scope") != "openid groups" ||
		sum.Get("response_type") != "code" || sum.Get("redirect_uri") != server.URL+"/ui/" {
		t.Errorf("the provider was asked for %v", sum)
	}
	if g := f.got; g.Get("code") != "c0de" || challengeOf(g.Get("code_verifier")) != sum.Get("code_challenge") || g.Get("client_id") != "cli" || g.Get("redirect_uri") != server.URL+"/ui/" || g.Has("client_secret") {
		t.Errorf("the code was exchanged with %v", g)
	}
	f.mu.Unlock()
	try("another state", "its state differs", refuse(func(_, a url.Values) { a.Set("state", "x") }))
	try("two states", "has state twice", refuse(func(_, a url.Values) { a.Add("state", "x") }))
	try("another issuer", "is of the issuer https://other.test", refuse(func(_, a url.Values) { a.Set("iss", "https://other.test") }))
	try("no issuer though promised", "does not name its issuer", func() { f.meta = map[string]any{"authorization_response_iss_parameter_supported": true} })
	try("denied", "answers access_denied: <b>no</b>", refuse(func(_, a url.Values) {
		a.Set("error", "access_denied")
		a.Set("error_description", "<b>no</b>")
	}))
	try("no code", "has no code", refuse(func(_, a url.Values) { a.Del("code") }))
	try("another nonce", "has another nonce", func() { f.claims = map[string]any{"nonce": "x"} })
	try("another client", "for another client", func() { f.claims = map[string]any{"aud": "other"} })
	try("made for another", "made for another client", func() { f.claims = map[string]any{"aud": []string{"cli", "x"}, "azp": "x"} })
	try("an ID token of another", "the ID token is of the issuer https://other.test", func() { f.claims = map[string]any{"iss": "https://other.test"} })
	try("ended", "the ID token has ended", func() { f.claims = map[string]any{"exp": time.Now().Unix() - 1} })
	try("no end", "the ID token has ended", func() { f.claims = map[string]any{"exp": nil} })
	try("refused", "invalid_grant: used", func() {
		f.token = func(w http.ResponseWriter) bool {
			http.Error(w, `{"error": "invalid_grant", "error_description": "used"}`, http.StatusBadRequest)
			return true
		}
	})
	try("endless", "has more than 262144 characters", func() {
		f.token = func(w http.ResponseWriter) bool {
			_, _ = w.Write(make([]byte, 1<<20)) // the page may be gone
			return true
		}
	})
	try("metadata of another", "the metadata is of the issuer https://other.test", func() { f.meta = map[string]any{"issuer": "https://other.test"} })
	try("no PKCE", "does not know PKCE", func() { f.meta = map[string]any{"code_challenge_methods_supported": []string{"plain"}} })
	try("a token endpoint elsewhere", "this page may ask", func() { f.meta = map[string]any{"token_endpoint": "https://other.test/token"} })
	try("no https", "no https address", func() { f.meta = map[string]any{"authorization_endpoint": "javascript:alert(1)"} })

	try("sent elsewhere", "can be read", func() {
		f.token = func(w http.ResponseWriter) bool {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(http.StatusTemporaryRedirect)
			return true
		}
	})
	// Where the access token is the one for the service, it has to be for the service.
	tryAt(second, "an access token that says nothing", "the token is not for api", func() {})
	tryAt(second, "an access token for others", "the token is not for api", func() { second.access = unsigned(map[string]any{"aud": "cli"}) })
	tryAt(second, "an access token for the service", "the token that was sent", func() { second.access = unsigned(map[string]any{"aud": []string{"other", "api"}}) })

	// A browser that does not leave the page can begin again.
	f.set(func() { f.stay = true })
	p.AwaitText("Sign in with fake")
	p.Click(".people button")
	p.Await(`sessionStorage.length === 1 && !document.querySelector('.people button').disabled`)
	try("after nothing came", "the token", func() {})
	// An attempt does not count for ever.
	f.set(func() { f.stay = true })
	p.AwaitText("Sign in with fake")
	p.Click(".people button")
	p.Await(`sessionStorage.length === 1 && !document.querySelector('.people button').disabled`)
	webtest.Value[bool](p, `(() => {
		const [name] = Object.keys(sessionStorage);
		const attempt = JSON.parse(sessionStorage.getItem(name));
		sessionStorage.setItem(name, JSON.stringify({...attempt, at: attempt.at - 15 * 60 * 1000}));
		location.assign('/ui/?code=c0de&state=' + attempt.state);
		return true;
	})()`)
	refused("in the last 15 minutes")

	// An answer that this tab did not ask for.
	f.set(func() {})
	webtest.Value[bool](p, `window.before = true; location.assign('/ui/?code=stolen&state=x#/keys'); true`)
	p.Await(`window.before === undefined`) // the page before has the same words
	refused("is of no sign-in that was begun in this tab")
	f.mu.Lock()
	if f.got != nil {
		t.Errorf("a code that the page did not ask for was sent to the provider: %v", f.got)
	}
	f.mu.Unlock()

	// A browser that keeps nothing for a page has tokens alone.
	webtest.Value[bool](p, `Object.defineProperty(window, 'sessionStorage', {get() { throw new Error('Access is denied'); }}), true`)
	if came := webtest.Value[string](p, `import(document.querySelector('script').src.replace('app.js', 'signin.js')).then(({came}) => String(came()))`); came != "null" {
		t.Errorf("where nothing can be kept the page begins with %s", came)
	}
	p.Click(".people button")
	refused("the browser keeps nothing for this page (Access is denied)")
	p.Quiet()
}

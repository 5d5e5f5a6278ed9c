package signin

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// TestAnswersOfBrowsers: of what comes to the loopback address, the first answer to this sign-in counts, and only as it should be.
func TestAnswersOfBrowsers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer func(q url.Values, h *hostile) url.Values // from the parameters of the request for authorization
		meta   map[string]any
		nonce  string // of the ID token; "": as asked
		want   string // "": signed in
	}{
		"as it should be":            {nil, nil, "", ""},
		"with the issuer":            {func(q url.Values, h *hostile) url.Values { q.Set("iss", h.url); return q }, nil, "", ""},
		"another state":              {func(q url.Values, _ *hostile) url.Values { q.Set("state", "x"); return q }, nil, "", "its state differs"},
		"no state":                   {func(q url.Values, _ *hostile) url.Values { q.Del("state"); return q }, nil, "", "its state differs"},
		"two states":                 {func(q url.Values, _ *hostile) url.Values { q.Add("state", "x"); return q }, nil, "", "has state twice"},
		"no code":                    {func(q url.Values, _ *hostile) url.Values { q.Del("code"); return q }, nil, "", "has no code"},
		"a huge code":                {func(q url.Values, _ *hostile) url.Values { q.Set("code", strings.Repeat("x", 8<<10+1)); return q }, nil, "", "has no code"},
		"another issuer":             {func(q url.Values, _ *hostile) url.Values { q.Set("iss", "https://other.test"); return q }, nil, "", `of the issuer "https://other.test"`},
		"no issuer though promised":  {nil, map[string]any{"authorization_response_iss_parameter_supported": true}, "", `of the issuer ""`},
		"denied":                     {func(q url.Values, _ *hostile) url.Values { q.Set("error", "access_denied"); return q }, nil, "", "answers access_denied"},
		"denied for another sign-in": {func(q url.Values, _ *hostile) url.Values { q.Set("error", "x"); q.Set("state", "x"); return q }, nil, "", "its state differs"},
		"an error without a code":    {func(q url.Values, _ *hostile) url.Values { q.Set("error", ""); return q }, nil, "", "answers an error without a code"},
		"an ID token of another":     {nil, nil, "other", "has another nonce"},
		"an ID token without nonce":  {nil, nil, "none", "has another nonce"},
		"no authorization endpoint":  {nil, map[string]any{"authorization_endpoint": nil}, "", "has no authorization_endpoint"},
		"no PKCE":                    {nil, map[string]any{"code_challenge_methods_supported": []string{"plain"}}, "", "does not know PKCE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var nonce, challenge string
			h, s := served(t, func(h *hostile) pages {
				return pages{
					"/.well-known/openid-configuration": with(h.metadata(), tt.meta),
					"/token": func(w http.ResponseWriter, r *http.Request) {
						if r.FormValue("code_verifier") == "" || r.FormValue("code") != "c" || r.FormValue("client_id") != "cli" || !strings.HasPrefix(r.FormValue("redirect_uri"), "http://127.0.0.1:") {
							t.Errorf("the code is exchanged with %v", r.Form)
						}
						claims := map[string]any{"nonce": nonce}
						switch tt.nonce {
						case "other":
							claims["nonce"] = "other"
						case "none":
							claims = nil
						}
						give(map[string]any{"access_token": "a", "id_token": h.token(claims)})(w, r)
					},
				}
			})
			p, err := Discover(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Browser(t.Context(), func(to string) {
				u, err := url.Parse(to)
				if err != nil {
					t.Fatal(err)
				}
				q := u.Query()
				nonce, challenge = q.Get("nonce"), q.Get("code_challenge")
				if q.Get("code_challenge_method") != "S256" || len(challenge) != 43 || len(nonce) < 26 || len(q.Get("state")) < 26 || q.Get("state") == nonce || q.Get("response_type") != "code" {
					t.Errorf("the browser is sent to %s", to)
				}
				answer := url.Values{"state": {q.Get("state")}, "code": {"c"}}
				if tt.answer != nil {
					answer = tt.answer(answer, h)
				}
				go func() { get(t.Context(), q.Get("redirect_uri")+"?"+answer.Encode()) }()
			})
			if tt.want != "" {
				wantError(t, name, err, tt.want, "")
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func get(ctx context.Context, to string) (int, string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
	if err != nil {
		return 0, err.Error()
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

// TestLoopbackAddress: other requests than the answer are refused and do not end the wait. After the answer nothing listens.
func TestLoopbackAddress(t *testing.T) {
	t.Parallel()
	_, s := served(t, func(*hostile) pages { return pages{"/token": refuse("invalid_grant")} })
	p, err := Discover(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	var redirect string
	_, err = p.Browser(t.Context(), func(to string) {
		u, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		redirect = u.Query().Get("redirect_uri")
		if !strings.HasPrefix(redirect, "http://127.0.0.1:") {
			t.Errorf("the redirect is to %s", redirect)
		}
		good := "?" + url.Values{"state": {u.Query().Get("state")}, "code": {"c"}}.Encode()
		go func() {
			for path, want := range map[string]int{"/": 404, "/favicon.ico" + good: 404} {
				if got, text := get(t.Context(), strings.TrimSuffix(redirect, "/callback")+path); got != want {
					t.Errorf("%s: %d %s, want %d", path, got, text, want)
				}
			}
			for method, want := range map[string]int{http.MethodPost: 405, http.MethodHead: 405} {
				if got := request(t, method, redirect+good, ""); got != want {
					t.Errorf("%s: %d, want %d", method, got, want)
				}
			}
			if got := request(t, http.MethodGet, redirect+good, "attacker.test"); got != 421 {
				t.Errorf("by another name: %d", got)
			}
			if got, text := get(t.Context(), redirect+good); got != 200 || strings.Contains(text, "code") {
				t.Errorf("the answer: %d %s", got, text)
			}
		}()
	})
	wantError(t, "a code that the provider does not know", err, "answers invalid_grant", "sign in again")
	if got, text := get(t.Context(), redirect); got != 0 {
		t.Errorf("it listens after the end: %d %s", got, text)
	}
}

func request(t *testing.T, method, to, host string) int {
	r, err := http.NewRequestWithContext(t.Context(), method, to, nil)
	if err != nil {
		t.Error(err)
		return 0
	}
	r.Host = host
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// TestOneAnswer: of two answers the first one counts, and the other one is refused with 410.
func TestOneAnswer(t *testing.T) {
	t.Parallel()
	r := &receiver{host: "127.0.0.1:1", state: "s", answer: make(chan answer, 1)}
	for i, want := range []int{200, 410, 410} {
		w := httptest.NewRecorder()
		req := httptest.NewRequest(http.MethodGet, "/callback?state=s&code="+fmt.Sprint(i), nil)
		req.Host = r.host
		r.ServeHTTP(w, req)
		if w.Code != want || w.Header().Get("Referrer-Policy") != "no-referrer" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("answer %d: %d %v", i, w.Code, w.Header())
		}
	}
	if a := <-r.answer; a.code != "0" || a.err != nil {
		t.Errorf("%+v, want the first one", a)
	}
}

package signin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestRenewal: a provider that returns no other refresh token has the earlier one kept; another person, and a token that is not needed, are
// refused; what a provider without revocation does is not an error.
func TestRenewal(t *testing.T) {
	t.Parallel()
	h, s, base := inMemory(pages{"/revoke": refuse("unsupported_token_type")})
	answer := map[string]any{"access_token": "a", "id_token": h.token(nil)}
	h.pages["/token"] = func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("grant_type") != "refresh_token" || r.FormValue("refresh_token") != "r1" || r.FormValue("client_id") != "cli" {
			t.Errorf("renewed with %v", r.Form)
		}
		give(answer)(w, r)
	}
	p, err := discover(t.Context(), s, base)
	if err != nil {
		t.Fatal(err)
	}
	old := &Tokens{Subject: "olga", Refresh: secret("r1"), Bearer: secret(h.token(nil))}
	if got, err := p.Renew(t.Context(), old); err != nil || !got.Refresh.Equal(old.Refresh) {
		t.Errorf("without another refresh token: %+v, %v", got, err)
	}
	answer["refresh_token"] = "r2"
	if got, err := p.Renew(t.Context(), old); err != nil || got.Refresh.Reveal() != "r2" {
		t.Errorf("with another refresh token: %+v, %v", got, err)
	}
	answer["id_token"] = h.token(map[string]any{"sub": "mallory"})
	if _, err := p.Renew(t.Context(), old); err == nil || !strings.Contains(err.Error(), "renews it for another person") {
		t.Errorf("another person: %v", err)
	}
	if ok, err := p.Revoke(t.Context(), old); ok || err == nil || !strings.Contains(err.Error(), "unsupported_token_type") {
		t.Errorf("a refused revocation: %v, %v", ok, err)
	}
	var form url.Values
	h.pages["/revoke"] = func(_ http.ResponseWriter, r *http.Request) { _ = r.ParseForm(); form = r.PostForm }
	if ok, err := p.Revoke(t.Context(), old); !ok || err != nil || form.Get("token") != "r1" || form.Get("token_type_hint") != "refresh_token" || form.Get("client_id") != "cli" {
		t.Errorf("revoked: %v, %v, %v", ok, err, form)
	}
	old.Refresh = secret("")
	if ok, err := p.Revoke(t.Context(), old); !ok || err != nil || form.Get("token_type_hint") != "access_token" {
		t.Errorf("revoked without a refresh token: %v, %v, %v", ok, err, form)
	}
	p.meta.Revocation = ""
	if ok, err := p.Revoke(t.Context(), old); ok || err != nil {
		t.Errorf("without a place for it: %v, %v", ok, err)
	}
}

// TestTokensCannotBePrinted: neither tokens nor what holds them show a secret.
func TestTokensCannotBePrinted(t *testing.T) {
	t.Parallel()
	v := &Tokens{Bearer: secret("eyJbearer"), Refresh: secret("refreshing")}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprintf("%v %+v %#v %s", v, *v, v, v), string(data)} {
		if strings.Contains(text, "eyJbearer") || strings.Contains(text, "refreshing") {
			t.Errorf("printed: %s", text)
		}
	}
}

func FuzzReadClaims(f *testing.F) {
	h := &hostile{url: "https://idp.test"}
	f.Add(h.token(nil))
	f.Add("eyJ.e30.x")
	f.Fuzz(func(t *testing.T, token string) {
		c, ok := readClaims(token)
		if ok && (c.Expiry == nil || c.Expiry.Time().Before(time.Unix(0, 0)) || c.Expiry.Time().Year() > 2600 || len(token) > maxBearer) {
			t.Errorf("accepted: %+v", c)
		}
	})
}

func FuzzParseMetadata(f *testing.F) {
	f.Add([]byte(`{"issuer":"https://idp.test","token_endpoint":"https://idp.test/t"}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		m, err := parseMetadata(doc, "https://idp.test")
		if err == nil && (m.Issuer != "https://idp.test" || !strings.HasPrefix(m.Token, "https://") || m.Device != "" && !strings.HasPrefix(m.Device, "https://")) {
			t.Errorf("accepted: %+v", m)
		}
	})
}

func FuzzDevice(f *testing.F) {
	f.Add([]byte(`{"device_code":"d","user_code":"A","verification_uri":"https://idp.test","expires_in":600,"interval":5}`))
	f.Add([]byte(`null`))
	now := time.Now()
	f.Fuzz(func(t *testing.T, body []byte) {
		d := parseDevice(body, now)
		c, err := checkDevice(d, now)
		if err == nil && (!strings.HasPrefix(c.URL, "https://") || !printable(c.URL+c.Complete+c.Code) || c.Expires.After(now.Add(signInWithin)) || d.Interval < 0 || d.Interval > mostInterval) {
			t.Errorf("accepted: %+v", c)
		}
	})
}

func FuzzAnswerOfBrowser(f *testing.F) {
	f.Add("state=s&code=c")
	f.Add("state=s&error=access_denied&iss=https%3A%2F%2Fidp.test")
	r := &receiver{state: "s", issuer: "https://idp.test"}
	f.Fuzz(func(t *testing.T, query string) {
		code, err := r.read(&url.URL{RawQuery: query})
		q, _ := url.ParseQuery(query)
		if err == nil && (code == "" || len(code) > maxCode || q.Get("state") != "s") || err != nil && (len(err.Error()) > 1024 || !printable(err.Error())) {
			t.Errorf("%q: %q, %v", query, code, err)
		}
	})
}

package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/admission"
	"portcullis/api/apitest"
	"portcullis/attest/result"
	"portcullis/attest/result/token"
	"portcullis/cmd/portcullis/cli"
)

// desk is where results are looked at: a directory with a JWK Set, and the key.
type desk struct {
	t     *testing.T
	dir   string
	key   *ecdsa.PrivateKey
	kid   string
	nonce string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	d := &desk{t: t, dir: t.TempDir(), key: key, nonce: base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))}
	d.kid, err = token.ID(&key.PublicKey)
	check(t, err)
	keys := new(token.Keys)
	check(t, keys.Add(&key.PublicKey))
	set, err := json.Marshal(keys)
	check(t, err)
	d.write("jwks.json", string(set))
	return d
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (d *desk) path(name string) string { return filepath.Join(d.dir, name) }

func (d *desk) write(name, data string) string {
	d.t.Helper()
	check(d.t, os.WriteFile(d.path(name), []byte(data), 0o600))
	return d.path(name)
}

// claims are those of a host of which nothing is wrong, issued now.
func (d *desk) claims() *result.Claims {
	now := time.Now()
	c := &result.Claims{
		Profile: result.Profile, Issuer: "https://portcullis.example", Subject: "compute-01", ID: "x",
		IssuedAt: now.Unix(), NotBefore: now.Unix(), Expires: now.Add(result.MaxLife).Unix(), Nonce: bytes.Repeat([]byte{7}, 32),
		Submods: map[string]result.Appraisal{result.Platform: {Status: result.Affirming, Vector: result.Vector{Identity: 2, Executables: 3}}},
		Host:    result.Host{State: result.StateSealed, Phase: "verified", Sealed: true, Epoch: 4},
	}
	c.Conclude()
	return c
}

func (d *desk) sign(c *result.Claims) string {
	d.t.Helper()
	b, err := c.Encode()
	check(d.t, err)
	signed, err := token.Sign(b, d.kid, d.key)
	check(d.t, err)
	return signed
}

// verify runs the program with everything that a relying party knows, and returns its exit code and its output.
func (d *desk) verify(signed string, more ...string) (code int, out, errs string) {
	d.t.Helper()
	file := d.write("result.jwt", signed+"\n")
	args := append([]string{"result", "verify", file, "--keys", d.path("jwks.json"), "--host", "compute-01", "--issuer", "https://portcullis.example", "--nonce", d.nonce}, more...)
	var o, e strings.Builder
	code = run(d.t.Context(), args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

func TestResultVerify(t *testing.T) {
	d := newDesk(t)
	code, out, errs := d.verify(d.sign(d.claims()))
	if code != cli.ExitOK || !strings.Contains(out, "compute-01") || !strings.Contains(out, "affirming") || !strings.Contains(out, d.kid) || !strings.Contains(out, "3 affirming") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	var v struct {
		Key    string         `json:"kid"`
		Claims *result.Claims `json:"claims"`
	}
	if code, out, _ = d.verify(d.sign(d.claims()), "--json"); code != cli.ExitOK || json.Unmarshal([]byte(out), &v) != nil || v.Key != d.kid || v.Claims.Host.Epoch != 4 {
		t.Errorf("exit %d\n%s", code, out)
	}

	// Genuine, and not good enough.
	warned := d.claims()
	warned.Submods["hca-0x0000000000000001"] = result.Appraisal{Status: result.Warning}
	warned.Host.Weaknesses = []string{"settings of adapters need not be locked (require_lock: false)"}
	warned.Conclude()
	if code, out, errs = d.verify(d.sign(warned)); code != cli.ExitRefused || !strings.Contains(out, "require_lock: false") || !strings.Contains(errs, "its status is warning") {
		t.Errorf("a warning: exit %d\n%s%s", code, out, errs)
	}
	if code, _, errs = d.verify(d.sign(warned), "--accept", "warning"); code != cli.ExitOK {
		t.Errorf("a warning that is accepted: exit %d, %s", code, errs)
	}
	for _, tier := range []result.Tier{result.None, result.Contraindicated} {
		c := d.claims()
		c.Submods[result.Platform] = result.Appraisal{Status: tier}
		c.Conclude()
		if code, _, _ = d.verify(d.sign(c), "--accept", "warning"); code != cli.ExitRefused {
			t.Errorf("status %v: exit %d, want %d", tier, code, cli.ExitRefused)
		}
	}
	// As of a time at which it counted.
	old := d.claims()
	old.IssuedAt, old.NotBefore, old.Expires = 1772600767, 1772600767, 1772601367
	if code, _, errs = d.verify(d.sign(old), "--at", "2026-03-04T05:10:00Z"); code != cli.ExitOK {
		t.Errorf("as of then: exit %d, %s", code, errs)
	}
}

// TestResultVerifyRefuses: nothing that is wrong ends with 0, or shows claims.
func TestResultVerifyRefuses(t *testing.T) {
	d, other := newDesk(t), newDesk(t)
	edited := func(edit func(*result.Claims)) string { c := d.claims(); edit(c); return d.sign(c) }
	good := d.sign(d.claims())
	parts := strings.Split(good, ".")
	public, err := x509.MarshalPKIXPublicKey(&d.key.PublicKey)
	check(t, err)
	header := func(alg string) string {
		return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"` + alg + `","kid":"` + d.kid + `","typ":"eat+jwt"}`))
	}
	mac := hmac.New(sha256.New, public)
	mac.Write([]byte(header("HS256") + "." + parts[1]))
	ours := *d
	ours.key = other.key
	for _, tt := range []struct{ name, signed, says string }{
		{"alg none", header("none") + "." + parts[1] + ".", `alg "none"`},
		{"HS256 with the public key as secret", header("HS256") + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), `alg "HS256"`},
		{"wrong kid", other.sign(other.claims()), "is not known"},
		{"another key under the known kid", ours.sign(d.claims()), "the signature is not that"},
		{"tampered", parts[0] + "." + strings.Split(edited(func(c *result.Claims) { c.Host.Epoch = 5 }), ".")[1] + "." + parts[2], "the signature is not that"},
		{"oversized", strings.Repeat("a", token.MaxSize+10), "more than"},
		{"expired", edited(func(c *result.Claims) { c.IssuedAt -= 700; c.NotBefore -= 700; c.Expires -= 700 }), "expired at"},
		{"future iat", edited(func(c *result.Claims) { c.IssuedAt += 300; c.NotBefore += 300; c.Expires += 300 }), "valid from"},
		{"other issuer", edited(func(c *result.Claims) { c.Issuer = "https://evil.example" }), "issued by"},
		{"other nonce", edited(func(c *result.Claims) { c.Nonce[0]++ }), "not the one that was sent"},
		{"other host", edited(func(c *result.Claims) { c.Subject = "compute-02" }), "about host"},
		{"other profile", edited(func(c *result.Claims) { c.Profile = "tag:ietf.org,2026:rats/ear#03" }), "eat_profile"},
		{"life of a day", edited(func(c *result.Claims) { c.Expires += 86400 }), "valid for longer"},
		{"status better than its appraisals", edited(func(c *result.Claims) { c.Submods["hca-x"] = result.Appraisal{Status: result.Contraindicated} }), "appraisal"},
		{"empty", "", "parts"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, out, errs := d.verify(tt.signed)
			if code != cli.ExitError || out != "" || !strings.Contains(errs, tt.says) || !strings.Contains(errs, "hint") && tt.name != "oversized" {
				t.Errorf("exit %d, want %d with %q and no claims\n%s%s", code, cli.ExitError, tt.says, out, errs)
			}
		})
	}
}

func TestResultUsage(t *testing.T) {
	d := newDesk(t)
	file := d.write("result.jwt", d.sign(d.claims()))
	for args, says := range map[string]string{
		"result verify " + file: "--keys is missing",
		"result verify " + file + " --keys " + d.path("jwks.json") + " --nonce AAAA":  "8 to 64 bytes",
		"result verify " + file + " --keys " + d.path("jwks.json") + " --accept none": "want affirming or warning",
		"result verify " + file + " --keys " + d.path("jwks.json") + " --at noon":     "is not a date",
		"result verify " + file + " --keys " + d.path("jwks.json") + " --skew 25h":    "want 0 to 1h",
		"result rotate":                    "--reason is missing",
		"result rotate --reason r --drop":  "not done",
		"host result compute-01 --nonce x": "8 to 64 bytes",
	} {
		var out, errs strings.Builder
		if code := run(t.Context(), strings.Fields(args), strings.NewReader(""), &out, &errs); code != cli.ExitUsage || !strings.Contains(errs.String(), says) {
			t.Errorf("%s: exit %d, %s", args, code, &errs)
		}
	}
}

// TestResultFromTheService goes the whole way with the real API: ask, get keys, verify,
// rotate.
func TestResultFromTheService(t *testing.T) {
	svc := apitest.NewResults(t, nil)
	d, site := newDesk(t), apitest.NewSite(t, func(o *admission.Options) { o.Results = svc })
	site.Register("compute-01")
	site.Join("compute-01")
	site.Hand("compute-01")
	server := apitest.Start(t, site, func(o *api.Options) { o.Results = svc })
	do := func(want int, args ...string) string {
		t.Helper()
		var out, errs strings.Builder
		args = append(args, "--service", server.URL, "--ca", server.CAFile, "--token-file", server.OperatorFile)
		if code := run(t.Context(), args, strings.NewReader(""), &out, &errs); code != want {
			t.Fatalf("%q: exit %d, want %d\n%s%s", args, code, want, &out, &errs)
		}
		return out.String()
	}
	do(cli.ExitOK, "host", "result", "compute-01", "--nonce", d.nonce, "--out", d.path("result.jwt"))
	d.write("jwks.json", do(cli.ExitOK, "result", "keys", "--jwks"))
	signed, err := os.ReadFile(d.path("result.jwt"))
	check(t, err)
	// The service has no root for locks, so that it warns of the adapter.
	if code, out, errs := d.verify(strings.TrimSpace(string(signed)), "--accept", "warning"); code != cli.ExitOK {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if out := do(cli.ExitOK, "host", "result", "compute-01"); strings.Count(out, ".") != 2 {
		t.Errorf("printed %q", out)
	}
	do(cli.ExitOK, "result", "rotate", "--reason", "stolen", "--drop", "--yes")
	d.write("jwks.json", do(cli.ExitOK, "result", "keys", "--jwks"))
	if code, _, errs := d.verify(strings.TrimSpace(string(signed))); code != cli.ExitError || !strings.Contains(errs, "is not known") {
		t.Errorf("a token of a key that was taken back: exit %d, %s", code, errs)
	}
	if out := do(cli.ExitOK, "result", "keys"); !strings.Contains(out, "PUBLISHED UNTIL") {
		t.Error(errors.New(out))
	}
	do(cli.ExitError, "host", "result", "compute-09")
}

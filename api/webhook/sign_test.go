package webhook

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"portcullis/packaging/testenv"
)

const testSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwcGVyc2lzdA=="

func secretOf(t *testing.T, text string) Secret {
	t.Helper()
	s, err := ParseSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	of := func(n int) string { return secretPrefix + base64.StdEncoding.EncodeToString(make([]byte, n)) }
	for text, ok := range map[string]bool{
		testSecret: true, of(24): true, of(64): true, of(23): false, of(65): false, "": false, secretPrefix: false,
		strings.TrimPrefix(of(32), secretPrefix): false, of(24) + "\n": false, of(24)[:20] + "\n" + of(24)[20:]: false,
		strings.TrimRight(of(32), "="): false, "whsec_" + strings.Repeat("!", 40): false,
	} {
		s, err := ParseSecret(text)
		if (err == nil) != ok || s.IsZero() == ok {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil && len(text) > 20 && strings.Contains(err.Error(), text[10:20]) {
			t.Errorf("the error has the secret in it: %v", err)
		}
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	t.Parallel()
	s := secretOf(t, testSecret)
	encoded, _ := json.Marshal(s)
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", s)
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(testSecret, secretPrefix))
	all := fmt.Sprintf("%v %+v %#v %s %d %q %s %s", s, s, s, s, s, s, encoded, log.String())
	for _, part := range []string{string(key), "MfKQ9r8", hex.EncodeToString(key)[:8]} {
		if strings.Contains(all, part) {
			t.Errorf("printed: %s", all)
		}
	}
}

// TestOpenSSLJudgesSignatures has openssl compute the same HMAC.
func TestOpenSSLJudgesSignatures(t *testing.T) {
	t.Parallel()
	openssl := testenv.Program(t, "openssl")
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(testSecret, secretPrefix))
	for i, body := range []string{`{"id":"x"}`, "", "line\nline\x00\xff"} {
		at := time.Unix(1764259200+int64(i), 999)
		cmd := exec.CommandContext(t.Context(), openssl, "dgst", "-sha256", "-mac", "HMAC", "-macopt", "hexkey:"+hex.EncodeToString(key), "-binary")
		cmd.Stdin = strings.NewReader(fmt.Sprintf("evt.%d.%d.%s", i, at.Unix(), body))
		mac, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		want := "v1," + base64.StdEncoding.EncodeToString(mac)
		if got := secretOf(t, testSecret).Sign(fmt.Sprint("evt.", i), at, []byte(body)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestPublicLibraryJudgesSignatures has the Go library of Standard Webhooks verify what the sender puts into a request.
func TestPublicLibraryJudgesSignatures(t *testing.T) {
	t.Parallel()
	judge := exec.CommandContext(t.Context(), testenv.Program(t, "go"), "run", "-modfile=../../packaging/judges.mod", "./testdata/judge")
	type request struct {
		Secret  string
		Headers http.Header
		Body    []byte
	}
	secret := secretOf(t, testSecret)
	now := time.Now()
	sign := func(id, body string, at time.Time) request {
		h := http.Header{}
		setHeaders(h, &secret, id, at, []byte(body))
		return request{testSecret, h, []byte(body)}
	}
	altered, older := sign("two", `{"a":1}`, now), sign("three", `{}`, now.Add(-time.Hour))
	altered.Body = []byte(`{"a":2}`)
	renamed := sign("four", `{}`, now)
	renamed.Headers.Set(HeaderID, "five")
	var in, out, errs bytes.Buffer
	for _, r := range []request{sign("5f0c-1042-9a3c", `{"a":"é"}`, now), altered, older, renamed, sign("last", "", now)} {
		if err := json.NewEncoder(&in).Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	judge.Stdin, judge.Stdout, judge.Stderr = &in, &out, &errs
	err := judge.Run()
	if strings.Contains(errs.String(), "dial tcp") || strings.Contains(errs.String(), "module lookup disabled") {
		testenv.Need(t, fmt.Errorf("the modules of packaging/judges.mod are not at hand: %s", errs.String()))
	}
	want := "5f0c-1042-9a3c\nrefused: unable to verify payload, err: no matching signature found\nrefused: unable to verify payload, err: message timestamp too old\nrefused: unable to verify payload, err: no matching signature found\nlast\n"
	if err != nil || out.String() != want {
		t.Errorf("%v\n%s\njudged:\n%s\nwant:\n%s", err, errs.String(), out.String(), want)
	}
}

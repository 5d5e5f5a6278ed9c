package client

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"portcullis/fabricsm/ib"
)

// TestSource: each request shows the token that the source returns then, and is not sent where the source has none. Another credential
// takes the place of the source.
func TestSource(t *testing.T) {
	t.Parallel()
	var shown []string
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown = append(shown, r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, `{"name":"olga","providers":[]}`)
	}))
	defer s.Close()
	n, broken := 0, errors.New("the session has ended")
	source := func(context.Context) (ib.SecretText, error) {
		if n++; n == 3 {
			return ib.SecretText{}, broken
		}
		return ib.NewSecretText([]string{"", "first", "second"}[n]), nil
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	c, err := New(Options{URL: s.URL, CA: ca, Source: source})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 2 {
		if _, err := c.WhoAmI(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.WhoAmI(t.Context()); !errors.Is(err, broken) {
		t.Errorf("without a token: %v", err)
	}
	if _, err := c.WithToken("third").WhoAmI(t.Context()); err != nil {
		t.Error(err)
	}
	plain, err := New(Options{URL: s.URL, CA: ca, Token: "pcop"})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := plain.Logins(t.Context()); err != nil {
		t.Error(err)
	}
	n = 0
	if _, err := plain.WithSource(source).WhoAmI(t.Context()); err != nil {
		t.Error(err)
	}
	want := []string{"Bearer first", "Bearer second", "Bearer third", "Bearer pcop", "Bearer first"}
	if len(shown) != len(want) {
		t.Fatalf("shown: %q, want %q", shown, want)
	}
	for i := range want {
		if shown[i] != want[i] {
			t.Errorf("request %d shows %q, want %q", i, shown[i], want[i])
		}
	}
}

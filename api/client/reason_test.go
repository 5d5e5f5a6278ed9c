package client_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
)

// TestReasonOfRequests: requests that change something have the reason of the client, or that of their context, in the header or in their body and
// never in both.
func TestReasonOfRequests(t *testing.T) {
	t.Parallel()
	var got []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+strings.Join(r.Header.Values(v1.ReasonHeader), "|"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(server.Close)
	c, err := client.New(client.Options{URL: server.URL, CA: pemOf(server.Certificate().Raw), Token: "t", Reason: " Tür 7 "})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for _, do := range []func() error{
		func() error { _, err := c.Tenants().Get(ctx, "acme"); return err },
		func() error { return c.Tenants().Delete(ctx, "acme") },
		func() error { return c.Tenants().Delete(client.Because(ctx, "job 8"), "acme") },
		func() error { return c.Tenants().Delete(client.Because(ctx, ""), "acme") },
		func() error {
			_, err := c.Results().RotateKey(ctx, v1.ResultRotation{Reason: "yearly"})
			return err
		},
		func() error {
			_, err := c.References().Approve(ctx, "c", 1, v1.ReferenceApprove{})
			return err
		},
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"GET ", "DELETE T%C3%BCr%207", "DELETE job%208", "DELETE ", "POST ", "POST T%C3%BCr%207"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q, want %q", got, want)
	}
	for _, bad := range []string{"a\nb", " ", strings.Repeat("x", v1.MaxReason+1), "\u202ex"} {
		if _, err := client.New(client.Options{URL: server.URL, Token: "t", Reason: bad}); err == nil || !strings.Contains(err.Error(), "reason") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

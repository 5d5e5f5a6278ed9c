package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"portcullis/api/credential"
	v1 "portcullis/api/v1"
	"portcullis/api/webhook"
)

// receiver is a server that events are sent to. It refuses what is not signed.
type receiver struct {
	*httptest.Server
	secret webhook.Secret

	mu    sync.Mutex
	types []string
	wrong []string
}

func newReceiver(t *testing.T, secret string) *receiver {
	t.Helper()
	r := &receiver{}
	var err error
	if r.secret, err = webhook.ParseSecret(secret); err != nil {
		t.Fatal(err)
	}
	r.Server = httptest.NewTLSServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	var e v1.CloudEvent
	if err == nil {
		err = json.Unmarshal(body, &e)
	}
	at, _ := strconv.ParseInt(req.Header.Get("webhook-timestamp"), 10, 64)
	id := req.Header.Get("webhook-id")
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || e.ID != id || req.Header.Get("webhook-signature") != r.secret.Sign(id, time.Unix(at, 0), body) {
		r.wrong = append(r.wrong, fmt.Sprintf("%v: %s", err, body))
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	r.types = append(r.types, e.Type+" "+e.Data.Cause)
}

func (r *receiver) has(kind string) func() (bool, string) {
	return func() (bool, string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, got := range r.types {
			if strings.HasPrefix(got, kind) {
				return len(r.wrong) == 0, fmt.Sprint(r.types, r.wrong)
			}
		}
		return false, fmt.Sprint(r.types, r.wrong)
	}
}

// TestWebhooks: an event reaches a server, signed; a restart loses none that happens meanwhile; a server on an address that is refused gets nothing.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwcGVyc2lzdA=="
	siem := newReceiver(t, secret)
	dir, address := install(t, "--fabric-port", nobody())
	write(t, filepath.Join(dir, "hook.secret"), secret+"\n")
	write(t, filepath.Join(dir, "hook.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: siem.Certificate().Raw})))
	edit(t, dir, map[string]string{
		"  allow: []": "  allow: [127.0.0.1/32]",
		"  to: []":    fmt.Sprintf("  to:\n  - {name: siem, url: %q, secret: hook.secret, ca: hook.pem}\n  - {name: other, url: 'https://[::1]:1/', secret: hook.secret, severity: critical}\n", siem.URL+"/hook?key=hidden"),
	})
	d := start(t, dir)
	c, ctx := operator(t, dir, address), t.Context()
	eventually(t, "a position", func() (bool, string) {
		list, err := c.Webhooks().List(ctx)
		return err == nil && len(list.Items) == 2 && list.Items[0].Position != "", fmt.Sprintf("%+v, %v", list, err)
	})
	if list, err := c.Webhooks().List(ctx); err != nil || list.Items[0].URL != siem.URL+"/hook" {
		t.Errorf("%+v, %v", list, err)
	}
	if got, err := c.Webhooks().Test(ctx, "siem"); err != nil || got.Error != "" {
		t.Errorf("test: %+v, %v", got, err)
	}
	if got, err := c.Webhooks().Test(ctx, "other"); err != nil || !strings.Contains(got.Error, "::1 is loopback") {
		t.Errorf("an address that is refused: %+v, %v", got, err)
	}
	eventually(t, "a test", siem.has("portcullis.webhook.test"))

	tokenEnds(t, dir, "short", time.Hour)
	d.hup()
	eventually(t, "an event", siem.has("portcullis.token.ends soon"))
	d.stop()
	tokenEnds(t, dir, "over", -time.Hour)
	start(t, dir)
	eventually(t, "an event of the second run", siem.has("portcullis.token.ends ended"))
	if text := fetch(t, dir, address, "/metrics"); !strings.Contains(text, `portcullis_webhook_messages_total{result="delivered",webhook="siem"}`) {
		t.Error("metrics lack the webhook")
	}
}

// tokenEnds adds a token to those of a service, which ends some time from now.
func tokenEnds(t *testing.T, dir, name string, after time.Duration) {
	t.Helper()
	file := filepath.Join(dir, "tokens.yaml")
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, digest := credential.New()
	write(t, file, string(old)+fmt.Sprintf("- {name: %s, role: viewer, sha256: %s, expires: %s}\n", name, digest, time.Now().Add(after).UTC().Format(time.RFC3339)))
}

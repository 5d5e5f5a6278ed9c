package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const webhookOfTests = "{name: siem, url: 'https://siem.test/hook?key=1', secret: hook.secret}"

// TestWebhooks: each mistake is reported with its key.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	with := func(more string) string { return strings.Replace(webhookOfTests, "}", ", "+more+"}", 1) }
	for _, tt := range []struct{ in, want string }{
		{"to: [" + webhookOfTests + "]", ""},
		{"to: [" + with("types: [lock.changed], severity: warning, ca: ca.pem") + "], allow: [127.0.0.0/8], only: [10.0.0.0/8, 'fd00::/8']", ""},
		{"to: [{}]", "webhooks.to.0.name: "},
		{"to: [" + strings.Replace(webhookOfTests, "siem", "a/b", 1) + "]", "webhooks.to.0.name: "},
		{"to: [" + strings.Replace(webhookOfTests, "https", "http", 1) + "]", "webhooks.to.0.url: want https://"},
		{"to: [" + strings.Replace(webhookOfTests, ", secret: hook.secret", "", 1) + "]", "webhooks.to.0.secret: "},
		{"to: [" + strings.Replace(webhookOfTests, "hook.secret", "'credential:a/b'", 1) + "]", "webhooks.to.0.secret: "},
		{"to: [" + with("types: [lock.opened]") + "]", `"lock.opened" is no type of event`},
		{"to: [" + with("severity: high") + "]", "webhooks.to.0.severity: "},
		{"to: [" + with("cert: a.pem") + "]", "webhooks.to.0.cert: "},
		{"to: [" + webhookOfTests + "," + webhookOfTests + "]", "webhooks.to.1.name: siem is named twice"},
		{"to: [" + strings.Repeat(webhookOfTests+",", 17) + "]", "webhooks.to: 17 of them"},
		{"allow: [10.0.0.0]", "webhooks.allow.0: "},
		{"only: [10.0.0.1/8]", "webhooks.only.0: "},
		{"only: [" + strings.Repeat("10.0.0.0/8,", 65) + "]", "webhooks.only: 65 of them"},
	} {
		_, err := Parse("c.yaml", []byte("webhooks: {"+tt.in+"}\n"))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.in, err, tt.want)
		}
	}
}

// TestWebhookFiles: files are read by --check, too, and no error has a secret in it.
func TestWebhookFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, data := range map[string]string{
		"good": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwcGVyc2lzdA==\n", "bare": "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwcGVyc2lzdA==", "short": "whsec_c2hvcnQ=",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for in, want := range map[string]string{
		"secret: good":              "",
		"secret: bare":              "webhooks.to.0.secret: bare: want whsec_",
		"secret: short":             "webhooks.to.0.secret: short: want whsec_",
		"secret: none":              "webhooks.to.0.secret: ",
		"secret: good, ca: good":    "webhooks.to.0.ca: ",
		"secret: good, ca: missing": "webhooks.to.0.ca: ",
	} {
		c, err := Parse(filepath.Join(dir, "c.yaml"), []byte("webhooks: {to: ["+strings.Replace(webhookOfTests, "secret: hook.secret", in, 1)+"]}\n"))
		if err != nil {
			t.Fatal(err)
		}
		list, err := loadWebhooks(c, time.Now())
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "MfKQ9r8")) {
			t.Errorf("%s: error %v, want %q", in, err, want)
		}
		if err == nil && (len(list) != 1 || list[0].Name != "siem" || list[0].URL != "https://siem.test/hook") {
			t.Errorf("%s: %+v", in, list)
		}
	}
}

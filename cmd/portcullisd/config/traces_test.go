package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTraces: each mistake is reported with its key, and without a password.
func TestTraces(t *testing.T) {
	t.Parallel()
	const good = "endpoint: 'https://c.test:4318/v1/traces'"
	for in, want := range map[string]string{
		"": "",
		good + ", ca: a, cert: b, key: c, headers: d, sample: 0.1":     "",
		"endpoint: 'http://127.0.0.1:4318/v1/traces', headers: d":      "",
		good + ", headers: 'credential:otlp', sample: 0":               "",
		"endpoint: 'https://u:MfKQ9@c.test/v1/traces'":                 "traces.endpoint: a password in a URL gets into logs",
		"endpoint: 'http://c.test:4318/v1/traces'":                     "traces.endpoint: over http",
		"endpoint: 'https://c.test:4318'":                              "traces.endpoint: want the path, too",
		"endpoint: 'http://127.0.0.1:4318/v1/traces', ca: a":           "traces: ca, cert and key are of connections by TLS",
		"endpoint: 'http://127.0.0.1:4318/v1/traces', cert: a, key: b": "traces: ca, cert and key are of connections by TLS",
		good + ", cert: b":                   "traces.cert: ",
		good + ", sample: 1.5":               "traces.sample: 1.5: want 0 to 1",
		good + ", sample: -1":                "traces.sample: -1: want 0 to 1",
		good + ", sample: .nan":              "traces.sample: NaN: want 0 to 1",
		good + ", headers: 'credential:a/b'": "traces.headers: ",
		"ca: a":                              "traces.ca: \"a\" is of no use without traces.endpoint",
		"headers: a":                         "traces.headers: \"a\" is of no use without traces.endpoint",
		"cert: a, key: b":                    "traces.cert: \"a\" is of no use without traces.endpoint",
		good + ", proxy: x":                  "proxy",
	} {
		_, err := Parse("c.yaml", []byte("traces: {"+in+"}\n"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", in, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "MfKQ9") {
			t.Errorf("%s: the error has a password: %v", in, err)
		}
	}
}

// TestTraceFiles: files are read by --check, too, and neither errors nor options show what is secret.
func TestTraceFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	many := ""
	for n := range 17 {
		many += fmt.Sprintf("X-%d: y\n", n)
	}
	for name, data := range map[string]string{
		"good": "Authorization: Bearer MfKQ9r8\r\nX-Scope-OrgID: a:b\n", "name": "MfKQ9r8\n", "blank": "X-Key:\n", "ours": "Content-Type: MfKQ9r8\n",
		"twice": "X-Key: a\nx-key: MfKQ9r8\n", "odd": "X-Key: MfKQ9r8\x01\n", "space": "X Key: MfKQ9r8\n", "gap": "X-Key: MfKQ9r8\n\nX-More: x\n", "many": many,
		"long": "X-Key: " + strings.Repeat("x", maxHeaderValue+1) + "\n", "empty": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "open"), []byte("X-Key: MfKQ9r8\n"), 0o644); err != nil { //nolint:gosec // this is the mistake
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"": "", "headers: good": "", "headers: name": "name:1: want NAME: VALUE", "headers: space": "space:1: want NAME: VALUE", "headers: blank": "blank:1: value of X-Key",
		"headers: odd": "odd:1: value of X-Key", "headers: ours": "ours:1: Content-Type is a header that the service sets", "headers: twice": "twice:2: x-key is named twice",
		"headers: gap": "gap:2: want NAME: VALUE", "headers: many": "many:17: want at most 16", "headers: long": "long:1: value of X-Key", "headers: empty": "empty:1: want NAME",
		"headers: open": "traces.headers: ", "headers: none": "traces.headers: ", "ca: good": "traces.ca: ", "cert: none, key: good": "traces.cert: ",
	} {
		text := "endpoint: 'https://c.test:4318/v1/traces', sample: 0.5"
		if in != "" {
			text += ", " + in
		}
		c, err := Parse(filepath.Join(dir, "c.yaml"), []byte("traces: {"+text+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		o, err := loadTraces(c, time.Now())
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "MfKQ9r8")) {
			t.Errorf("%s: error %v, want %q", in, err, want)
		}
		if err == nil && (o == nil || o.URL != "https://c.test:4318/v1/traces" || o.Sample != 0.5 || strings.Contains(fmt.Sprintf("%+v", o), "MfKQ9r8")) {
			t.Errorf("%s: %+v", in, o)
		}
		if in == "headers: good" && (len(o.Headers) != 2 || o.Headers[0].Name != "Authorization" || o.Headers[0].Value.Reveal() != "Bearer MfKQ9r8" || o.Headers[1].Value.Reveal() != "a:b") {
			t.Errorf("headers %+v", o.Headers)
		}
	}
	if o, err := loadTraces(Default(), time.Now()); o != nil || err != nil {
		t.Errorf("without a collector %+v, %v", o, err)
	}
}

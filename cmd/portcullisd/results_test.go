package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/apitest"
	"portcullis/attest/result"
)

// TestInitSignsResults: a fresh installation has a root for the keys of its own, which is
// not that of another secret.
func TestInitSignsResults(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etc")
	var out, errs strings.Builder
	args := []string{"init", "--dir", dir, "--names", "fabric.example,192.0.2.1", "--listen", "192.0.2.1:9443"}
	if code := run(t.Context(), args, nil, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	c, err := loadConfig(filepath.Join(dir, "portcullisd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Results.Root != "results.root" || c.Results.Issuer != "https://fabric.example:9443" || c.Locks.Root != "locks.root" || c.Fabric.Keys.Root != "keys.root" {
		t.Errorf("results %+v, locks %+v, keys root %q", c.Results, c.Locks, c.Fabric.Keys.Root)
	}
	p, err := loadParts(c)
	if err != nil || p.results == nil || p.results.Issuer != c.Results.Issuer || p.results.Period != 30*24*time.Hour {
		t.Fatalf("parts %+v, %v", p, err)
	}
	seen := map[string]string{}
	for _, name := range []string{"keys.root", "locks.root", "results.root"} {
		secret, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if other := seen[string(secret)]; other != "" {
			t.Errorf("%s is %s", name, other)
		}
		seen[string(secret)] = name
	}
	if err := os.Chmod(filepath.Join(dir, "results.root"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := loadParts(c); err == nil || !strings.Contains(err.Error(), "results.root") {
		t.Errorf("a root that others can read: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "results.root")); err != nil {
		t.Fatal(err)
	}
	if _, err := loadParts(c); err == nil || !strings.Contains(err.Error(), "results.root") {
		t.Errorf("a root that is not there: %v", err)
	}
}

func TestResultsConfig(t *testing.T) {
	for _, tt := range []struct{ section, says string }{
		{"{root: r}", "belong together"},
		{"{issuer: https://x}", "belong together"},
		{"{root: r, issuer: 'a b'}", "printable"},
		{"{key_life: 1m}", "results.key_life"},
		{"{keylife: 1h}", "keylife"},
		{"{root: r, issuer: https://x, key_life: 0s}", ""},
	} {
		_, err := parseConfig("portcullisd.yaml", []byte("results: "+tt.section+"\n"))
		if tt.says == "" && err != nil || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%s: %v, want %q", tt.section, err, tt.says)
		}
	}
}

func TestSignedResultsAreCounted(t *testing.T) {
	svc := apitest.NewResults(t, nil)
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(newSignedResults(svc))
	c := &result.Claims{Submods: map[string]result.Appraisal{result.Platform: {Status: result.Warning}}}
	c.Conclude()
	if _, err := svc.Sign(t.Context(), c, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "portcullis_attestation_results_total" {
		t.Fatalf("%v, %v", families, err)
	}
	for _, m := range families[0].GetMetric() {
		want := 0.0
		if m.GetLabel()[0].GetValue() == "warning" {
			want = 1
		}
		if got := m.GetCounter().GetValue(); got != want {
			t.Errorf("%v: %v, want %v", m.GetLabel(), got, want)
		}
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/api/ca"
	"portcullis/cmd/portcullisd/command"
	"portcullis/cmd/portcullisd/config"
)

// A certificate that has ended is refused by --check, and not by a start: the fabric needs its Subnet Manager.
func TestCheckRefusesAnEndedCertificate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "etc")
	var out, errs strings.Builder
	if code := run(t.Context(), []string{"init", "--dir", dir, "--names", "fabric.example", "--fabric-port", "ibsim:lab/H1"}, time.Now, nil, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	file := filepath.Join(dir, "portcullisd.yaml")
	check := func() (int, string) {
		var out, errs strings.Builder
		return run(t.Context(), []string{"--config", file, "--check"}, time.Now, nil, &out, &errs), errs.String()
	}
	if code, errs := check(); code != 0 {
		t.Fatalf("a fresh configuration: exit code %d: %s", code, errs)
	}
	past := time.Now().Add(-10 * 365 * 24 * time.Hour)
	root, err := ca.New("root", past)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := root.IssueServer([]string{"fabric.example"}, past)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "tls/server.pem"), string(pair.Cert))
	write(t, filepath.Join(dir, "tls/server.key"), string(pair.Key))
	if err := os.Chmod(filepath.Join(dir, "tls/server.key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, errs := check(); code != command.ExitError || !strings.Contains(errs, "server.pem") || !strings.Contains(errs, "ends at ") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	c, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := config.ReadFiles(c); err != nil {
		t.Errorf("a start: %v", err)
	}
}

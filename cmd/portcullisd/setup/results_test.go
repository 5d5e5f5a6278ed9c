package setup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/cmd/portcullisd/config"
)

// TestInitSignsResults: a fresh installation has a root for the keys of its own, which is
// not that of another secret.
func TestInitSignsResults(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "etc")
	var out, errs strings.Builder
	args := []string{"init", "--dir", dir, "--names", "fabric.example,192.0.2.1", "--listen", "192.0.2.1:9443"}
	if code := run(args, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	c, err := config.Load(filepath.Join(dir, "portcullisd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Results.Root != "results.root" || c.Results.Issuer != "https://fabric.example:9443" || c.Locks.Root != "locks.root" || c.Fabric.Keys.Root != "keys.root" {
		t.Errorf("results %+v, locks %+v, keys root %q", c.Results, c.Locks, c.Fabric.Keys.Root)
	}
	p, err := config.ReadFiles(c)
	if err != nil || p.Results == nil || p.Results.Issuer != c.Results.Issuer || p.Results.Period != 30*24*time.Hour {
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
	if _, err := config.ReadFiles(c); err == nil || !strings.Contains(err.Error(), "results.root") {
		t.Errorf("a root that others can read: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "results.root")); err != nil {
		t.Fatal(err)
	}
	if _, err := config.ReadFiles(c); err == nil || !strings.Contains(err.Error(), "results.root") {
		t.Errorf("a root that is not there: %v", err)
	}
}

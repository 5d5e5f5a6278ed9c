package main

import (
	"crypto/tls"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api"
	"portcullis/api/ca"
	"portcullis/cmd/portcullisd/command"
	"portcullis/cmd/portcullisd/config"
	"portcullis/cmd/portcullisd/metrics"
	"portcullis/cmd/portcullisd/readiness"
	"portcullis/cmd/portcullisd/setup"
)

func TestInit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etc")
	var out, errs strings.Builder
	args := []string{"init", "--dir", dir, "--names", "fabric.example,192.0.2.1", "--listen", "192.0.2.1:9443", "--fabric-port", "ibsim:lab/H1"}
	if code := run(t.Context(), args, nil, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	c, err := config.Load(filepath.Join(dir, "portcullisd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "192.0.2.1:9443" || c.Fabric.Port != "ibsim:lab/H1" || c.StateDir != config.Default().StateDir {
		t.Errorf("configuration %+v, want the given listen address and port, and the rest as default", c)
	}
	p, err := config.ReadFiles(c)
	if err != nil {
		t.Fatal(err)
	}
	token, err := os.ReadFile(filepath.Join(dir, "operator.token"))
	if err != nil {
		t.Fatal(err)
	}
	if who, ok := p.Tokens.Find(strings.TrimSpace(string(token)), time.Now()); !ok || who.Name != "operator" || who.Role != api.RoleOperator || who.PKeys != nil {
		t.Errorf("the operator token belongs to %+v, %v", who, ok)
	}
	if strings.Contains(out.String(), strings.TrimSpace(string(token))) {
		t.Error("the token was printed")
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls/server.pem"), filepath.Join(dir, "tls/server.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := pair.Leaf.VerifyHostname("fabric.example"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"tls/ca.key", "tls/server.key", "tokens.yaml", "operator.token"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", name, info.Mode())
		}
	}
}

func TestInitNeverOverwrites(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "tokens.yaml"), "mine")
	var out, errs strings.Builder
	if code := run(t.Context(), []string{"init", "--dir", dir}, nil, &out, &errs); code != 1 {
		t.Fatalf("exit code %d, want 1", code)
	}
	if !strings.Contains(errs.String(), "tokens.yaml exists") || !strings.Contains(errs.String(), "hint: nothing was written") {
		t.Errorf("standard error: %s", &errs)
	}
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) != 1 {
		t.Errorf("files %v, %v; want only the one that was there", files, err)
	}
}

// TestInitKeepsRoots: roots that a purge leaves, since they open the state, are used by the next installation.
func TestInitKeepsRoots(t *testing.T) {
	dir := t.TempDir()
	for _, name := range setup.Roots {
		write(t, filepath.Join(dir, name), "kept "+name)
	}
	var out, errs strings.Builder
	if code := run(t.Context(), []string{"init", "--dir", dir, "--names", "localhost"}, nil, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	for _, name := range setup.Roots {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(data) != "kept "+name {
			t.Errorf("%s has %q, %v: without its content parts of the state never open", name, data, err)
		}
		if !strings.Contains(out.String(), "Kept "+filepath.Join(dir, name)) {
			t.Errorf("init does not say that it kept %s: %s", name, &out)
		}
	}
	for _, name := range []string{"portcullisd.yaml", "tokens.yaml", "tls/ca.pem", "tls/server.key"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestInitRefusesBadValues(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	var out, errs strings.Builder
	if code := run(t.Context(), []string{"init", "--dir", dir, "--listen", "nowhere"}, nil, &out, &errs); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("something was written")
	}
}

func TestToken(t *testing.T) {
	var out, errs strings.Builder
	if code := run(t.Context(), []string{"token", "--name", "vic", "--role", "viewer"}, nil, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	_, entry, _ := strings.Cut(errs.String(), "\n")
	tokens, err := api.ParseTokens("t", []byte("tokens:\n"+entry))
	if err != nil {
		t.Fatal(err)
	}
	if who, ok := tokens.Find(strings.TrimSpace(out.String()), time.Now()); !ok || who.Name != "vic" || who.Role != api.RoleViewer {
		t.Errorf("token belongs to %+v, %v", who, ok)
	}
	for _, args := range [][]string{
		{"token"},
		{"token", "--name", "a", "--role", "root"},
		{"token", "--role", "viewer"},
		{"token", "--name", "a", "--role", "operator", "--hosts", "gpu-*"},
		{"token", "--name", "a", "--role", "operator", "--p-keys", "0x7fff"},
	} {
		if code := run(t.Context(), args, nil, &out, &errs); code != command.ExitUsage {
			t.Errorf("%v: exit code %d, want 2", args, code)
		}
	}
}

// A certificate that has ended is refused by --check, and not by a start: the fabric needs its Subnet Manager.
func TestCheckRefusesAnEndedCertificate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etc")
	var out, errs strings.Builder
	if code := run(t.Context(), []string{"init", "--dir", dir, "--names", "fabric.example", "--fabric-port", "ibsim:lab/H1"}, nil, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	file := filepath.Join(dir, "portcullisd.yaml")
	check := func() (int, string) {
		var out, errs strings.Builder
		return run(t.Context(), []string{"--config", file, "--check"}, nil, &out, &errs), errs.String()
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
	p, err := config.ReadFiles(c)
	if err != nil {
		t.Fatalf("a start: %v", err)
	}
	var log strings.Builder
	s := &service{parts: p, log: slog.New(slog.NewTextHandler(&log, nil)), status: readiness.New(func(string) {})}
	s.tellCertificate(time.Now())
	if got := s.status.Conditions(t.Context()); len(got) != 1 || got[0].Name != readiness.API || got[0].OK {
		t.Errorf("with a certificate that has ended, the parts are %+v", got)
	}
	if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "systemctl reload portcullisd") {
		t.Errorf("the journal says %q", &log)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics.NewCertificateEnd(p.Cert))
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetMetric()[0].GetGauge().GetValue() != float64(p.Cert.Ends().Unix()) {
		t.Errorf("metrics %v, %v", families, err)
	}
}

// TestTokenThatIsConfined reads the entry for a scheduler's token as the service does.
func TestTokenThatIsConfined(t *testing.T) {
	var out, errs strings.Builder
	if code := run(t.Context(), []string{"token", "--name", "slurm", "--role", "operator", "--p-keys", "0x0100-0x01ff, 0x0300", "--hosts", "gpu-*,login-1"}, nil, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	_, entry, _ := strings.Cut(errs.String(), "\n")
	tokens, err := api.ParseTokens("tokens.yaml", []byte("tokens:\n"+entry))
	if err != nil {
		t.Fatalf("%v in\n%s", err, entry)
	}
	who, known := tokens.Find(strings.TrimSpace(out.String()), time.Now())
	if !known || len(who.PKeys) != 2 || !slices.Equal(who.Hosts, []string{"gpu-*", "login-1"}) {
		t.Errorf("the token is %+v, %v", who, known)
	}
}

package setup

import (
	"crypto/tls"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/credential"
	"portcullis/cmd/portcullisd/command"
	"portcullis/cmd/portcullisd/config"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
)

func TestInit(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "etc")
	var out, errs strings.Builder
	args := []string{"init", "--dir", dir, "--names", "fabric.example,192.0.2.1", "--listen", "192.0.2.1:9443", "--fabric-port", "ibsim:lab/H1"}
	if code := run(args, &out, &errs); code != 0 {
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
	if who, ok := p.Tokens.Find(strings.TrimSpace(string(token)), time.Now()); !ok || who.Name != "operator" || who.Role != credential.Operator || who.PKeys != nil {
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
	for _, name := range []string{"tls/ca.key", "tls/server.key", "tokens.yaml", "operator.token", "sm.key"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", name, info.Mode())
		}
	}
}

// TestInitProfiles: each profile has its settings, and those of the profiles before it.
func TestInitProfiles(t *testing.T) {
	t.Parallel()
	key := ""
	for _, tt := range []struct {
		args           []string
		allowed, class bool
	}{
		{[]string{"--profile", "general"}, false, false},
		{[]string{"--profile", "bare-metal-cloud"}, true, false},
		{[]string{"--profile", "secured-bare-metal-cloud"}, true, true},
		{nil, true, true},
	} {
		dir := filepath.Join(t.TempDir(), "etc")
		var out, errs strings.Builder
		if code := run(append([]string{"init", "--dir", dir, "--names", "localhost"}, tt.args...), &out, &errs); code != 0 {
			t.Fatalf("%v: exit code %d: %s", tt.args, code, &errs)
		}
		c, err := config.Load(filepath.Join(dir, "portcullisd.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		core, err := c.Fabric.Core(c.Path)
		if err != nil {
			t.Fatal(err)
		}
		if keys.Check(keys.New(core.SMKey.Reveal())) != nil {
			t.Errorf("%v: there is no good SM_Key", tt.args)
		}
		if none := slices.Equal(core.Election.Allowed, []sm.AllowedSM{{}}); none != tt.allowed {
			t.Errorf("%v: allowed are %v", tt.args, core.Election.Allowed)
		}
		k := &core.ClassKeys
		for _, class := range []sm.ClassKeyConfig{k.CC, k.VS, k.N2N} {
			if on := class.Enable == sm.KeyEnabled; on != tt.class || class.Readable {
				t.Errorf("%v: class keys are %+v", tt.args, *k)
			}
		}
		drawn, err := os.ReadFile(filepath.Join(dir, "sm.key"))
		if err != nil || string(drawn) == key {
			t.Errorf("%v: the SM_Key is the one before: %v", tt.args, err)
		}
		key = string(drawn)
		if strings.Contains(out.String(), strings.TrimSpace(key)) {
			t.Error("the SM_Key was printed")
		}
	}
	var out, errs strings.Builder
	if code := run([]string{"init", "--dir", filepath.Join(t.TempDir(), "etc"), "--profile", "best"}, &out, &errs); code == 0 || !strings.Contains(errs.String(), `"best" is not known`) {
		t.Errorf("a profile that does not exist: exit code %d, %s", code, &errs)
	}
}

func TestInitNeverOverwrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "tokens.yaml"), "mine")
	var out, errs strings.Builder
	if code := run([]string{"init", "--dir", dir}, &out, &errs); code != 1 {
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
	t.Parallel()
	dir := t.TempDir()
	for _, name := range Roots {
		write(t, filepath.Join(dir, name), "kept "+name)
	}
	var out, errs strings.Builder
	if code := run([]string{"init", "--dir", dir, "--names", "localhost"}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	for _, name := range Roots {
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
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	var out, errs strings.Builder
	if code := run([]string{"init", "--dir", dir, "--listen", "nowhere"}, &out, &errs); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("something was written")
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	var out, errs strings.Builder
	if code := run([]string{"token", "--name", "vic", "--role", "viewer"}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	_, entry, _ := strings.Cut(errs.String(), "\n")
	tokens, err := credential.Parse("t", []byte("tokens:\n"+entry))
	if err != nil {
		t.Fatal(err)
	}
	if who, ok := tokens.Find(strings.TrimSpace(out.String()), time.Now()); !ok || who.Name != "vic" || who.Role != credential.Viewer {
		t.Errorf("token belongs to %+v, %v", who, ok)
	}
	for _, args := range [][]string{
		{"token"},
		{"token", "--name", "a", "--role", "root"},
		{"token", "--role", "viewer"},
		{"token", "--name", "a", "--role", "operator", "--hosts", "gpu-*"},
		{"token", "--name", "a", "--role", "operator", "--p-keys", "0x7fff"},
	} {
		if code := run(args, &out, &errs); code != command.ExitUsage {
			t.Errorf("%v: exit code %d, want 2", args, code)
		}
	}
}

// TestTokenThatIsConfined reads the entry for a scheduler's token as the service does.
func TestTokenThatIsConfined(t *testing.T) {
	t.Parallel()
	var out, errs strings.Builder
	if code := run([]string{"token", "--name", "slurm", "--role", "operator", "--p-keys", "0x0100-0x01ff, 0x0300", "--hosts", "gpu-*,login-1"}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	_, entry, _ := strings.Cut(errs.String(), "\n")
	tokens, err := credential.Parse("tokens.yaml", []byte("tokens:\n"+entry))
	if err != nil {
		t.Fatalf("%v in\n%s", err, entry)
	}
	who, known := tokens.Find(strings.TrimSpace(out.String()), time.Now())
	if !known || len(who.PKeys) != 2 || !slices.Equal(who.Hosts, []string{"gpu-*", "login-1"}) {
		t.Errorf("the token is %+v, %v", who, known)
	}
}

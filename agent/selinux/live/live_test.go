package live

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"portcullis/packaging/testenv"
)

// system makes a system of files.
func system(t *testing.T, files map[string]string) System {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return System{Sysfs: filepath.Join(root, "sys"), Procfs: filepath.Join(root, "proc"), Root: root}
}

func compressed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestMode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		files map[string]string
		want  Mode
	}{
		{nil, Off},
		{map[string]string{"sys/fs/selinux/enforce": "0"}, Permissive},
		{map[string]string{"sys/fs/selinux/enforce": "1"}, Enforcing},
	} {
		if got, err := system(t, tt.files).Mode(); err != nil || got != tt.want {
			t.Errorf("%v: mode %v, %v, want %v", tt.files, got, err, tt.want)
		}
	}
}

func TestChecks(t *testing.T) {
	t.Parallel()
	const (
		release = "6.1.0-56-amd64\n"
		without = "# CONFIG_SECURITY_INFINIBAND is not set\n"
		with    = "CONFIG_SECURITY=y\nCONFIG_SECURITY_INFINIBAND=y\n"
		other   = "0000000000000000 T security_ib_pkey_access_of_another\n"
	)
	for name, tt := range map[string]struct {
		files  map[string]string
		checks bool
		source string // "" is ErrUnknown
	}{
		"a symbol": {
			map[string]string{"proc/kallsyms": other + "0000000000000000 T security_ib_pkey_access\n"}, true, "proc/kallsyms",
		},
		"no symbol, whatever a file says": {
			map[string]string{"proc/kallsyms": other, "boot/config-6.1.0-56-amd64": with, "proc/sys/kernel/osrelease": release}, false, "proc/kallsyms",
		},
		"hidden symbols": {
			map[string]string{"proc/kallsyms": "", "proc/config.gz": compressed(t, with)}, true, "proc/config.gz",
		},
		"Debian's generic kernel": {
			map[string]string{"boot/config-6.1.0-56-amd64": without, "proc/sys/kernel/osrelease": release}, false, "boot/config-6.1.0-56-amd64",
		},
		"Fedora's": {
			map[string]string{"lib/modules/6.1.0-56-amd64/config": with, "proc/sys/kernel/osrelease": release}, true, "lib/modules/6.1.0-56-amd64/config",
		},
		"another kernel's configuration": {
			map[string]string{"boot/config-6.1.0-55-amd64": with, "proc/sys/kernel/osrelease": release}, false, "",
		},
	} {
		s := system(t, tt.files)
		checks, source, err := s.Checks()
		if tt.source == "" {
			if !errors.Is(err, ErrUnknown) {
				t.Errorf("%s: %v by %s, %v, want %v", name, checks, source, err, ErrUnknown)
			}
			continue
		}
		if err != nil || checks != tt.checks || source != filepath.Join(s.Root, tt.source) {
			t.Errorf("%s: %v by %s, %v, want %v by %s", name, checks, source, err, tt.checks, tt.source)
		}
	}
}

func TestChecksNeverallow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want bool
	}{
		{"module-store = direct\nexpand-check=0\n", false},
		{"expand-check = 0 # as delivered\n", false},
		{"expand-check=1\n", true},
		{"# expand-check=0\n", true},
	} {
		s := system(t, map[string]string{"etc/selinux/semanage.conf": tt.text})
		if got, err := s.ChecksNeverallow(); err != nil || got != tt.want {
			t.Errorf("%q: %v, %v, want %v", tt.text, got, err, tt.want)
		}
	}
	if got, err := system(t, nil).ChecksNeverallow(); err != nil || !got {
		t.Errorf("no file: %v, %v, want the default, which is to check", got, err)
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "policy")
	out, err := exec.Command(testenv.Program(t, "secilc"), "-M", "true", "-c", "33", "-o", file, "-f", os.DevNull, "../testdata/base.cil").CombinedOutput()
	if err != nil {
		t.Fatalf("secilc: %v: %s", err, out)
	}
	policy, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const config = "# comment\nSELINUX=enforcing\nSELINUXTYPE=default\n"
	for name, tt := range map[string]struct {
		files  map[string]string
		source string // "" is an error
	}{
		"loaded":       {map[string]string{"sys/fs/selinux/policy": string(policy)}, "sys/fs/selinux/policy"},
		"its file":     {map[string]string{"etc/selinux/config": config, "etc/selinux/default/policy/policy.32": "old", "etc/selinux/default/policy/policy.33": string(policy)}, "etc/selinux/default/policy/policy.33"},
		"none":         {map[string]string{"etc/selinux/config": config}, ""},
		"of no type":   {map[string]string{"etc/selinux/config": "SELINUXTYPE=../etc\n"}, ""},
		"no policy":    {map[string]string{"sys/fs/selinux/policy": "x"}, ""},
		"unconfigured": {nil, ""},
	} {
		s := system(t, tt.files)
		p, source, err := s.Policy()
		switch {
		case tt.source == "" && err == nil:
			t.Errorf("%s: a policy of %s, want an error", name, source)
		case tt.source != "" && (err != nil || source != filepath.Join(s.Root, tt.source) || !p.HasType("opensm_t")):
			t.Errorf("%s: %s, %v, want that of %s", name, source, err, tt.source)
		}
	}
}

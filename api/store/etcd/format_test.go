package etcd_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/store/etcd"
	"portcullis/api/store/storetest"
)

// open opens the store of a directory for a version of the service, and closes it.
func open(t *testing.T, dir, version string) error {
	t.Helper()
	s, err := etcd.Open(t.Context(), etcd.Options{Dir: dir, Log: storetest.Quiet(), NoSync: true, Version: version})
	if err != nil {
		return err
	}
	return s.Close()
}

// content returns each file of a directory except for the lock, which every service that looks at it takes.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "lock" {
			return err
		}
		data, err := os.ReadFile(path)
		files[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestFormatIsRecorded(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "format")
	want := fmt.Sprintf("%d 1.2.3\n", etcd.Format)
	for _, version := range []string{"1.2.3", "1.2.4"} {
		if err := open(t, dir, version); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("after %s the file is %q, %v; want %q: the version that raised the format", version, got, err, want)
		}
	}
	if err := os.Remove(file); err != nil { // as releases left it that recorded none
		t.Fatal(err)
	}
	if err := open(t, dir, "1.2.5"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != fmt.Sprintf("%d 1.2.5\n", etcd.Format) {
		t.Errorf("the file is %q, %v", got, err)
	}
}

// TestNewerStateIsRefused: a service that is older than the state neither opens nor changes it.
func TestNewerStateIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := open(t, dir, "1.2.3"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "format"), fmt.Appendf(nil, "%d 9.1.0\x1b[31m\n", etcd.Format+1), 0o600); err != nil {
		t.Fatal(err)
	}
	before := content(t, dir)
	err := open(t, dir, "1.2.3")
	var newer *etcd.NewerError
	if !errors.As(err, &newer) {
		t.Fatalf("got %v, want *NewerError", err)
	}
	if d := cmp.Diff(etcd.NewerError{Dir: dir, Format: etcd.Format + 1, Since: "9.1.0[31m"}, *newer); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if strings.Contains(err.Error(), "\x1b") {
		t.Errorf("the error has what terminals obey: %q", err)
	}
	if d := cmp.Diff(before, content(t, dir)); d != "" {
		t.Errorf("the state changed (-before +after):\n%s", d)
	}
}

func TestUnreadableFormatIsRefused(t *testing.T) {
	for _, text := range []string{"", "\n", "x", "0 1.2.3\n", "-1\n", "1e9\n", strings.Repeat("1", 4096), "1 " + strings.Repeat("x", 4096)} {
		dir := t.TempDir()
		file := filepath.Join(dir, "format")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := open(t, dir, "1.2.3"); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("format %.20q: got %v, want an error that names %s", text, err, file)
		}
	}
}

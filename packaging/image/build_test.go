package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/packaging/testenv"
)

func TestTree(t *testing.T) {
	t.Parallel()
	write := func() []byte {
		tr := newTree()
		tr.text("lib/systemd/system/a.service", "[Unit]\n")
		tr.text("etc/hosts", "")
		tr.link("init", "usr/lib/systemd/systemd")
		tr.dir("tmp", 0o1777)
		if !tr.has("usr/lib/systemd/system/a.service") || !tr.has("/lib/systemd/system/a.service") || tr.has("lib/a") {
			t.Error("names below lib are not those below usr/lib")
		}
		var b bytes.Buffer
		if err := tr.write(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	if !bytes.Equal(write(), write()) {
		t.Error("two archives of one tree differ")
	}
	broken := newTree()
	broken.put("file", node{from: filepath.Join(t.TempDir(), "none"), size: 1})
	if err := broken.write(io.Discard); err == nil {
		t.Error("a file that is not there was written")
	}
}

func TestAccounts(t *testing.T) {
	t.Parallel()
	a := newAccounts()
	if err := a.read("../systemd/sysusers/portcullis-agent.conf"); err != nil {
		t.Fatal(err)
	}
	tr := newTree()
	a.put(tr)
	passwd, group := string(tr.nodes["etc/passwd"].data), string(tr.nodes["etc/group"].data)
	if !strings.Contains(passwd, "\nportcullis-agent:x:992:992:") || strings.Contains(passwd, "/bin/") {
		t.Errorf("passwd:\n%s", passwd)
	}
	for _, line := range []string{"tss:x:990:portcullis-agent\n", "portcullis-agent:x:992:\n", "root:x:0:\n"} {
		if !strings.Contains(group, line) {
			t.Errorf("group lacks %q:\n%s", line, group)
		}
	}
	for name, text := range map[string]string{"unknown line": "r - 500-900\n", "too many": strings.Repeat("g a - -\n", maxOurs+2)} {
		file := filepath.Join(t.TempDir(), "a.conf")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := newAccounts().read(file); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
	if err := newAccounts().read("none"); err == nil {
		t.Error("a file that is not there was read")
	}
}

// TestPick takes a program of this machine out of a folder that stands for its package, with the libraries of another.
func TestPick(t *testing.T) {
	t.Parallel()
	cpio := testenv.Program(t, "cpio")
	program, libraries := t.TempDir(), t.TempDir()
	place := func(dir, name, from string) {
		t.Helper()
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	place(program, "bin/cpio", cpio)
	if err := os.Symlink("cpio", filepath.Join(program, "bin/copy")); err != nil {
		t.Fatal(err)
	}
	packages := map[string]pkg{"cpio": {Name: "cpio", dir: program}, "libc6": {Name: "libc6", dir: libraries}}
	take := func(pattern string) (*tree, error) {
		tr := newTree()
		p, err := newPicker(tr, packages)
		if err != nil {
			t.Fatal(err)
		}
		return tr, p.take("cpio", pattern)
	}
	if _, err := take("bin/cpio"); err == nil || !strings.Contains(err.Error(), "none of the packages has") {
		t.Errorf("without its libraries: %v", err)
	}
	place(libraries, "lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6")
	place(libraries, "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "/lib64/ld-linux-x86-64.so.2")
	place(libraries, "lib64/ld-linux-x86-64.so.2", "/lib64/ld-linux-x86-64.so.2")
	tr, err := take("bin/c*")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, n := range tr.nodes {
		if n.pkg != "" {
			got[name] = n.pkg
		}
	}
	want := map[string]string{
		"usr/bin/cpio": "cpio", "usr/bin/copy": "cpio", "usr/lib/x86_64-linux-gnu/libc.so.6": "libc6",
		"usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2": "libc6", "usr/lib64/ld-linux-x86-64.so.2": "libc6",
	}
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("picked (-got +want):\n%s", d)
	}
	if _, err := take("bin/none"); err == nil {
		t.Error("a file that is not there was picked")
	}
	p, err := newPicker(tr, packages)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.take("other", "bin/cpio"); err == nil {
		t.Error("a package that is not there was taken from")
	}
}

func TestLock(t *testing.T) {
	t.Parallel()
	m := &manifest{Packages: []part{{Name: "udev", Version: "252.1"}, {Name: "portcullis-agent", Version: "1"}}}
	if err := m.check(map[string]string{"udev": "252.1"}); err != nil {
		t.Error(err)
	}
	if err := m.check(map[string]string{"udev": "252.2"}); err == nil || !strings.Contains(err.Error(), "252.1") {
		t.Errorf("another version: %v", err)
	}
	if err := (*manifest)(nil).check(map[string]string{}); err != nil {
		t.Error(err)
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"no site":        {"-agent", "a.deb"},
		"no agent":       {"-site", "s"},
		"operand":        {"-site", "s", "-agent", "a.deb", "x"},
		"key alone":      {"-site", "s", "-agent", "a.deb", "-sign-key", "k"},
		"level":          {"-site", "s", "-agent", "a.deb", "-level", "22"},
		"unknown flag":   {"-sight", "s"},
		"site not there": {"-site", "/nonexistent", "-agent", "a.deb", "-out", filepath.Join(t.TempDir(), "o"), "-cache", t.TempDir()},
	} {
		if err := run(args, io.Discard); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestKernel reads which modules a package has.
func TestKernel(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"boot/vmlinuz-6.15.0":                "kernel",
		"lib/modules/6.15.0/modules.dep":     "kernel/a/one-two.ko: kernel/b/three.ko\nkernel/b/three.ko:\n",
		"lib/modules/6.15.0/modules.builtin": "kernel/c/four.ko\n",
	})
	d := &debian{cache: t.TempDir()}
	k, err := d.openKernel(pkg{Name: "linux-image-6.15.0", dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	files, err := k.closure([]string{"one_two", "four"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(files, []string{"kernel/a/one-two.ko", "kernel/b/three.ko"}); diff != "" {
		t.Errorf("modules (-got +want):\n%s", diff)
	}
	if _, err := k.closure([]string{"five"}); err == nil {
		t.Error("a module that is not there was found")
	}
	if !k.has("four") || k.has("mlx5_fwctl") {
		t.Error("the kernel has four alone built in, and no mlx5_fwctl")
	}
	o := order{site: &site{settings: defaults()}}
	if !o.vendorTools(k) {
		t.Error("without fwctl the agent does not run the vendor's tools")
	}
	k.files["mlx5_fwctl"] = "kernel/mlx5_fwctl.ko"
	if o.vendorTools(k) {
		t.Error("with fwctl the agent runs the vendor's tools")
	}
}

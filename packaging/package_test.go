package packaging

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/packaging/testenv"
)

// shipped says what to look for in a package.
type shipped struct {
	name    string
	version []string // arguments that make the program name its build
	state   string   // directory the running program keeps, below the root
	unit    string
	kept    []string // of the configuration also by a purge: state is sealed under it, or adapters are locked
}

var packages = []shipped{
	{name: "portcullisd", version: []string{"--version"}, state: "var/lib/portcullis", unit: "portcullisd.service", kept: []string{"etc/portcullis/keys.root", "etc/portcullis/locks.root", "etc/portcullis/hosts.root", "etc/portcullis/results.root"}},
	{name: "portcullis-agent", version: []string{"version"}, state: "var/lib/portcullis-agent", unit: "portcullis-agent.service"},
	{name: "portcullis", version: []string{"version"}},
	{name: "portcullis-sim", version: []string{"--version"}},
}

// built returns the file of a package of this commit, in ../dist.
func built(t *testing.T, name, format string) (file, version string) {
	t.Helper()
	out, err := exec.Command("./version.sh").Output()
	if err != nil {
		t.Fatalf("version of this checkout: %v", err)
	}
	version = strings.TrimSpace(string(out))
	files, err := filepath.Glob("../dist/" + name + "[_\\-]" + version + "[_\\-]*." + format)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 1 {
		testenv.Need(t, fmt.Errorf("%s %s is not in dist: run \"make package\"", name, version))
	}
	file, err = filepath.Abs(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return file, version
}

// asRoot runs a program as root, or with fakeroot.
func asRoot(t *testing.T, env []string, program string, args ...string) {
	t.Helper()
	program = testenv.Program(t, program)
	if os.Getuid() != 0 {
		program, args = testenv.Program(t, "fakeroot"), append([]string{program}, args...)
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), append([]string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin", "LC_ALL=C"}, env...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
}

// TestDeb installs and purges every deb in a root of its own, scripts included.
func TestDeb(t *testing.T) {
	for _, p := range packages {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			file, version := built(t, p.name, "deb")
			root := emptyRoot(t)
			dpkg := func(args ...string) {
				t.Helper()
				asRoot(t, nil, "dpkg", append([]string{
					"--root=" + root, "--force-script-chrootless", "--force-depends", "--log=/dev/null",
				}, args...)...)
			}
			dpkg("--install", file)
			p.checkInstalled(t, root, version)
			p.run(t, root)
			dpkg("--remove", p.name)
			dpkg("--purge", p.name)
			p.checkGone(t, root, p.kept...)
			for _, name := range p.kept {
				if _, err := os.Stat(filepath.Join(root, name)); err != nil {
					t.Errorf("a purge took what state is sealed under, or what opens adapters: %v", err)
				}
			}
		})
	}
}

// TestRPM does the same with every rpm. rpm runs scripts only in a whole system below its root, so they are run here, with
// the arguments that rpm would pass.
func TestRPM(t *testing.T) {
	for _, p := range packages {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			file, version := built(t, p.name, "rpm")
			root := emptyRoot(t)
			rpm := func(args ...string) {
				t.Helper()
				asRoot(t, nil, "rpm", append([]string{"--dbpath=" + root + "/db", "--nodeps", "--noscripts"}, args...)...)
			}
			script := func(hook, count string) {
				t.Helper()
				if p.unit != "" {
					asRoot(t, []string{"DPKG_ROOT=" + root}, "sh", "scripts/"+p.name+"."+hook, count)
				}
			}
			rpm("--install", "--relocate=/="+root, "--badreloc", file)
			script("postinst", "1")
			p.checkInstalled(t, root, version)
			p.run(t, root)
			script("prerm", "0")
			rpm("--erase", p.name)
			script("postrm", "0")
			if err := os.RemoveAll(filepath.Join(root, "db")); err != nil {
				t.Fatal(err)
			}
			p.checkGone(t, root, "etc/portcullis")
		})
	}
}

// emptyRoot makes a directory that dpkg takes for a system without packages.
func emptyRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"var/lib/dpkg/updates", "var/lib/dpkg/info", "var/lib/dpkg/triggers", "db", "etc"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644)
	return root
}

// checkInstalled looks at what lies below the root, and has systemd verify the
// unit where the package put it.
func (p shipped) checkInstalled(t *testing.T, root, version string) {
	t.Helper()
	program := filepath.Join(root, "usr/bin", p.name)
	out, err := exec.Command(program, p.version...).Output()
	if err != nil {
		t.Fatalf("%s %s: %v", p.name, strings.Join(p.version, " "), err)
	}
	if want := p.name + " " + version + " ("; !strings.HasPrefix(string(out), want) {
		t.Errorf("the installed program says %q, want %q", out, want)
	}
	for _, pattern := range []string{
		"usr/share/man/man[158]/" + p.name + ".[158]",
		"usr/share/doc/" + p.name + "/CHANGELOG.md",
		"usr/share/doc/" + p.name + "/THIRD-PARTY",
		"usr/share/*/" + p.name + "/[Lc][Io][Cp]*", // LICENSE or copyright
	} {
		if found, _ := filepath.Glob(filepath.Join(root, pattern)); len(found) == 0 {
			t.Errorf("no %s is installed", pattern)
		}
	}
	if p.unit == "" {
		return
	}
	analyze := testenv.Program(t, "systemd-analyze")
	unit := filepath.Join(root, "usr/lib/systemd/system", p.unit)
	text, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	placed := filepath.Join(t.TempDir(), p.unit)
	write(t, placed, []byte(strings.ReplaceAll(string(text), "/usr/bin/"+p.name, program)), 0o644)
	if out, err := exec.Command(analyze, "verify", "--man=no", placed).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify %s: %v\n%s", p.unit, err, out)
	}
	if passwd, err := os.ReadFile(filepath.Join(root, "etc/passwd")); err != nil || !strings.Contains(string(passwd), strings.TrimPrefix(p.state, "var/lib/")+":") {
		t.Errorf("the account of %s was not made: %v", p.unit, err)
	}
}

// run leaves behind what a run of the program would.
func (p shipped) run(t *testing.T, root string) {
	t.Helper()
	if p.name == "portcullisd" {
		out, err := exec.Command(filepath.Join(root, "usr/bin/portcullisd"), "init",
			"--dir", filepath.Join(root, "etc/portcullis"), "--names", "localhost").CombinedOutput()
		if err != nil {
			t.Fatalf("portcullisd init: %v\n%s", err, out)
		}
	}
	if p.state != "" {
		write(t, filepath.Join(root, p.state, "record"), []byte("kept"), 0o600)
	}
}

// checkGone checks that a purge left only state and the account that owns it. An rpm is not purged: configuration that was
// made by hand stays.
func (p shipped) checkGone(t *testing.T, root string, kept ...string) {
	t.Helper()
	left := []string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if !within(name, "var/lib/dpkg") && !slices.ContainsFunc(kept, func(k string) bool { return within(name, k) }) {
			left = append(left, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{}
	if p.state != "" {
		want = append(want, p.state+"/record")
	}
	left = slices.DeleteFunc(left, func(name string) bool { return account(name) })
	if d := cmp.Diff(want, left); d != "" {
		t.Errorf("after the purge there is something else than state (-want +left):\n%s", d)
	}
}

// account reports a file that belongs to the system's accounts.
func account(name string) bool {
	return slices.Contains([]string{
		"etc/passwd", "etc/group", "etc/shadow", "etc/gshadow", "etc/passwd-", "etc/group-", "etc/shadow-", "etc/gshadow-", "etc/.pwd.lock",
	}, name)
}

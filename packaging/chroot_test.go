package packaging

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/packaging/testenv"
)

// chroot is a system without processes: this machine's /usr below a root of its own,
// neither /proc nor /sys mounted, no systemd, as where mmdebstrap or dnf --installroot
// make an image.
type chroot struct{ root string }

func newChroot(t *testing.T) chroot {
	t.Helper()
	c := chroot{t.TempDir()}
	for _, dir := range []string{"usr", "etc/portcullis", "etc/systemd/system", "etc/sysusers.d", "etc/tmpfiles.d", "proc", "sys", "run", "dev", "tmp", "var/lib"} {
		if err := os.MkdirAll(filepath.Join(c.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := os.Symlink("usr/"+dir, filepath.Join(c.root, dir)); err != nil {
			t.Fatal(err)
		}
	}
	copyTo := func(pattern, dir string) {
		t.Helper()
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(c.root, dir, filepath.Base(file)), text, 0o644)
		}
	}
	copyTo("systemd/sysusers/*.conf", "etc/sysusers.d")
	copyTo("systemd/tmpfiles/*.conf", "etc/tmpfiles.d")
	copyTo("systemd/*.service", "etc/systemd/system")
	copyTo("scripts/*", "tmp")
	// An image of before may have the files that tmpfiles are for.
	write(t, filepath.Join(c.root, "etc/portcullis/portcullisd.yaml"), nil, 0o600)
	return c
}

// run runs a command inside, as root of a mount namespace of its own.
func (c chroot) run(t *testing.T, command string) string {
	t.Helper()
	args := []string{"--mount"}
	if os.Getuid() != 0 {
		args = append(args, "--map-root-user")
	}
	inside := fmt.Sprintf(`mount --bind /usr "$1/usr" && exec %s "$1" sh -c "$2"`, testenv.Program(t, "chroot"))
	cmd := exec.Command(testenv.Program(t, "unshare"), append(args, "sh", "-c", inside, "sh", c.root, command)...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

func (c chroot) links(t *testing.T) (found []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(c.root, "etc/systemd/system/*.wants/*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestScriptsWithoutProc runs what dpkg and rpm run, in a chroot without /proc.
func TestScriptsWithoutProc(t *testing.T) {
	t.Parallel()
	for _, manager := range []struct{ name, installed, removed, gone string }{
		{"deb", "configure", "remove", "purge"},
		{"rpm", "1", "0", "0"},
	} {
		t.Run(manager.name, func(t *testing.T) {
			t.Parallel()
			c := newChroot(t)
			if mounted := c.run(t, "ls /proc /sys"); strings.Contains(mounted, "self") {
				t.Fatalf("/proc is mounted:\n%s", mounted)
			}
			for _, p := range packages {
				if p.unit == "" {
					continue
				}
				script := func(hook, argument string) { c.run(t, "sh /tmp/"+p.name+"."+hook+" "+argument) }
				script("postinst", manager.installed)
				script("postinst", manager.installed) // an upgrade
				account := strings.TrimPrefix(p.state, "var/lib/")
				passwd, err := os.ReadFile(filepath.Join(c.root, "etc/passwd"))
				if err != nil || !bytes.Contains(passwd, []byte(account+":")) {
					t.Errorf("%s: the account %s was not made: %v", p.name, account, err)
				}
				c.run(t, "systemctl enable "+p.unit)
				if n := len(c.links(t)); n != 1 {
					t.Fatalf("%s: enabling the unit in the image made %d links, want 1", p.name, n)
				}
				script("prerm", manager.removed)
				script("postrm", manager.gone)
				if left := c.links(t); len(left) > 0 {
					t.Errorf("%s: the package is gone, and the image still starts it: %v", p.name, left)
				}
			}
		})
	}
}

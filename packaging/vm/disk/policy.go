//go:build vm

package disk

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Module is a SELinux module in CIL.
type Module struct {
	Name     string
	Priority int
	Text     string
}

// SELinux is a policy for a root file system: Debian's, with modules added.
type SELinux struct {
	root Root
	dir  string // with etc/selinux and var/lib/selinux
}

// fileContexts has the label of each path.
const fileContexts = "etc/selinux/default/contexts/files/file_contexts"

// Neverallow reports whether semodule refuses rules that a neverallow rule forbids.
type Neverallow bool

// Ways of semodule.
const (
	Unchecked Neverallow = false // expand-check=0, as Debian delivers it
	Checked   Neverallow = true
)

// SELinux adds modules to the policy of the root file system. It compiles the policy here, because the machine would need
// longer. The result is kept in cache.
func (r Root) SELinux(check Neverallow, modules ...Module) (SELinux, error) {
	key := sha256.New()
	fmt.Fprint(key, check, modules)
	p := SELinux{root: r, dir: r.Dir + ".policy-" + hex.EncodeToString(key.Sum(nil)[:6])}
	if _, err := os.Stat(p.dir); err == nil {
		return p, nil
	}
	// The tools run in the root file system, on a copy of its policy.
	work, err := os.MkdirTemp(filepath.Join(r.Dir, "tmp"), "policy-*")
	if err != nil {
		return SELinux{}, err
	}
	defer os.RemoveAll(work)
	if err := p.compile(work, check, modules); err != nil {
		return SELinux{}, fmt.Errorf("SELinux policy: %w", err)
	}
	return p, os.Rename(work, p.dir)
}

func (p SELinux) compile(work string, check Neverallow, modules []Module) error {
	for _, dir := range []string{"etc/selinux", "var/lib/selinux"} {
		to := filepath.Join(work, dir)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := run("", "cp", "-a", filepath.Join(p.root.Dir, dir), to); err != nil {
			return err
		}
	}
	if check == Checked {
		if err := run("", "sed", "-i", "s/^expand-check=0$/expand-check=1/", filepath.Join(work, "etc/selinux/semanage.conf")); err != nil {
			return err
		}
	}
	inside := strings.TrimPrefix(work, p.root.Dir)
	args := []string{p.root.Dir, "semodule", "-p", inside, "-s", "default", "-N"}
	for _, m := range modules {
		name := m.Name + ".cil"
		if err := os.WriteFile(filepath.Join(work, name), []byte(m.Text), 0o644); err != nil {
			return err
		}
		args = append(args, "-X", fmt.Sprint(m.Priority), "-i", filepath.Join(inside, name))
	}
	return run("", "/usr/sbin/chroot", args...)
}

// Install puts what differs from the policy of the root file system into a seed, and labels by it every file that the seed has then.
func (p SELinux) Install(s *Seed) error {
	for _, dir := range []string{"etc/selinux", "var/lib/selinux"} {
		err := filepath.WalkDir(filepath.Join(p.dir, dir), func(file string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			name := strings.TrimPrefix(file, p.dir+"/")
			if same(file, filepath.Join(p.root.Dir, name)) {
				return nil
			}
			s.Dir(filepath.Dir(name), 0o755)
			return s.File(name, file)
		})
		if err != nil {
			return err
		}
	}
	s.Dir(filepath.Dir(SuiteFile), 0o755)
	for _, kind := range []string{"dir", "file", "link"} {
		if err := p.label(s, kind); err != nil {
			return err
		}
	}
	return nil
}

func same(a, b string) bool {
	first, err := os.ReadFile(a)
	if err != nil {
		return false
	}
	second, err := os.ReadFile(b)
	return err == nil && bytes.Equal(first, second)
}

// label asks the policy for the label of each file of one kind that a seed has.
func (p SELinux) label(s *Seed, kind string) error {
	var paths []string
	for name, f := range s.files {
		if f.kind() == kind {
			paths = append(paths, "/"+name)
		}
	}
	if len(paths) == 0 {
		return nil
	}
	slices.Sort(paths)
	// The tool runs in the root file system, and reads labels from files there.
	work, err := os.MkdirTemp(filepath.Join(p.root.Dir, "tmp"), "labels-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	for _, suffix := range []string{"", ".subs_dist"} {
		if err := run("", "cp", filepath.Join(p.dir, fileContexts+suffix), work); err != nil {
			return err
		}
	}
	file := strings.TrimPrefix(filepath.Join(work, filepath.Base(fileContexts)), p.root.Dir)
	args := append([]string{p.root.Dir, "matchpathcon", "-n", "-m", kind, "-f", file}, paths...)
	out, err := exec.Command("/usr/sbin/chroot", args...).Output()
	if err != nil {
		return fmt.Errorf("matchpathcon: %w", err)
	}
	contexts := strings.Fields(string(out))
	if len(contexts) != len(paths) {
		return fmt.Errorf("matchpathcon returned %d labels for %d files: %s", len(contexts), len(paths), out)
	}
	for i, path := range paths {
		s.Label(path, contexts[i])
	}
	return nil
}

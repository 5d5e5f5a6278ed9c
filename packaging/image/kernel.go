package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// kernel is an unpacked kernel package.
type kernel struct {
	pkg     pkg
	release string
	deps    map[string][]string // of a module's file, below its folder
	files   map[string]string   // by a module's name
	builtin map[string]bool
}

// openKernel reads which modules a kernel package has.
func (d *debian) openKernel(p pkg) (*kernel, error) {
	found, err := filepath.Glob(filepath.Join(p.dir, "boot/vmlinuz-*"))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("package %s has %d kernels, want one", p.Name, len(found))
	}
	k := &kernel{
		pkg: p, release: strings.TrimPrefix(filepath.Base(found[0]), "vmlinuz-"),
		deps: map[string][]string{}, files: map[string]string{}, builtin: map[string]bool{},
	}
	if _, err := os.Stat(filepath.Join(k.dir(), "modules.dep")); err != nil {
		if _, err := d.run("/sbin/depmod", "-b", p.dir, k.release); err != nil {
			return nil, err
		}
	}
	text, err := os.ReadFile(filepath.Join(k.dir(), "modules.dep"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		file, needs, _ := strings.Cut(strings.TrimSpace(line), ":")
		k.deps[file] = strings.Fields(needs)
		k.files[moduleName(file)] = file
	}
	builtin, err := os.ReadFile(filepath.Join(k.dir(), "modules.builtin"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(builtin)) {
		k.builtin[moduleName(strings.TrimSpace(line))] = true
	}
	return k, nil
}

func (k *kernel) dir() string   { return filepath.Join(k.pkg.dir, "lib/modules", k.release) }
func (k *kernel) image() string { return filepath.Join(k.pkg.dir, "boot", "vmlinuz-"+k.release) }

func moduleName(file string) string {
	name, _, _ := strings.Cut(path.Base(file), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// has reports that a module is in the kernel, or a file of its own.
func (k *kernel) has(name string) bool { return k.builtin[name] || k.files[name] != "" }

// closure returns the files of modules and of their dependencies, sorted.
func (k *kernel) closure(names []string) ([]string, error) {
	want := map[string]bool{}
	var missing []error
	for _, name := range names {
		name = strings.ReplaceAll(name, "-", "_")
		if !k.has(name) {
			missing = append(missing, fmt.Errorf("kernel %s has no module %s", k.release, name))
		}
		if file := k.files[name]; file != "" {
			want[file] = true
			for _, f := range k.deps[file] {
				want[f] = true
			}
		}
	}
	out := make([]string, 0, len(want))
	for f := range want {
		out = append(out, f)
	}
	slices.Sort(out)
	return out, errors.Join(missing...)
}

// addModules puts modules into the tree, with the tables by which modprobe and udev find them.
func (d *debian) addModules(t *tree, k *kernel, names []string) error {
	files, err := k.closure(names)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp(d.cache, "modules-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	below := path.Join("lib/modules", k.release)
	for _, f := range append(files, "modules.builtin", "modules.builtin.modinfo", "modules.order") {
		to := filepath.Join(work, below, f)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.Link(filepath.Join(k.dir(), f), to); err != nil {
			return err
		}
	}
	if _, err := d.run("/sbin/depmod", "-b", work, k.release); err != nil {
		return err
	}
	for _, f := range files {
		info, err := os.Stat(filepath.Join(k.dir(), f))
		if err != nil {
			return err
		}
		t.put(path.Join(below, f), node{perm: 0o644, from: filepath.Join(k.dir(), f), size: info.Size(), pkg: k.pkg.Name})
	}
	tables, err := filepath.Glob(filepath.Join(work, below, "modules.*"))
	if err != nil {
		return err
	}
	for _, f := range tables {
		b, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		t.text(path.Join(below, filepath.Base(f)), string(b))
	}
	return nil
}

package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// picker takes files out of packages into the tree, with the libraries that they
// are linked with.
type picker struct {
	tree     *tree
	packages map[string]pkg
	library  map[string]found // by name, such as libc.so.6
}

type found struct {
	pkg  string
	name string // in the tree
}

// libraryDirs are where Debian has libraries that programs find without a path, and
// systemd's own, which its programs name.
var libraryDirs = []string{"lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/systemd", "lib64", "usr/lib64"}

func newPicker(t *tree, packages map[string]pkg) (*picker, error) {
	p := &picker{tree: t, packages: packages, library: map[string]found{}}
	names := make([]string, 0, len(packages))
	for name := range packages {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, dir := range libraryDirs {
			files, err := os.ReadDir(filepath.Join(packages[name].dir, dir))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			for _, f := range files {
				if _, there := p.library[f.Name()]; !there && strings.Contains(f.Name(), ".so") {
					p.library[f.Name()] = found{name, path.Join(dir, f.Name())}
				}
			}
		}
	}
	return p, nil
}

// take picks a file of a package, or all files that a pattern matches. A pattern that matches nothing is an error.
func (p *picker) take(from, pattern string) error {
	of, ok := p.packages[from]
	if !ok {
		return fmt.Errorf("%s: package %s is not there", pattern, from)
	}
	files, err := filepath.Glob(filepath.Join(of.dir, pattern))
	if err == nil && len(files) == 0 {
		err = errors.New("no such file")
	}
	if err != nil {
		return fmt.Errorf("package %s %s: %s: %w", from, of.Version, pattern, err)
	}
	for _, f := range files {
		if err := p.file(from, strings.TrimPrefix(f, of.dir+"/")); err != nil {
			return fmt.Errorf("package %s %s: %w", from, of.Version, err)
		}
	}
	return nil
}

// file picks one file, and where it is a link what that points to.
func (p *picker) file(from, name string) error {
	if p.tree.has(name) {
		return nil
	}
	full := filepath.Join(p.packages[from].dir, name)
	info, err := os.Lstat(full)
	if err != nil {
		return err
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		p.tree.put(name, node{dir: true, perm: 0o755, pkg: from})
		return nil
	case mode&fs.ModeSymlink != 0:
		return p.symlink(from, name, full)
	case !mode.IsRegular():
		return fmt.Errorf("%s: is neither file nor link", name)
	}
	perm := uint32(0o644)
	if info.Mode().Perm()&0o111 != 0 {
		perm = 0o755
	}
	p.tree.put(name, node{perm: perm, from: full, size: info.Size(), pkg: from})
	return p.libraries(full)
}

func (p *picker) symlink(from, name, full string) error {
	target, err := os.Readlink(full)
	if err != nil {
		return err
	}
	p.tree.put(name, node{link: target, pkg: from})
	to := target
	if !path.IsAbs(to) {
		to = path.Join(path.Dir(name), to)
	}
	to = strings.TrimPrefix(to, "/")
	if _, err := os.Lstat(filepath.Join(p.packages[from].dir, to)); err == nil {
		return p.file(from, to)
	}
	return nil // of another package, or made while the system runs
}

// libraries picks what an ELF file is linked with.
func (p *picker) libraries(file string) error {
	e, err := elf.Open(file)
	if err != nil {
		return nil // a script or data
	}
	defer e.Close()
	if e.Type == elf.ET_REL {
		return nil // a kernel module
	}
	needed, err := e.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if s := e.Section(".interp"); s != nil {
		b, err := s.Data()
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := p.interpreter(strings.TrimRight(string(b), "\x00")); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	for _, name := range needed {
		if err := p.lib(name); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// interpreter picks the program that loads others, which the kernel finds by its path.
func (p *picker) interpreter(name string) error {
	name = strings.TrimPrefix(name, "/")
	f, ok := p.library[path.Base(name)]
	if !ok {
		return fmt.Errorf("needs /%s, which none of the packages has", name)
	}
	return p.file(f.pkg, name)
}

// lib picks a library by its name.
func (p *picker) lib(name string) error {
	f, ok := p.library[name]
	if !ok {
		return fmt.Errorf("needs %s, which none of the packages has", name)
	}
	return p.file(f.pkg, f.name)
}

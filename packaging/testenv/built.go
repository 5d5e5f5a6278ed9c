package testenv

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Build builds programs of this module, named by the last parts of their import paths, such as "cmd/portcullisd", and
// places each in the folder dir. The programs stay in bin/test of the module, where go build links a program
// again only when its code changed: the tests of several packages, and of several runs, link it once.
func Build(ctx context.Context, dir string, programs ...string) error {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("build %s: find the module: %w", strings.Join(programs, " "), err)
	}
	return buildIn(ctx, strings.TrimSpace(string(out)), dir, programs)
}

// buildIn builds programs of the module in the folder root.
func buildIn(ctx context.Context, root, dir string, programs []string) error {
	kept := filepath.Join(root, "bin", "test")
	if err := os.MkdirAll(kept, 0o700); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	unlock, err := lockFolder(kept)
	if err != nil {
		return err
	}
	defer unlock()
	for _, program := range programs {
		name := filepath.Base(program)
		file := filepath.Join(kept, name)
		cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", file, "./"+program)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as they are shipped
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", program, err, out)
		}
		if err := place(ctx, filepath.Join(dir, name), file); err != nil {
			return fmt.Errorf("build %s: %w", program, err)
		}
	}
	return nil
}

// lockFolder waits until no other process builds in a folder.
func lockFolder(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return func() { f.Close() }, nil
}

// place links to a program where it can, since go build replaces a program by a new file, and copies it where it cannot.
// Another process copies: a file that this one had open for writing could be busy when it is started.
func place(ctx context.Context, to, from string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	if out, err := exec.CommandContext(ctx, "cp", "--remove-destination", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy to %s: %w: %s", to, err, out)
	}
	return nil
}

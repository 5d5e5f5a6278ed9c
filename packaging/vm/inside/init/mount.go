//go:build vm

package main

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/packaging/vm/disk"
)

// mounts mounts the kernel's file systems below a directory.
func mounts(below string) error {
	for _, m := range []struct{ kind, at string }{{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}} {
		if err := mount(m.kind, m.kind, below+m.at); err != nil {
			return err
		}
	}
	return nil
}

// volatileMounts mounts what a system without systemd lacks. securityfs and efivarfs are there if the kernel has them.
func volatileMounts() error {
	for _, at := range []string{"/tmp", "/run", "/dev/shm"} {
		if err := mount("tmpfs", "tmpfs", at); err != nil {
			return err
		}
	}
	_ = mount("securityfs", "securityfs", "/sys/kernel/security")
	_ = mount("tracefs", "tracefs", "/sys/kernel/tracing")
	return nil
}

func mount(kind, source, at string) error {
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(source, at, kind, 0, ""); err != nil {
		return fmt.Errorf("mount %s at %s: %w", kind, at, err)
	}
	return nil
}

func loadEarly() error {
	files, err := filepath.Glob("/early/*.ko")
	if err != nil {
		return err
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		_ = f.Close()
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("load %s: %w", name, err)
		}
	}
	return nil
}

// drive returns the device file of the drive with a serial number, and waits for it until the limit. "" means that there is none.
func drive(serial string, limit time.Duration) (string, error) {
	for deadline := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		files, err := filepath.Glob("/sys/block/vd*/serial")
		if err != nil {
			return "", err
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err == nil && strings.TrimSpace(string(text)) == serial {
				return "/dev/" + filepath.Base(filepath.Dir(name)), nil
			}
		}
		if time.Now().After(deadline) {
			return "", nil
		}
	}
}

// seedLimit bounds the wait for the drive of the seed, which every machine has.
const seedLimit = 30 * time.Second

// unpackSeed unpacks the seed below a directory.
func unpackSeed(below string) error {
	device, err := drive(disk.SeedSerial, seedLimit)
	if err != nil {
		return err
	}
	if device == "" {
		return fmt.Errorf("no drive has the serial number %q after %v", disk.SeedSerial, seedLimit)
	}
	in, err := os.Open(device)
	if err != nil {
		return err
	}
	defer in.Close()
	r := tar.NewReader(bufio.NewReaderSize(in, 1<<20))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("seed: %w", err)
		}
		if err := unpackFile(filepath.Join(below, h.Name), h, r); err != nil {
			return fmt.Errorf("seed: %w", err)
		}
	}
}

func unpackFile(to string, h *tar.Header, r io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if h.Typeflag == tar.TypeDir {
		if err := os.MkdirAll(to, h.FileInfo().Mode().Perm()); err != nil {
			return err
		}
		return label(to, h)
	}
	if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if h.Typeflag == tar.TypeSymlink {
		return errors.Join(os.Symlink(h.Linkname, to), label(to, h))
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, h.FileInfo().Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close(), label(to, h))
}

// label sets the SELinux context that the header has, if any. No policy is loaded yet, so no rule forbids it.
func label(to string, h *tar.Header) error {
	context, ok := h.PAXRecords[disk.LabelRecord]
	if !ok {
		return nil
	}
	if err := unix.Lsetxattr(to, "security.selinux", append([]byte(context), 0), 0); err != nil {
		return fmt.Errorf("label %s: %w", to, err)
	}
	return nil
}

// switchRoot mounts the root file system, unpacks the seed over it, and becomes its init program.
func switchRoot(device string) error {
	const root = "/root"
	if err := mount("ext4", device, root); err != nil {
		return err
	}
	if err := unpackSeed(root); err != nil {
		return err
	}
	for _, at := range []string{"/dev", "/proc", "/sys"} {
		if err := os.MkdirAll(root+at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(at, root+at, "", unix.MS_MOVE, ""); err != nil {
			return fmt.Errorf("move %s: %w", at, err)
		}
	}
	if err := unix.Chdir(root); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move the root directory: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return err
	}
	const systemd = "/lib/systemd/systemd"
	return fmt.Errorf("start %s: %w", systemd, unix.Exec(systemd, []string{systemd}, os.Environ()))
}

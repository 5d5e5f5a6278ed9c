// Package live looks at the SELinux of the running system: whether it enforces, whether
// the kernel checks InfiniBand at all, which policy is loaded, and whether modules are
// held to neverallow rules.
package live

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"portcullis/agent/selinux/policydb"
)

// System says where a system's files are.
type System struct {
	Sysfs  string // such as /sys
	Procfs string // such as /proc
	Root   string // of /etc and /boot, such as /
}

// Mode is what SELinux does on a system.
type Mode int

// Modes.
const (
	Off        Mode = iota // the kernel has none, or it was switched off
	Permissive             // it reports and denies nothing
	Enforcing
)

func (s System) selinuxfs(name string) string { return filepath.Join(s.Sysfs, "fs/selinux", name) }

// Mode returns what SELinux does.
func (s System) Mode() (Mode, error) {
	b, err := readSome(s.selinuxfs("enforce"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Off, nil
	case err != nil:
		return Off, err
	case strings.TrimSpace(string(b)) == "1":
		return Enforcing, nil
	}
	return Permissive, nil
}

// ErrUnknown means that neither the kernel's symbols nor its configuration can be read.
var ErrUnknown = errors.New("neither the kernel's symbols nor its configuration can be read")

const (
	// symbol is a function that a kernel has if CONFIG_SECURITY_INFINIBAND is set
	// (security/security.c), and every kernel with modules has its name.
	symbol = "security_ib_pkey_access"
	option = "CONFIG_SECURITY_INFINIBAND=y"
)

// Checks reports whether the kernel checks labels of P_Keys and end ports, and which
// file says so. Without CONFIG_SECURITY_INFINIBAND a policy loads all the same, and
// nothing looks at its labels.
func (s System) Checks() (checks bool, source string, err error) {
	source = filepath.Join(s.Procfs, "kallsyms")
	if checks, err = hasLine(source, func(line []byte) bool {
		f := bytes.Fields(line)
		return len(f) >= 3 && string(f[2]) == symbol
	}); err == nil {
		return checks, source, nil
	}
	wanted := func(line []byte) bool { return string(bytes.TrimSpace(line)) == option }
	source = filepath.Join(s.Procfs, "config.gz")
	if checks, err = hasLine(source, wanted); err == nil {
		return checks, source, nil
	}
	b, err := readSome(filepath.Join(s.Procfs, "sys/kernel/osrelease"))
	if err != nil {
		return false, "", err
	}
	release := strings.TrimSpace(string(b))
	if release == "" || strings.ContainsRune(release, '/') {
		return false, "", fmt.Errorf("the kernel's release is %q", release)
	}
	for _, name := range []string{"boot/config-" + release, "lib/modules/" + release + "/config", "usr/lib/modules/" + release + "/config"} {
		source = filepath.Join(s.Root, name)
		if checks, err = hasLine(source, wanted); err == nil {
			return checks, source, nil
		}
	}
	return false, "", ErrUnknown
}

// Bounds of the files that are read: the symbols of a kernel with many modules have some 15 MiB.
const (
	maxSmall = 64 << 10
	maxLines = 256 << 20
)

func readSome(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxSmall))
}

// hasLine reports whether a file, which may be compressed, has a line. An empty file is
// an error: some kernels show no symbols.
func hasLine(name string, wanted func([]byte) bool) (bool, error) {
	f, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	in := io.Reader(f)
	if strings.HasSuffix(name, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			return false, err
		}
	}
	lines := bufio.NewScanner(io.LimitReader(in, maxLines))
	empty := true
	for lines.Scan() {
		empty = false
		if wanted(lines.Bytes()) {
			return true, nil
		}
	}
	if err := lines.Err(); err != nil {
		return false, err
	}
	if empty {
		return false, fmt.Errorf("%s is empty", name)
	}
	return false, nil
}

// Policy reads the policy that the kernel has loaded, or where only root may read that,
// the file that it is loaded from.
func (s System) Policy() (p *policydb.Policy, source string, err error) {
	source = s.selinuxfs("policy")
	data, err := readPolicy(source)
	if err != nil {
		var file string
		if file, err = s.policyFile(); err != nil {
			return nil, source, err
		}
		source = file
		if data, err = readPolicy(source); err != nil {
			return nil, source, err
		}
	}
	p, err = policydb.Read(data)
	return p, source, err
}

func readPolicy(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, policydb.MaxSize+1))
}

// policyFile finds the policy of the type that /etc/selinux/config names, in the newest
// version that there is.
func (s System) policyFile() (string, error) {
	b, err := readSome(filepath.Join(s.Root, "etc/selinux/config"))
	if err != nil {
		return "", err
	}
	kind := setting(b, "SELINUXTYPE")
	if kind == "" || strings.ContainsRune(kind, '/') {
		return "", fmt.Errorf("/etc/selinux/config names the type %q", kind)
	}
	pattern := filepath.Join(s.Root, "etc/selinux", kind, "policy", "policy.[0-9][0-9]")
	files, err := filepath.Glob(pattern)
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "", fmt.Errorf("%s: %w", pattern, fs.ErrNotExist)
	}
	return files[len(files)-1], nil
}

// setting returns the value of KEY=VALUE, or of KEY = VALUE; the last one counts.
func setting(file []byte, key string) (value string) {
	for line := range strings.Lines(string(file)) {
		line, _, _ = strings.Cut(line, "#")
		if k, v, ok := strings.Cut(line, "="); ok && strings.TrimSpace(k) == key {
			value = strings.TrimSpace(v)
		}
	}
	return value
}

// ChecksNeverallow reports whether semodule holds modules to neverallow rules:
// expand-check of semanage.conf(5), which is 1 unless the file says otherwise, as
// Debian's does.
func (s System) ChecksNeverallow() (bool, error) {
	b, err := readSome(filepath.Join(s.Root, "etc/selinux/semanage.conf"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return setting(b, "expand-check") != "0", nil
}

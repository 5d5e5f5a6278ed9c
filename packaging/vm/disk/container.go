//go:build vm

package disk

import (
	"fmt"
	"os"
	"path/filepath"

	"portcullis/packaging/vm/kernel"
)

// ContainerModule returns the module of the reference policy that has the domains of containers, container_t above all, in CIL.
// Debian's source package of the policy has it, and its compiled policy has not. checkmodule compiles it against Debian's
// headers of the policy.
func ContainerModule(cache string) (string, error) {
	packages := map[string]string{}
	for _, name := range []string{"selinux-policy-src", "selinux-policy-dev", "checkpolicy"} {
		dir, err := kernel.Package(cache, name)
		if err != nil {
			return "", err
		}
		packages[name] = dir
	}
	file := filepath.Join(packages["selinux-policy-src"], "container.cil")
	if text, err := os.ReadFile(file); err == nil {
		return string(text), nil
	}
	work, err := os.MkdirTemp(cache, "container-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	const source = "selinux-policy-src/policy/modules/services"
	archive := filepath.Join(packages["selinux-policy-src"], "usr/src/selinux-policy-src.tar.zst")
	err = run("", "tar", "--zstd", "-xf", archive, "-C", work, "--strip-components=4", source+"/container.te", source+"/container.fc")
	if err != nil {
		return "", err
	}
	// The version of the package is in its path, with a colon, which make does not take.
	devel := filepath.Join(work, "devel")
	if err := os.Symlink(filepath.Join(packages["selinux-policy-dev"], "usr/share/selinux/devel/include"), devel); err != nil {
		return "", err
	}
	compiler := filepath.Join(packages["checkpolicy"], "usr/bin/checkmodule")
	err = run("", "make", "-C", work, "-f", filepath.Join(devel, "Makefile"), "HEADERDIR="+devel, "AWK=awk", "NAME=default", "TYPE=mcs",
		"CHECKMODULE="+compiler, "tmp/container.mod")
	if err != nil {
		return "", fmt.Errorf("container module of the reference policy: %w", err)
	}
	if err := run("", compiler, "-M", "-m", "-C", "-o", file, filepath.Join(work, "tmp/container.tmp")); err != nil {
		return "", err
	}
	text, err := os.ReadFile(file)
	return string(text), err
}

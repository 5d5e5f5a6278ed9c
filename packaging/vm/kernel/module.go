//go:build vm

package kernel

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// BuildModule builds the kernel module whose source is in a directory, in another one that is empty, and returns its file,
// without debugging symbols.
func (k Kernel) BuildModule(source, work, name string) (string, error) {
	if err := os.CopyFS(work, os.DirFS(source)); err != nil {
		return "", err
	}
	cmd := exec.Command("make", "-C", work, "KERNEL="+k.Headers(), "OUT="+work)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build module %s: %w\n%s", name, err, out)
	}
	file := filepath.Join(work, name+".ko")
	if _, err := output("strip", "--strip-debug", file); err != nil {
		return "", err
	}
	return file, nil
}

//go:build vm

package disk

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// The partition table and the file system have fixed identifiers: firmware measures the first.
const (
	espStart  = 2048 // sectors
	espScript = "label: gpt\nlabel-id: %s\n" +
		"start=%d, size=%d, type=U, uuid=66666666-7777-8888-9999-000000000000\n"
)

// Identifiers of disks.
const (
	DiskID      = "11111111-2222-3333-4444-555555555555"
	OtherDiskID = "11111111-2222-3333-4444-666666666666"
)

// ESP writes a disk with an EFI system partition that holds files: path on the partition, such as /EFI/BOOT/BOOTX64.EFI, to file
// on this machine. The identifier is that of the disk.
func ESP(to, identifier string, files map[string]string) error {
	size := int64(8 << 20)
	for _, from := range files {
		info, err := os.Stat(from)
		if err != nil {
			return err
		}
		size += info.Size() + 1<<20
	}
	size = max(size, 64<<20) // the least that a FAT32 of usual clusters needs
	size = (size + 0xfffff) &^ 0xfffff
	if err := os.WriteFile(to, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(to, size); err != nil {
		return err
	}
	sectors := size/512 - espStart - 2048
	if err := run(fmt.Sprintf(espScript, identifier, espStart, sectors), "/usr/sbin/sfdisk", "--quiet", to); err != nil {
		return err
	}
	image := to + "@@" + fmt.Sprint(espStart*512)
	if err := run("", "mformat", "-i", image, "-F", "-v", "ESP", "-N", "12345678", "-T", fmt.Sprint(sectors), "::"); err != nil {
		return err
	}
	paths := make([]string, 0, len(files))
	for p := range files {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	made := map[string]bool{}
	for _, p := range paths {
		for _, dir := range parents(p) {
			if !made[dir] {
				made[dir] = true
				if err := run("", "mmd", "-i", image, "::"+dir); err != nil {
					return err
				}
			}
		}
		if err := run("", "mcopy", "-i", image, files[p], "::"+p); err != nil {
			return err
		}
	}
	return nil
}

// parents returns the directories above a path, the highest first, without the root.
func parents(p string) []string {
	var dirs []string
	for dir := path.Dir(p); dir != "/" && dir != "."; dir = path.Dir(dir) {
		dirs = append([]string{dir}, dirs...)
	}
	return dirs
}

func run(input, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	if input != "" {
		cmd.Stdin = strings.NewReader(input)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

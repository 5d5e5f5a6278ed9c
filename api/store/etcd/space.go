package etcd

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"portcullis/api/store"
)

// etcd writes its log in segments and reserves the next one ahead. A member that
// finds no room for them neither starts nor ends.
const (
	segment      = 16 << 20
	spaceToStart = segment + 8<<20   // a member that is there: the next segment, and its records
	spaceToBegin = 2*segment + 8<<20 // a new one: its first segment too
)

// checkSpace refuses to start the member in dir, below an existing directory,
// on a disk where it would hang.
func checkSpace(dir string) error {
	need := uint64(spaceToStart)
	if _, err := os.Stat(filepath.Join(dir, "member")); err != nil {
		need = spaceToBegin
	}
	free, err := freeSpace(filepath.Dir(dir))
	if err != nil {
		return err
	}
	return enough(free, need)
}

// freeSpace returns the bytes that the disk of a directory has for this user.
func freeSpace(dir string) (uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, fmt.Errorf("see how much space there is in %s: %w", dir, err)
	}
	return fs.Bavail * uint64(fs.Bsize), nil
}

// enough compares bytes.
func enough(free, need uint64) error {
	if free >= need {
		return nil
	}
	return fmt.Errorf("%w: the state directory's disk has %d MiB free and the store needs %d to start: free some; the store is tried again by itself",
		store.ErrFull, free>>20, need>>20)
}

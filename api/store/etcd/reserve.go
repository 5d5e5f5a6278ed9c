package etcd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A file of the state directory holds space that is given back to the disk when that runs
// full, so that removals can be written still.
const (
	reserveName = "reserve"
	reserveSize = 32 << 20
	// shortSpace is the free space below which only removals are taken.
	shortSpace = segment
	// direSpace is the free space below which the reserve is given back.
	direSpace = 4 << 20
	// amplySpace is the free space beside the reserve from which on it is taken again.
	amplySpace = 2 * shortSpace
)

// reserve is the file in a state directory.
type reserve struct{ path string }

func reserveOf(dir string) reserve { return reserve{filepath.Join(dir, reserveName)} }

// held reports whether the file holds its space.
func (r reserve) held() bool {
	info, err := os.Stat(r.path)
	return err == nil && info.Size() == reserveSize
}

// take has the file hold its space. A file that was not completed is removed.
func (r reserve) take() error {
	f, err := os.OpenFile(r.path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("keep a reserve on the state directory's disk: %w", err)
	}
	err = unix.Fallocate(int(f.Fd()), 0, 0, reserveSize)
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = fill(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("keep a reserve on the state directory's disk: %w", err), r.release())
	}
	return nil
}

// fill writes the file where the file system cannot allocate it.
func fill(f *os.File) error {
	block := make([]byte, 1<<20)
	for range reserveSize / len(block) {
		if _, err := f.Write(block); err != nil {
			return err
		}
	}
	return f.Sync()
}

// release returns the space to the disk.
func (r reserve) release() error {
	err := os.Remove(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("release the reserve on the state directory's disk: %w", err)
	}
	return nil
}

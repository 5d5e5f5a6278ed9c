package owed

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// openFile opens a file of the journal and no other kind of file: no link is followed.
func openFile(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err == nil && info.Mode().Perm()&0o022 != 0 {
		err = fmt.Errorf("others than its owner can write it (mode %#o)", info.Mode().Perm())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// readFile returns what a file has, one byte past journalSize at most; nothing if it is not
// there.
func readFile(path string) ([]byte, error) {
	f, err := openFile(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, journalSize+1))
	return data, errors.Join(err, f.Close())
}

// takeSpace makes a file of full size, all of whose space is taken, that no record is in.
// One that it could not finish is removed.
func takeSpace(path string) error {
	f, err := openFile(path, os.O_WRONLY|os.O_CREATE)
	if err != nil {
		return err
	}
	// Zeros are written, since space that is only allocated may need more when it is.
	_, err = f.WriteAt(make([]byte, journalSize), 0)
	err = errors.Join(err, f.Truncate(journalSize), f.Sync(), f.Close())
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// writeAt writes durably into a file that has its size already.
func writeAt(path string, at int64, data []byte) error {
	f, err := openFile(path, os.O_WRONLY)
	if err != nil {
		return fmt.Errorf("keep what the store is owed: %w", err)
	}
	_, err = f.WriteAt(data, at)
	if err == nil {
		err = unix.Fdatasync(int(f.Fd()))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("keep what the store is owed: %w", err)
	}
	return nil
}

package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"
)

const maxStateFile = 1 << 20

// errGarbled is a file that is not as it was written.
var errGarbled = errors.New("its contents are damaged")

// errForeign is a file or folder that others could write to.
var errForeign = errors.New("others can write to it")

// writeFile writes a file of the folder's owner alone, or leaves the old one as it was: after a crash there is the one or
// the other, whole. The next run removes the files that a killed run left behind.
func writeFile(path string, data []byte) error {
	dir := filepath.Dir(path)
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(dir), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return err
	}
	defer f.Cleanup() //nolint:errcheck // there is nothing left once it was renamed
	if err := giveAway(f.File, dir); err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// giveAway transfers root's file to the owner of the folder. Then the unit, which runs under an account of its own, can go
// on after an operator ran the agent by hand.
func giveAway(f *os.File, dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok || s.Uid == 0 {
		return nil
	}
	return f.Chown(int(s.Uid), int(s.Gid))
}

// checkOwner refuses a file or folder that an untrusted account could have written. Trusted are root, this account, and the
// owner of the folder.
func checkOwner(info fs.FileInfo, trusted ...uint32) error {
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%w: mode %v", errForeign, info.Mode().Perm())
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%w: its owner is not known", errForeign)
	}
	for _, uid := range append(trusted, 0, uint32(os.Geteuid())) {
		if s.Uid == uid {
			return nil
		}
	}
	return fmt.Errorf("%w: its owner has uid %d", errForeign, s.Uid)
}

// load reads a file; an absent one leaves v alone. One that is not JSON is
// errGarbled, one that others can write to errForeign, and one that others can read
// is exposed.
func load(path string, v any) (exposed bool, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return false, err
	}
	var owners []uint32
	if s, ok := folder.Sys().(*syscall.Stat_t); ok {
		owners = append(owners, s.Uid)
	}
	switch err := checkOwner(info, owners...); {
	case err != nil:
		return false, fmt.Errorf("%s: %w", path, err)
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("%s: %w: no regular file", path, errGarbled)
	case info.Size() > maxStateFile:
		return false, fmt.Errorf("%s: %w: %d bytes", path, errGarbled, info.Size())
	}
	b, err := io.ReadAll(io.LimitReader(f, maxStateFile+1))
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return false, fmt.Errorf("%s: %w: %w", path, errGarbled, err)
	}
	return info.Mode().Perm()&0o044 != 0, nil
}

package etcd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// dirLock keeps a second service off a state directory. The kernel drops it
// with the process, however that ends.
type dirLock struct{ f *os.File }

// lockDir makes dir if need be and locks it.
func lockDir(dir string) (*dirLock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		defer f.Close()
		return nil, &InUseError{Dir: dir, PID: holder(f)}
	}
	if err == nil {
		err = errors.Join(f.Truncate(0), writePID(f))
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock state directory %s: %w", dir, err)
	}
	return &dirLock{f}, nil
}

func writePID(f *os.File) error {
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// holder reads the process id that the lock's owner wrote, 0 if unreadable.
func holder(f *os.File) int {
	b, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return pid
}

// release unlocks the directory. The file stays: removing it would race with the next owner.
func (l *dirLock) release() error { return l.f.Close() }

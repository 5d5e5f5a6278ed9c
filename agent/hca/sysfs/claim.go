package sysfs

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrClaimed means that another process drives an adapter.
var ErrClaimed = errors.New("another process of this product uses it")

// Claim keeps other processes of this product from driving an adapter. It is a lock (flock) on the directory of its PCI
// function, which needs no file to be written and ends with the process. The vendor's tools ignore it, and any process that
// can read the tree could hold it. It prevents collisions between two processes, and protects nothing.
type Claim struct{ dir *os.File }

// Claim claims the adapter at an address, at once or not at all (ErrClaimed). had, if
// there, is a claim to the same adapter that is kept, or given up for one of the
// directory that there is by now: a reset may have made another.
func (t *Tree) Claim(a Address, had *Claim) (*Claim, error) {
	name := "bus/pci/devices/" + string(a)
	dir, err := t.root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("claim adapter %s: %w", a, reason(err))
	}
	if had.of(dir) {
		dir.Close()
		return had, nil
	}
	if err := flock(dir, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		dir.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrClaimed
		}
		return nil, fmt.Errorf("adapter %s: %w", a, err)
	}
	had.Close()
	return &Claim{dir}, nil
}

// of reports a claim to that directory.
func (c *Claim) of(dir *os.File) bool {
	if c == nil {
		return false
	}
	ours, err := c.dir.Stat()
	if err != nil {
		return false
	}
	other, err := dir.Stat()
	return err == nil && os.SameFile(ours, other)
}

func flock(f *os.File, how int) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = unix.Flock(int(fd), how) })
	return errors.Join(err, failed)
}

// Close releases the claim. A nil Claim claims nothing. A child that is just being started still has the file open, so
// closing alone would keep the claim for a moment.
func (c *Claim) Close() {
	if c != nil {
		_ = flock(c.dir, unix.LOCK_UN)
		c.dir.Close()
	}
}

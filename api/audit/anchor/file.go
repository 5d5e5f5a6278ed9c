package anchor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"portcullis/api/audit/chain"
)

// File is a Sink that appends anchors to a file, a line each, and has each on the disk before it goes on. At Max bytes the
// file becomes NAME.1, in place of an earlier one, and a new one begins. The newest anchors are enough to detect a
// roll-back, since each entry of the log has the hash of all before it.
type File struct {
	Path string // absolute
	Max  int64
}

// Kind implements Sink.
func (*File) Kind() string { return "file" }

// Name implements Sink.
func (f *File) Name() string { return "file:" + f.Path }

// older is the file of before the last rotation.
func (f *File) older() string { return f.Path + ".1" }

// Check refuses a place that is not the service's own: symbolic links, files that are no regular ones, and directories
// that other users may write to.
func (f *File) Check() error {
	dir := filepath.Dir(f.Path)
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("the directory of the file must be there: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is no directory", dir)
	}
	if mode := info.Mode(); mode.Perm()&0o002 != 0 {
		return fmt.Errorf("directory %s has mode %04o: other users may put files there; use another one, or run: chmod o-w %s", dir, mode.Perm(), dir)
	}
	for _, name := range []string{f.Path, f.older()} {
		if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
			return notRegular(name)
		}
	}
	return nil
}

func notRegular(name string) error {
	return fmt.Errorf("%s is a symbolic link, or no regular file: name the file itself", name)
}

// open opens a regular file, not a symbolic link, and never waits for another program.
func open(name string, flags int) (*os.File, os.FileInfo, error) {
	f, err := os.OpenFile(name, flags|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if errors.Is(err, syscall.ELOOP) {
		return nil, nil, notRegular(name)
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(name)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// Write implements Sink.
func (f *File) Write(_ context.Context, a *chain.Anchor) error {
	line, err := a.Line()
	if err != nil {
		return err
	}
	if info, err := os.Lstat(f.Path); err == nil && info.Mode().IsRegular() && info.Size()+int64(len(line)) > f.Max {
		if err := errors.Join(os.Rename(f.Path, f.older()), syncDir(filepath.Dir(f.Path))); err != nil {
			return fmt.Errorf("begin another file: %w", err)
		}
	}
	_, statErr := os.Lstat(f.Path)
	file, info, err := open(f.Path, os.O_RDWR|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return err
	}
	if err := errors.Join(appendLine(file, info.Size(), line), file.Close()); err != nil {
		return err
	}
	if errors.Is(statErr, fs.ErrNotExist) {
		return syncDir(filepath.Dir(f.Path))
	}
	return nil
}

// appendLine writes a line, and before it an end for one that a write which was cut off has begun.
func appendLine(file *os.File, size int64, line []byte) error {
	if size > 0 {
		last := make([]byte, 1)
		if _, err := file.ReadAt(last, size-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			line = append([]byte(chain.CutOff), line...)
		}
	}
	if _, err := file.Write(line); err != nil {
		return err
	}
	return file.Sync()
}

func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Read implements Reader. A file that is not there has no anchors.
func (f *File) Read(context.Context) ([]chain.Anchor, error) {
	var all []chain.Anchor
	var errs []error
	for _, name := range []string{f.older(), f.Path} {
		file, _, err := open(name, os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		list, err := chain.ReadAnchors(io.LimitReader(file, chain.MaxAnchorFile))
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
		all = append(all, list...)
		file.Close()
	}
	return chain.Sorted(all), errors.Join(errs...)
}

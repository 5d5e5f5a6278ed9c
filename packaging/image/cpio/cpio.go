// Package cpio writes cpio archives of the format "newc", as Linux unpacks them into its first root file system. The same
// calls write the same bytes: inode numbers count from 1, owner is root, times are zero and links are single.
package cpio

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// Bounds of the format's fields that are eight hex digits, and of Linux.
const (
	maxSize = 1<<32 - 1
	maxName = 4096 - 1 // PATH_MAX, with the zero byte
	magic   = "070701"
	trailer = "TRAILER!!!"
)

// Types of files in a mode.
const (
	typeDir   = 0o040000
	typeChar  = 0o020000
	typeBlock = 0o060000
	typeFile  = 0o100000
	typeLink  = 0o120000
	permBits  = 0o7777
)

// Writer writes one archive. Names are slash-separated, relative to the root and
// clean. A parent that was not written gets mode 0755. The first error sticks, and
// each further call returns it.
type Writer struct {
	out  io.Writer
	err  error
	seen map[string]bool // true: a directory
	ino  uint32
	size int64
}

// NewWriter returns a Writer to out. Its caller calls Close after the last entry.
func NewWriter(out io.Writer) *Writer {
	return &Writer{out: out, seen: map[string]bool{"": true}}
}

// Dir adds a directory.
func (w *Writer) Dir(name string, perm uint32) error {
	return w.entry(name, typeDir|perm&permBits, device{}, 0, nil)
}

// File adds a regular file with exactly size bytes of content.
func (w *Writer) File(name string, perm uint32, size int64, content io.Reader) error {
	return w.entry(name, typeFile|perm&permBits, device{}, size, content)
}

// Bytes adds a regular file.
func (w *Writer) Bytes(name string, perm uint32, content []byte) error {
	return w.File(name, perm, int64(len(content)), strings.NewReader(string(content)))
}

// Symlink adds a symbolic link to target.
func (w *Writer) Symlink(name, target string) error {
	if target == "" || len(target) > maxName || strings.ContainsRune(target, 0) {
		return w.fail(fmt.Errorf("cpio: link %q to %.80q: want a target of 1 to %d bytes without zeros", name, target, maxName))
	}
	return w.entry(name, typeLink|0o777, device{}, int64(len(target)), strings.NewReader(target))
}

// CharDevice adds a device node for characters.
func (w *Writer) CharDevice(name string, perm, major, minor uint32) error {
	return w.entry(name, typeChar|perm&permBits, device{major, minor}, 0, nil)
}

// BlockDevice adds a device node for blocks.
func (w *Writer) BlockDevice(name string, perm, major, minor uint32) error {
	return w.entry(name, typeBlock|perm&permBits, device{major, minor}, 0, nil)
}

// Close ends the archive, padded to blocks of 512 bytes. It does not close what
// the archive is written to.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	w.header(trailer, header{links: 1})
	w.pad(512)
	if w.err != nil {
		return w.err
	}
	w.err = errors.New("cpio: the archive is closed")
	return nil
}

type device struct{ major, minor uint32 }

// entry adds one file with those of its parents that are missing.
func (w *Writer) entry(name string, mode uint32, dev device, size int64, content io.Reader) error {
	if w.err != nil {
		return w.err
	}
	if err := w.place(name, mode&^permBits == typeDir); err != nil {
		return w.fail(err)
	}
	if size < 0 || size > maxSize {
		return w.fail(fmt.Errorf("cpio: %s: %d bytes, want 0 to %d", name, size, int64(maxSize)))
	}
	w.ino++
	links := uint32(1)
	if mode&^permBits == typeDir {
		links = 2
	}
	w.header(name, header{ino: w.ino, mode: mode, links: links, size: uint32(size), dev: dev})
	if w.err == nil && size > 0 {
		n, err := io.CopyN(counter{w}, content, size)
		if err != nil {
			return w.fail(fmt.Errorf("cpio: %s: %d of %d bytes: %w", name, n, size, err))
		}
	}
	w.pad(4)
	return w.err
}

// place takes note of a name, and writes its missing parents.
func (w *Writer) place(name string, dir bool) error {
	if name == "" || name == "." || len(name) > maxName || path.Clean(name) != name || path.IsAbs(name) ||
		name == ".." || strings.HasPrefix(name, "../") || strings.ContainsRune(name, 0) || name == trailer {
		return fmt.Errorf("cpio: name %.80q: want a clean path relative to the root", name)
	}
	if _, there := w.seen[name]; there {
		return fmt.Errorf("cpio: %s is there twice, or was needed as a parent before it was written", name)
	}
	if parent := path.Dir(name); parent != "." {
		isDir, there := w.seen[parent]
		switch {
		case !there:
			if err := w.Dir(parent, 0o755); err != nil {
				return err
			}
		case !isDir:
			return fmt.Errorf("cpio: %s: %s is no directory", name, parent)
		}
	}
	w.seen[name] = dir
	return nil
}

// header is what differs among entries.
type header struct {
	ino, mode, links, size uint32
	dev                    device
}

// header writes an entry's header and name.
func (w *Writer) header(name string, h header) {
	fields := []uint32{
		h.ino, h.mode, 0, 0, h.links, 0, h.size, // owner, group and time are zero
		0, 0, h.dev.major, h.dev.minor, uint32(len(name) + 1), 0, // no device that the file lies on, no checksum
	}
	var b strings.Builder
	b.WriteString(magic)
	for _, f := range fields {
		fmt.Fprintf(&b, "%08X", f)
	}
	b.WriteString(name)
	b.WriteByte(0)
	w.write([]byte(b.String()))
	w.pad(4)
}

func (w *Writer) pad(to int64) {
	if over := w.size % to; over != 0 {
		w.write(make([]byte, to-over))
	}
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.out.Write(b)
	w.size += int64(n)
	if err != nil {
		w.err = fmt.Errorf("cpio: write the archive: %w", err)
	}
}

func (w *Writer) fail(err error) error {
	if w.err == nil {
		w.err = err
	}
	return w.err
}

// counter writes content, and has the Writer know how much.
type counter struct{ w *Writer }

// Write implements io.Writer.
func (c counter) Write(b []byte) (int, error) {
	c.w.write(b)
	if c.w.err != nil {
		return 0, c.w.err
	}
	return len(b), nil
}

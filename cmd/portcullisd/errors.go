package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"portcullis/api/store/etcd"
)

// Exit codes.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// hinted is an error that knows what to do about it.
type hinted struct {
	err  error
	hint string
}

func (e *hinted) Error() string { return e.err.Error() }
func (e *hinted) Unwrap() error { return e.err }

func hint(err error, text string) error { return &hinted{err, text} }

// report writes for a person what went wrong and what to do about it, a line each.
func report(w io.Writer, err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(w, "portcullisd: %s\n", line)
	}
	if text := hintOf(err); text != "" {
		fmt.Fprintf(w, "portcullisd: hint: %s\n", text)
	}
}

func hintOf(err error) string {
	if e, ok := errors.AsType[*hinted](err); ok {
		return e.hint
	}
	if _, ok := errors.AsType[*etcd.InUseError](err); ok {
		return "one service holds a state directory; stop the other, or name another state_dir"
	}
	if e, ok := errors.AsType[*etcd.NewerError](err); ok {
		return "install version " + cmp.Or(e.Since, "that wrote it") + " or a later one, or restore a backup that this version wrote"
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Sprintf("the service runs as user %d; give that user access to the file", os.Getuid())
	}
	if errors.Is(err, syscall.ENOSPC) {
		return "the disk is full; make room and start the service again"
	}
	return ""
}

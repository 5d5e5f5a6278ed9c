package command

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

// Exit codes of every command.
const (
	ExitOK    = 0
	ExitError = 1
	ExitUsage = 2
	// ExitNoticed: a report lists what is to be looked at first.
	ExitNoticed = 8
)

// ErrUsage stands for a wrong command line that was reported already.
var ErrUsage = errors.New("wrong usage")

// hinted is an error that knows what to do about it.
type hinted struct {
	err  error
	hint string
}

func (e *hinted) Error() string { return e.err.Error() }
func (e *hinted) Unwrap() error { return e.err }

// Hint returns an error with what a person can do about it.
func Hint(err error, text string) error { return &hinted{err, text} }

// Report writes for a person what went wrong and what to do about it, a line each.
func Report(w io.Writer, err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(w, "portcullisd: %s\n", line)
	}
	if text := HintOf(err); text != "" {
		fmt.Fprintf(w, "portcullisd: hint: %s\n", text)
	}
}

// HintOf returns what a person can do about an error; "" if nothing is known.
func HintOf(err error) string {
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
		return fmt.Sprintf("the service runs as user %d; allow that user to read the file", os.Getuid())
	}
	if errors.Is(err, syscall.ENOSPC) {
		return "the disk is full; make room and start the service again"
	}
	return ""
}

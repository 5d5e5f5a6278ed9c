package mst

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxOutput bounds what a tool may print on either stream, in bytes; a full query
// has some 30 KiB.
const maxOutput = 1 << 20

// drainTime is how long pipes may stay open after the process group was killed.
const drainTime = 5 * time.Second

// environment is all that a tool gets to see.
func environment() []string {
	return []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "HOME=/"}
}

// runner starts tools.
type runner struct{}

// errTooMuch ends a tool that prints without end.
var errTooMuch = fmt.Errorf("it printed more than %d bytes", maxOutput)

// run returns the output of a tool, standard output before standard error. If the tool ends with an exit code other than 0,
// the error is an *Error.
func (runner) run(ctx context.Context, limit time.Duration, path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w after %s", context.DeadlineExceeded, limit))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = environment()
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = drainTime
	stdout, stderr := &bounded{stop: stop}, &bounded{stop: stop}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err := cmd.Run()
	if cmd.Process != nil { // what the tool left behind must not go on
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	out := stdout.kept.String() + stderr.kept.String()
	if cause := context.Cause(ctx); cause != nil {
		return "", &Error{Tool: filepath.Base(path), Err: cause}
	}
	if bad := notText(out); bad != nil {
		return "", &Error{Tool: filepath.Base(path), Err: bad}
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", failed(filepath.Base(path), exit.ExitCode(), out)
	}
	if err != nil {
		return "", &Error{Tool: filepath.Base(path), Err: err}
	}
	return out, nil
}

// bounded keeps what is written until there is no room left. The buffer is not
// embedded: its ReadFrom would be used in the place of Write.
type bounded struct {
	kept bytes.Buffer
	stop context.CancelCauseFunc
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.kept.Len()+len(p) > maxOutput {
		b.stop(errTooMuch)
		return 0, errTooMuch
	}
	return b.kept.Write(p)
}

var errNotText = errors.New("it printed control characters or bytes that are no text")

// notText refuses what is no text of lines.
func notText(s string) error {
	odd := strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && r != '\t' && r != '\r' && !unicode.IsPrint(r) })
	if odd || !utf8.ValidString(s) {
		return errNotText
	}
	return nil
}

// clip keeps messages short.
func clip(s string) string {
	const most = 200
	if s = strings.TrimSpace(s); len(s) > most {
		s = s[:most] + "..."
	}
	return s
}

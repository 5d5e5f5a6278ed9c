package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// stateDir is the agent's folder. One agent uses it at a time.
type stateDir struct {
	dir   string
	lock  *os.File // nil: the process only reads
	log   *slog.Logger
	write func(path string, data []byte) error
}

// openState takes the folder, which it makes if needed, and sweeps it.
func openState(dir string, log *slog.Logger) (*stateDir, error) {
	const hint = "make the folder writable, or name another with --state-dir"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fail(ClassOther, hint, err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fail(ClassOther, hint, err)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return nil, failf(ClassOther, "chmod 700 "+dir+", or name another folder with --state-dir", "state folder %s: %w: mode %v", dir, errForeign, info.Mode().Perm())
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fail(ClassOther, hint, err)
	}
	s := &stateDir{dir: dir, lock: f, log: log, write: writeFile}
	if err := s.take(); err != nil {
		f.Close()
		return nil, err
	}
	s.sweep()
	return s, nil
}

// take locks the folder, and records the process that has it. A failure to write the record changes nothing.
func (s *stateDir) take() error {
	if err := syscall.Flock(int(s.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		who := make([]byte, 20)
		n, _ := s.lock.ReadAt(who, 0)
		by := ""
		if pid, e := strconv.Atoi(string(bytes.TrimSpace(who[:n]))); e == nil {
			by = fmt.Sprintf(", process %d,", pid)
		}
		return failf(ClassOther, "wait for it to end; only one may provision a host", "another portcullis-agent%s uses %s: %w", by, s.dir, err)
	}
	if err := errors.Join(giveAway(s.lock, s.dir), s.lock.Truncate(0)); err == nil {
		_, _ = fmt.Fprintln(s.lock, os.Getpid())
	}
	return nil
}

// sweep removes what runs that were killed while they wrote left behind.
func (s *stateDir) sweep() {
	for _, name := range []string{measuredFile, handOverFile, outcomeFile, lockedFile, hostKeyFile} {
		left, _ := filepath.Glob(filepath.Join(s.dir, "."+name+"*"))
		for _, path := range left {
			if err := os.Remove(path); err != nil {
				s.log.Warn("an incomplete file is left in the state folder", "error", err)
			}
		}
	}
}

// close releases the folder. A child that is just being started still has the file open, so closing alone would leave it
// locked until that child has started.
func (s *stateDir) close() {
	_ = syscall.Flock(int(s.lock.Fd()), syscall.LOCK_UN)
	s.lock.Close()
}

// measured is the list of statements that this agent measured into the agent PCR in this boot, in order. It is written
// before the TPM is extended.
type measured struct {
	Start     attest.Start `json:"start"`
	Digests   [][]byte     `json:"digests"`   // of statements
	Statement []byte       `json:"statement"` // the last one
}

// last is the digest of the last statement.
func (m *measured) last() []byte { return m.Digests[len(m.Digests)-1] }

// Outcome is the end of a run as kept for `portcullis-agent status`.
type Outcome struct {
	Time   time.Time `json:"time"`
	Host   string    `json:"host"`
	BootID string    `json:"boot_id,omitempty"` // it was in this boot; agents of before did not say
	Phase  v1.Phase  `json:"phase,omitempty"`   // last phase that the service reported
	Run    string    `json:"run,omitempty"`     // what was run, [Goal.String]; agents of before did not say
	Class  Class     `json:"class"`             // 0: it came to its goal
	Detail string    `json:"detail,omitempty"`
}

const (
	measuredFile = "measured.json"
	handOverFile = "handover.json"
	outcomeFile  = "outcome.json"
	lockedFile   = "locked.json"
	hostKeyFile  = "hostkey.json"
)

func (s *stateDir) save(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	path := filepath.Join(s.dir, name)
	if err := s.write(path, append(b, '\n')); err != nil {
		return fmt.Errorf("save %s: %w", path, err)
	}
	return nil
}

// has reports whether there is something of this name.
func (s *stateDir) has(name string) bool {
	_, err := os.Lstat(filepath.Join(s.dir, name))
	return err == nil
}

// load reads a file of the folder; an absent one leaves v alone. One that others
// could read is closed to them.
func (s *stateDir) load(name string, v any) error {
	path := filepath.Join(s.dir, name)
	exposed, err := load(path, v)
	if err != nil || !exposed || s.lock == nil {
		return err
	}
	s.log.Warn("others could read a file of the state folder", "file", path)
	return os.Chmod(path, 0o600)
}

// hint returns the remedy for a file that cannot be read, or must not be trusted.
func (s *stateDir) hint(err error) string {
	switch {
	case errors.Is(err, errGarbled):
		return "the next run writes it again"
	case errors.Is(err, errForeign):
		return "check which accounts can write to it; then make the owner of " + s.dir + " its owner, with mode 600"
	case errors.Is(err, fs.ErrPermission):
		return "run as root, or as the account of the unit; make the owner of the folder the owner of the files in " + s.dir + " to the owner of the folder"
	default:
		return "see that the disk of " + s.dir + " works"
	}
}

func (s *stateDir) measured() (m measured, err error) {
	return m, s.load(measuredFile, &m)
}

// LastOutcome reads the end of the last run; nil when there was none.
func LastOutcome(dir string) (*Outcome, error) {
	var o *Outcome
	if err := (&stateDir{dir: dir}).load(outcomeFile, &o); err != nil {
		return nil, fail(ClassOther, (&stateDir{dir: dir}).hint(err), err)
	}
	return o, nil
}

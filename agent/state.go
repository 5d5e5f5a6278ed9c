package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/renameio/v2"

	v1 "portcullis/api/v1"
	"portcullis/attest"
)

const maxStateFile = 1 << 20

// stateDir is the agent's folder. One agent uses it at a time.
type stateDir struct {
	dir  string
	lock *os.File
}

// openState takes the folder, which it makes if needed.
func openState(dir string) (*stateDir, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fail(ClassOther, "make the folder writable, or name another with --state-dir", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fail(ClassOther, "make the folder writable, or name another with --state-dir", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, failf(ClassOther, "wait for it to end", "another portcullis-agent uses %s: %w", dir, err)
	}
	return &stateDir{dir: dir, lock: f}, nil
}

func (s *stateDir) close() { s.lock.Close() }

// measured is what this agent measured into the agent PCR in this boot, in
// order. It is written before the TPM is told.
type measured struct {
	Start     attest.Start `json:"start"`
	Digests   [][]byte     `json:"digests"`   // of statements
	Statement []byte       `json:"statement"` // the last one
}

// last is the digest of the last statement.
func (m *measured) last() []byte { return m.Digests[len(m.Digests)-1] }

// handOver is a hand-over that was begun: from then on this boot can attest
// nothing more, so what is needed to go on waiting is written down before.
type handOver struct {
	Open    []byte `json:"open"` // what the agent PCR held
	Session string `json:"session"`
	Token   string `json:"status_token"` // reads this host's status and grants nothing
}

// Outcome is the end of a run as kept for `portcullis-agent status`.
type Outcome struct {
	Time   time.Time `json:"time"`
	Host   string    `json:"host"`
	Phase  v1.Phase  `json:"phase,omitempty"` // last phase the service told
	Class  Class     `json:"class"`           // 0: admitted
	Detail string    `json:"detail,omitempty"`
}

const (
	measuredFile = "measured.json"
	handOverFile = "handover.json"
	outcomeFile  = "outcome.json"
	lockedFile   = "locked.json"
)

func (s *stateDir) save(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	path := filepath.Join(s.dir, name)
	if err := renameio.WriteFile(path, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("save %s: %w", path, err)
	}
	return nil
}

// load reads a file; an absent one leaves v alone.
func load(path string, v any) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Size() > maxStateFile {
		return fmt.Errorf("%s: %d bytes are too many", path, info.Size())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (s *stateDir) measured() (m measured, err error) {
	return m, load(filepath.Join(s.dir, measuredFile), &m)
}

func (s *stateDir) handOver() (h handOver, err error) {
	return h, load(filepath.Join(s.dir, handOverFile), &h)
}

// LastOutcome reads the end of the last run; nil when there was none.
func LastOutcome(dir string) (*Outcome, error) {
	var o *Outcome
	if err := load(filepath.Join(dir, outcomeFile), &o); err != nil {
		return nil, fail(ClassOther, "", err)
	}
	return o, nil
}

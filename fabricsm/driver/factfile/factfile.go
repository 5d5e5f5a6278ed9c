// Package factfile keeps in a directory what a Subnet Manager has to know after a restart: LIDs, and fields that devices do
// not keep.
//
// The file "facts" is a journal: a line of JSON for each fact, flushed to disk before Save returns. It is rewritten, whole
// and atomically, when it has grown to several times its facts. The file "guid2lid" has the LIDs in the format of OpenSM,
// to go back to it.
package factfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"portcullis/fabricsm/driver/guid2lid"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
)

const (
	journalName = "facts"
	exportName  = "guid2lid"

	// maxJournal bounds the size that is read; a full subnet has 5 MB.
	maxJournal = 64 << 20
	// spare is how many lines a journal may have beyond twice its facts.
	spare = 1000
)

// Store is a driver.Store in a directory. When it cannot be written, as on a full disk, the Subnet Manager goes on. That is
// logged once, and missing facts are written with the next Save or Flush that succeeds. Until then a restart would find the
// LIDs on the ports and nothing else.
type Store struct {
	dir string
	log *slog.Logger

	mu      sync.Mutex
	held    *os.File // the directory, locked
	journal *os.File // to append to; nil while it has to be rewritten
	facts   map[key]sm.Fact
	lines   int
	failing bool // it was logged
	lids    bool // changed since guid2lid was written
}

// key is what one fact replaces another for.
type key struct {
	kind sm.FactKind
	guid ib.GUID
	port ib.PortNum
	name string
}

// InUseError says that another process holds the directory.
type InUseError struct{ Dir string }

func (e *InUseError) Error() string {
	return fmt.Sprintf("state directory %s: another subnet manager uses it", e.Dir)
}

// Open takes a directory, which is made if it is not there, and reads what it
// holds.
func Open(dir string, log *slog.Logger) (_ *Store, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	s := &Store{dir: dir, log: log, facts: make(map[key]sm.Fact)}
	if s.held, err = os.Open(dir); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := unix.Flock(int(s.held.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(inUse(dir, err), s.held.Close())
	}
	if err := s.read(); err != nil {
		return nil, errors.Join(err, s.held.Close())
	}
	return s, nil
}

func inUse(dir string, err error) error {
	if errors.Is(err, unix.EWOULDBLOCK) {
		return &InUseError{dir}
	}
	return fmt.Errorf("lock state directory %s: %w", dir, err)
}

func (s *Store) path(name string) string { return filepath.Join(s.dir, name) }

// read reads the journal. Invalid lines, such as the last one after a crash in the middle of writing, are left out and
// logged.
func (s *Store) read() error {
	f, err := os.Open(s.path(journalName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // Save makes it
	}
	if err != nil {
		return fmt.Errorf("read state: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxJournal+1))
	if err != nil {
		return fmt.Errorf("read state: %w", err)
	}
	if len(data) > maxJournal {
		return fmt.Errorf("read state: %s is larger than %d bytes; is it ours?", s.path(journalName), maxJournal)
	}
	broken := 0
	for line := range bytes.Lines(data) {
		var fact sm.Fact
		if line[len(line)-1] != '\n' || json.Unmarshal(line, &fact) != nil || !legal(&fact) {
			broken++
			continue
		}
		s.lines++
		s.take(fact)
	}
	if broken > 0 {
		s.log.Warn("lines of the state were left out; most likely the machine went down while they were written",
			"file", s.path(journalName), "lines", broken)
		return nil // rewritten before a fact is added
	}
	s.openJournal()
	return nil
}

// Read reads the facts of a journal without taking its directory, as for a backup
// while a subnet manager writes it. A line that is none fails it.
func Read(name string, r io.Reader) ([]sm.Fact, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxJournal+1))
	if err != nil {
		return nil, fmt.Errorf("read facts: %w", err)
	}
	if len(data) > maxJournal {
		return nil, fmt.Errorf("read facts: %s is larger than %d bytes; is it ours?", name, maxJournal)
	}
	s, number := &Store{facts: make(map[key]sm.Fact)}, 0
	for line := range bytes.Lines(data) {
		number++
		var fact sm.Fact
		if line[len(line)-1] != '\n' || json.Unmarshal(line, &fact) != nil || !legal(&fact) {
			return nil, fmt.Errorf("%s:%d: this is no fact, or not all of one; if it is the last line, try again", name, number)
		}
		s.take(fact)
	}
	return s.sorted(), nil
}

// legal reports whether a Subnet Manager can have saved a fact.
func legal(f *sm.Fact) bool {
	return f.Kind != "" && (f.GUID.Valid() || f.OfFabric()) && f.LMC <= 7 && (f.LID == 0 || f.LID.IsUnicast())
}

// take adds a fact to the known ones. One that takes an earlier one back is not kept itself.
func (s *Store) take(f sm.Fact) {
	k := key{f.Kind, f.GUID, f.Port, f.Name}
	if f.TakesBack() {
		delete(s.facts, k)
	} else {
		s.facts[k] = f
	}
	s.lids = s.lids || f.Kind == sm.FactLID
}

// openJournal opens the file to append to it. If that fails, the file is rewritten.
func (s *Store) openJournal() {
	f, err := os.OpenFile(s.path(journalName), os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		s.journal = f
	}
}

// Load returns all facts.
func (s *Store) Load() ([]sm.Fact, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sorted(), nil
}

func (s *Store) sorted() []sm.Fact {
	keys := slices.SortedFunc(maps.Keys(s.facts), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.guid, b.guid), cmp.Compare(a.port, b.port), cmp.Compare(a.name, b.name))
	})
	out := make([]sm.Fact, 0, len(keys))
	for _, k := range keys {
		out = append(out, s.facts[k])
	}
	return out
}

// Save saves facts. It fails after Close. It also fails if it cannot write facts without which the manager must not go on.
// See Store.
func (s *Store) Save(facts []sm.Fact) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		return errors.New("save state: the state directory was closed")
	}
	if slices.ContainsFunc(facts, func(f sm.Fact) bool { return f.Key != nil || !f.Private.IsZero() }) {
		return errors.New("save state: a secret was to be kept in clear; it has to be sealed first")
	}
	added, err := encode(facts)
	if err != nil {
		return fmt.Errorf("save state: %w", err)
	}
	for _, f := range facts {
		s.take(f)
	}
	s.lines += len(facts)
	if s.journal == nil || s.lines > 2*len(s.facts)+spare {
		err = s.rewrite()
		s.settle(err)
		return vital(facts, err)
	}
	if _, err = s.journal.Write(added); err == nil {
		err = s.journal.Sync()
	}
	if err != nil {
		s.forgetJournal() // part of a line may be in it
	}
	s.settle(err)
	return vital(facts, err)
}

// vital returns an error of writing if one of the facts is Vital.
func vital(facts []sm.Fact, err error) error {
	if err != nil && slices.ContainsFunc(facts, func(f sm.Fact) bool { return f.Vital() }) {
		return fmt.Errorf("save keys of devices: %w", err)
	}
	return nil
}

// settle logs that writing began to fail, or works again.
func (s *Store) settle(err error) {
	switch {
	case err != nil && !s.failing:
		s.log.Error("the state of the subnet manager was not saved; it goes on, and tries again", "dir", s.dir, "error", err)
	case err == nil && s.failing:
		s.log.Info("the state of the subnet manager is saved again", "dir", s.dir)
	}
	s.failing = err != nil
}

func (s *Store) forgetJournal() {
	if s.journal != nil {
		_ = s.journal.Close() // it is rewritten
		s.journal = nil
	}
}

// rewrite replaces the journal by one with the current facts only.
func (s *Store) rewrite() error {
	s.forgetJournal()
	all, err := encode(s.sorted())
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(s.path(journalName), all, 0o600); err != nil {
		return err
	}
	s.lines = len(s.facts)
	s.openJournal()
	return nil
}

// encode returns a line for each fact.
func encode(facts []sm.Fact) ([]byte, error) {
	var b bytes.Buffer
	for _, f := range facts {
		line, err := json.Marshal(f)
		if err != nil {
			return nil, err
		}
		b.Write(append(line, '\n'))
	}
	return b.Bytes(), nil
}

// Flush writes what could not be written before, and guid2lid if LIDs changed.
// It is to be called now and then, from any goroutine.
func (s *Store) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		return
	}
	if s.journal == nil && len(s.facts) > 0 {
		s.settle(s.rewrite())
	}
	if s.lids {
		s.export()
	}
}

// export writes the LIDs for OpenSM.
func (s *Store) export() {
	var entries []guid2lid.Entry
	for _, f := range s.facts {
		if f.Kind == sm.FactLID {
			entries = append(entries, guid2lid.New(f.GUID, f.LID, f.LMC))
		}
	}
	if err := renameio.WriteFile(s.path(exportName), guid2lid.Format(entries), 0o600); err != nil {
		s.settle(err)
		return
	}
	s.lids = false
}

// Close writes missing facts and releases the directory.
func (s *Store) Close() error {
	s.Flush()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetJournal()
	if s.held == nil {
		return nil
	}
	err := s.held.Close()
	s.held = nil
	return err
}

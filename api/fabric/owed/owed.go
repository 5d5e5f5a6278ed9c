// Package owed keeps what was done while the store was away, until the store has it: facts
// that the subnet manager must not forget, removals that operators ordered, and entries for
// the audit log.
//
// All of it is in memory, and in a journal in the state directory whose space is taken
// beforehand. Where the disk does not take it either, it is in memory alone, and callers
// learn that.
package owed

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"portcullis/api/audit"
	"portcullis/fabricsm/sm"
)

// Removal is an order to take a host off its cluster.
type Removal struct {
	Host    string    `json:"host"`
	Cluster string    `json:"cluster,omitempty"` // that it was in; empty: it had no grant
	Epoch   int64     `json:"epoch,omitempty"`   // assignment that its grants were of; 0: not known
	Actor   string    `json:"actor"`
	Time    time.Time `json:"time"`
	Reason  string    `json:"reason,omitempty"`

	// settled is the revision at which the store has it; 0: it has not.
	settled int64
}

// Entry is one record of the journal: one of these.
type Entry struct {
	Facts   []sm.Fact    `json:"facts,omitempty"` // keys in them are sealed
	Removal *Removal     `json:"removal,omitempty"`
	Note    *audit.Entry `json:"note,omitempty"`
}

// ErrNotDurable says that neither store nor journal can keep what must not be lost.
var ErrNotDurable = errors.New("the store is away and the journal of the state directory cannot be written")

// Keeper holds what is owed. It is safe for concurrent use.
type Keeper struct {
	log *slog.Logger

	dir string // of the journal; empty: there is to be none

	mu       sync.Mutex
	journal  *journal // nil: memory alone
	facts    map[string]owedFact
	turn     uint64
	removals map[string]Removal // by host
	notes    []audit.Entry
	since    time.Time // of the oldest; zero: nothing is owed
	fragile  bool      // something is in memory alone
	retryAt  time.Time // when that is offered to the journal again

	known map[string]sm.Fact // all facts, as last loaded and saved; nil: never loaded
}

// owedFact is a fact that the store does not have.
type owedFact struct {
	fact sm.Fact
	turn uint64 // when it came, so that a newer one is not taken for saved
}

// maxNotes bounds what the audit log is owed. Then the oldest are kept.
const maxNotes = 10_000

// New returns a Keeper without a journal.
func New(log *slog.Logger) *Keeper {
	return &Keeper{log: log, facts: map[string]owedFact{}, removals: map[string]Removal{}}
}

// Open returns a Keeper with a journal in a directory, which is there, and with what an
// earlier process left. A journal that cannot be created, as on a full disk, is reported, and tried
// again by Settle. One that is there and cannot be read is an error: it may have removals.
func Open(dir string, log *slog.Logger) (*Keeper, error) {
	k := New(log)
	k.dir = dir
	j, was, err := openJournal(dir)
	if _, unreadable := errors.AsType[*UnreadableError](err); unreadable {
		return nil, err
	}
	if err != nil {
		log.Error("there is no journal for what the store does not take; it is in memory alone", "error", err)
	}
	k.journal = j
	if was.torn {
		log.Warn("the last record of the journal was not written whole, and was never confirmed: it is left out", "directory", dir)
	}
	for i := range was.entries {
		e := &was.entries[i]
		k.keepFacts(e.Facts)
		if e.Removal != nil {
			k.removals[e.Removal.Host] = *e.Removal
		}
		if e.Note != nil {
			k.notes = append(k.notes, *e.Note)
		}
	}
	if len(was.entries) > 0 {
		k.since = time.Now()
		log.Warn("the journal has what the store does not have yet", "facts", len(k.facts), "removals", len(k.removals), "notes", len(k.notes))
	}
	return k, nil
}

// Key names what one fact replaces another for.
func Key(f *sm.Fact) string {
	if f.Name != "" {
		return string(f.Kind) + "/" + f.Name
	}
	if f.Port != 0 {
		return string(f.Kind) + "/" + f.GUID.String() + "/" + strconv.Itoa(int(f.Port))
	}
	return string(f.Kind) + "/" + f.GUID.String()
}

// vital reports a fact that must be durable before it is used: nothing in the fabric shows
// it again after a restart.
func vital(f *sm.Fact) bool {
	_, isKey := f.Kind.KeyKind()
	_, turns := f.Kind.RotationKind()
	return isKey || turns || f.Sealed != "" || f.Kind.OfSA() || f.Kind == sm.FactReleased
}

func (k *Keeper) keepFacts(facts []sm.Fact) {
	for i := range facts {
		k.turn++
		k.facts[Key(&facts[i])] = owedFact{facts[i], k.turn}
	}
}

// Owes reports whether facts are owed, so that later ones must wait for them.
func (k *Keeper) Owes() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.facts) > 0
}

// together is how many facts are in one record of the journal.
const together = 64

// AddFacts keeps facts that the store did not take. It returns an error that is
// ErrNotDurable, and keeps nothing, when the journal does not take them and one of them must
// be durable.
func (k *Keeper) AddFacts(facts []sm.Fact) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var before []owedFact
	for i := range facts {
		if f, there := k.facts[Key(&facts[i])]; there {
			before = append(before, f)
		}
	}
	k.keepFacts(facts)
	var err error
	for part := range slices.Chunk(facts, together) {
		if err = k.write(&Entry{Facts: part}); err != nil {
			break
		}
	}
	if err != nil && slices.ContainsFunc(facts, func(f sm.Fact) bool { return vital(&f) }) {
		for i := range facts {
			delete(k.facts, Key(&facts[i]))
		}
		for _, f := range before {
			k.facts[Key(&f.fact)] = f
		}
		return fmt.Errorf("%w: %w", ErrNotDurable, err)
	}
	k.learn(facts)
	return nil
}

// AddRemoval keeps an order, which is in force from now on. durable is false when it is in
// memory alone.
func (k *Keeper) AddRemoval(r Removal) (durable bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.removals[r.Host] = r
	return k.write(&Entry{Removal: &r}) == nil
}

// AddNote keeps an entry for the audit log. durable is false when it is in memory
// alone.
func (k *Keeper) AddNote(e audit.Entry) (durable bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.notes) >= maxNotes {
		k.log.Error("the audit log is owed too much to keep more", "action", e.Action, "object", e.Object, "actor", e.Actor, "code", e.Code)
		return false
	}
	k.notes = append(k.notes, e)
	return k.write(&Entry{Note: &e}) == nil
}

// write makes an entry durable that is kept in memory already, and logs when that fails
// first.
func (k *Keeper) write(e *Entry) error {
	if k.since.IsZero() {
		k.since = time.Now()
	}
	if k.journal == nil {
		return k.noted(0, errNoJournal)
	}
	return k.noted(k.journal.add(e, k.all))
}

var errNoJournal = errors.New("there is no journal")

// retry is the pause after which a journal is tried again that did not take everything.
const retry = 5 * time.Second

// noted takes note of how a write went.
func (k *Keeper) noted(left int, err error) error {
	failed := err
	if left > 0 && err == nil {
		failed = errNoRoom
	}
	if failed != nil {
		if !k.fragile {
			k.log.Error("what the store is owed is in memory alone, and is lost if this process ends before the store is back", "error", failed)
			k.retryAt = time.Now().Add(retry)
		}
		k.fragile = true
	}
	return err
}

// rewrite has the journal begin with what is owed now.
func (k *Keeper) rewrite() error {
	left, err := k.journal.rewrite(k.all())
	if err == nil && left == 0 {
		if k.fragile {
			k.log.Warn("the journal has everything that the store is owed")
		}
		k.fragile = false
	}
	return k.noted(left, err)
}

// all returns everything that is owed, as a journal has it: removals first, for which there
// is always room.
func (k *Keeper) all() []Entry {
	var out []Entry
	for _, host := range slices.Sorted(maps.Keys(k.removals)) {
		if r := k.removals[host]; r.settled == 0 {
			out = append(out, Entry{Removal: &r})
		}
	}
	for facts := range slices.Chunk(k.owedFacts(), together) {
		e := Entry{}
		for _, f := range facts {
			e.Facts = append(e.Facts, f.fact)
		}
		out = append(out, e)
	}
	for i := range k.notes {
		out = append(out, Entry{Note: &k.notes[i]})
	}
	return out
}

// owedFacts returns facts in the order in which they came.
func (k *Keeper) owedFacts() []owedFact {
	return slices.SortedFunc(maps.Values(k.facts), func(a, b owedFact) int { return cmp.Compare(a.turn, b.turn) })
}

// Removed returns the hosts whose grants are not to be in force, as seen by one who knows
// the store as of a revision.
func (k *Keeper) Removed(revision int64) map[string]bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make(map[string]bool, len(k.removals))
	for host, r := range k.removals {
		if r.settled == 0 || r.settled > revision {
			out[host] = true
			continue
		}
		delete(k.removals, host)
	}
	return out
}

// Removes reports whether any host is removed other than by the store.
func (k *Keeper) Removes() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.removals) > 0
}

// State says what is owed.
type State struct {
	Facts, Removals, Notes int
	Since                  time.Time // of the oldest; zero: nothing is owed
	Fragile                bool      // some of it is in memory alone
}

// State returns what is owed now.
func (k *Keeper) State() State {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := State{Facts: len(k.facts), Notes: len(k.notes), Since: k.since, Fragile: k.fragile}
	for _, r := range k.removals {
		if r.settled == 0 {
			s.Removals++
		}
	}
	return s
}

// Known returns all facts as they were last loaded and saved, and whether they were loaded
// at all.
func (k *Keeper) Known() ([]sm.Fact, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make([]sm.Fact, 0, len(k.known))
	for _, key := range slices.Sorted(maps.Keys(k.known)) {
		out = append(out, k.known[key])
	}
	return out, k.known != nil
}

// Loaded takes all facts that the store has, and returns them with those that it is owed. The result may be facts.
func (k *Keeper) Loaded(facts []sm.Fact) []sm.Fact {
	k.mu.Lock()
	k.known = make(map[string]sm.Fact, len(facts))
	k.learn(facts)
	owed := k.owedFacts()
	for _, f := range owed {
		k.learn([]sm.Fact{f.fact})
	}
	same := len(owed) == 0 && len(k.known) == len(facts)
	k.mu.Unlock()
	if same {
		return facts // to sort a great list again takes a while
	}
	all, _ := k.Known()
	return all
}

// Saved takes note of facts that the store took.
func (k *Keeper) Saved(facts []sm.Fact) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.learn(facts)
}

func (k *Keeper) learn(facts []sm.Fact) {
	if k.known == nil {
		return
	}
	for i := range facts {
		if facts[i].TakesBack() {
			delete(k.known, Key(&facts[i]))
		} else {
			k.known[Key(&facts[i])] = facts[i]
		}
	}
}

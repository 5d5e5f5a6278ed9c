package factfile

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/portset"
)

var _ driver.Store = (*Store)(nil)

func open(t *testing.T, dir string, said *bytes.Buffer) *Store {
	t.Helper()
	s, err := Open(dir, slog.New(slog.NewTextHandler(said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func save(t *testing.T, s *Store, facts ...sm.Fact) {
	t.Helper()
	if err := s.Save(facts); err != nil {
		t.Fatal(err)
	}
}

func wantFacts(t *testing.T, s *Store, want ...sm.Fact) {
	t.Helper()
	got, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("facts (-want +got):\n%s", d)
	}
}

func lid(g ib.GUID, l ib.LID) sm.Fact { return sm.Fact{Kind: sm.FactLID, GUID: g, LID: l} }

func TestFactsSurvive(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sm")
	var said bytes.Buffer
	s := open(t, dir, &said)
	wantFacts(t, s, []sm.Fact{}...)
	odd := sm.Fact{Kind: sm.FactNotKept, GUID: 0x20, NotKept: portset.HOQLife, Model: "x", Place: ib.Place{Switch: 3, Port: 4}}
	save(t, s, lid(0x10, 5), lid(0x11, 6), odd)
	save(t, s, lid(0x10, 7), lid(0x11, 0))
	if _, err := Open(dir, slog.Default()); !errors.As(err, new(*InUseError)) {
		t.Errorf("a second subnet manager in the directory: %v, want InUseError", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(nil); err == nil {
		t.Error("saved after Close")
	}
	again := open(t, dir, &said)
	wantFacts(t, again, lid(0x10, 7), odd)
	many := sm.Fact{Kind: sm.FactLID, GUID: 0x12, LID: 8, LMC: 2}
	save(t, again, many)
	wantFacts(t, again, lid(0x10, 7), many, odd)
	again.Close()
	list, err := os.ReadFile(filepath.Join(dir, "guid2lid"))
	if want := "0x0000000000000010 0x0007 0x0007\n\n0x0000000000000012 0x0008 0x000b\n\n"; err != nil || string(list) != want {
		t.Errorf("guid2lid %q, %v; want %q", list, err, want)
	}
	for _, name := range []string{"facts", "guid2lid"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want mode 0600", name, info, err)
		}
	}
	if said.Len() > 0 {
		t.Errorf("said %s", said.String())
	}
}

// TestFactsSurviveACrashWhileWriting: every prefix of a journal may be left by a crash. No fact that was saved before the
// last line is lost, and facts added later are kept.
func TestFactsSurviveACrashWhileWriting(t *testing.T) {
	dir := t.TempDir()
	var said bytes.Buffer
	s := open(t, dir, &said)
	save(t, s, lid(0x10, 5))
	save(t, s, lid(0x11, 6))
	s.Close()
	whole, err := os.ReadFile(filepath.Join(dir, "facts"))
	if err != nil {
		t.Fatal(err)
	}
	first := bytes.IndexByte(whole, '\n') + 1
	for cut := first; cut <= len(whole); cut++ {
		if err := os.WriteFile(filepath.Join(dir, "facts"), whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		want := []sm.Fact{lid(0x10, 5), lid(0x12, 9)}
		if cut == len(whole) {
			want = []sm.Fact{lid(0x10, 5), lid(0x11, 6), lid(0x12, 9)}
		}
		said.Reset()
		s := open(t, dir, &said)
		save(t, s, lid(0x12, 9))
		s.Close()
		if torn := cut != first && cut != len(whole); torn != strings.Contains(said.String(), "left out") {
			t.Errorf("cut at %d: said %q", cut, said.String())
		}
		s = open(t, dir, &said)
		wantFacts(t, s, want...)
		s.Close()
	}
}

// TestAFullDiskIsSurvived: a directory that cannot be written does not end the subnet manager and is logged once. Missing
// facts are written as soon as that is possible.
func TestAFullDiskIsSurvived(t *testing.T) {
	dir := t.TempDir()
	var said bytes.Buffer
	s := open(t, dir, &said)
	save(t, s, lid(0x10, 5))
	s.journal.Close() // writes to it fail, as on a full disk
	save(t, s, lid(0x11, 6))
	blocked := filepath.Join(dir, "facts")
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(blocked, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	save(t, s, lid(0x12, 7))
	s.Flush()
	if n := strings.Count(said.String(), "was not saved"); n != 1 {
		t.Errorf("told %d times, want once:\n%s", n, said.String())
	}
	wantFacts(t, s, lid(0x10, 5), lid(0x11, 6), lid(0x12, 7))
	if err := os.RemoveAll(blocked); err != nil {
		t.Fatal(err)
	}
	s.Flush()
	if !strings.Contains(said.String(), "saved again") {
		t.Errorf("did not say that it is well again:\n%s", said.String())
	}
	s.Close()
	wantFacts(t, open(t, dir, &said), lid(0x10, 5), lid(0x11, 6), lid(0x12, 7))
}

// TestTheJournalIsWrittenAnew: the journal does not grow without end.
func TestTheJournalIsWrittenAnew(t *testing.T) {
	dir := t.TempDir()
	var said bytes.Buffer
	s := open(t, dir, &said)
	for i := range 5 * spare {
		f := lid(0x10, ib.LID(i+1))
		s.mu.Lock()
		s.lines += 3 // as if more had been written, without the flushes
		s.mu.Unlock()
		if i%10 == 0 {
			save(t, s, f)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "facts"))
	if err != nil || len(data) > 100*(spare+3) {
		t.Errorf("the journal has %d bytes, %v", len(data), err)
	}
	wantFacts(t, s, lid(0x10, 4991))
}

// TestFactsOfPorts checks that facts about several ports of one switch are kept apart.
func TestFactsOfPorts(t *testing.T) {
	dir := t.TempDir()
	var said bytes.Buffer
	mark := func(port ib.PortNum, as string) sm.Fact {
		return sm.Fact{Kind: sm.FactHealth, GUID: 0x30, Port: port, Mark: as}
	}
	s := open(t, dir, &said)
	save(t, s, mark(1, "unhealthy"), mark(2, "healthy"), mark(3, "unhealthy"), mark(0, "healthy"))
	save(t, s, mark(3, ""))
	s.Close()
	wantFacts(t, open(t, dir, &said), mark(0, "healthy"), mark(1, "unhealthy"), mark(2, "healthy"))
}

func TestFactsWithNames(t *testing.T) {
	dir := t.TempDir()
	var said bytes.Buffer
	s := open(t, dir, &said)
	member := func(name, body string) sm.Fact {
		return sm.Fact{Kind: sm.FactSAMember, Name: name, Body: body}
	}
	save(t, s, member("c000-10", "1"), member("c000-11", "1"), sm.Fact{Kind: sm.FactSAGroup, Name: "c000", Body: "x"})
	save(t, s, member("c000-10", "5"), member("c000-11", ""))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantFacts(t, open(t, dir, &said), sm.Fact{Kind: sm.FactSAGroup, Name: "c000", Body: "x"}, member("c000-10", "5"))
	if said.Len() > 0 {
		t.Errorf("reading them again said %s", said.String())
	}
}

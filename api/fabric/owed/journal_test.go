package owed

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"portcullis/api/audit"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
)

var (
	quiet = slog.New(slog.DiscardHandler)
	noon  = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
)

func removal(host string) Removal {
	return Removal{Host: host, Cluster: "acme-1", Epoch: 3, Actor: "local socket, uid 0", Time: noon, Reason: "fence: noisy"}
}

func note(object string) audit.Entry {
	return audit.Entry{Time: noon, Actor: "local socket, uid 0", Action: "fabric.health", Object: object, Code: "unhealthy"}
}

func lid(guid ib.GUID, l ib.LID) sm.Fact { return sm.Fact{Kind: sm.FactLID, GUID: guid, LID: l} }

func open(t *testing.T, dir string) *Keeper {
	t.Helper()
	k, err := Open(dir, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// owes compares what a keeper owes with entries.
func owes(t *testing.T, k *Keeper, want ...Entry) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if d := cmp.Diff(want, k.all(), cmpopts.IgnoreUnexported(Removal{}), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("owed (-want +got):\n%s", d)
	}
}

func removed(host string) Entry {
	r := removal(host)
	return Entry{Removal: &r}
}

// TestJournalKeeps: confirmed records are there after each restart, later records for the same host or fact count, and the
// space of both files is taken.
func TestJournalKeeps(t *testing.T) {
	dir := t.TempDir()
	k := open(t, dir)
	owes(t, k)
	older := removal("h1")
	older.Cluster = "acme-0"
	if !k.AddRemoval(older) || !k.AddRemoval(removal("h2")) || !k.AddRemoval(removal("h1")) || !k.AddNote(note("fabric/0x1/2")) {
		t.Fatal("an order is not durable")
	}
	if err := errors.Join(k.AddFacts([]sm.Fact{lid(1, 7)}), k.AddFacts([]sm.Fact{lid(1, 8), lid(2, 9)})); err != nil {
		t.Fatal(err)
	}
	n := note("fabric/0x1/2")
	want := []Entry{removed("h1"), removed("h2"), {Facts: []sm.Fact{lid(1, 8), lid(2, 9)}}, {Note: &n}}
	owes(t, k, want...)
	for range 3 {
		k = open(t, dir)
		owes(t, k, want...)
		if s := k.State(); s.Facts != 2 || s.Removals != 2 || s.Notes != 1 || s.Since.IsZero() || s.Fragile {
			t.Errorf("state %+v", s)
		}
	}
	for _, path := range Files(dir) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if taken := info.Sys().(*syscall.Stat_t).Blocks * 512; info.Size() != journalSize || taken < journalSize || info.Mode() != 0o600 {
			t.Errorf("%s: %d bytes, %d of the disk, mode %v; want %d, as many, 0600", path, info.Size(), taken, info.Mode(), journalSize)
		}
	}
}

// written returns a journal with the removals of h1, h2 and h3, the path of its file, and
// where each record begins.
func written(t *testing.T, dir string) (path string, at []int64) {
	t.Helper()
	k := open(t, dir)
	for _, h := range []string{"h1", "h2", "h3"} {
		at = append(at, k.journal.end)
		if !k.AddRemoval(removal(h)) {
			t.Fatal("not durable")
		}
	}
	return k.journal.path(k.journal.file), append(at, k.journal.end)
}

// TestTornTail: a last record of which any part is missing was not confirmed. It is left out, and the next record is there
// after a restart.
func TestTornTail(t *testing.T) {
	dir := t.TempDir()
	path, at := written(t, dir)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := at[2]; cut < at[3]; cut++ {
		for name, rest := range map[string][]byte{"nothing": {0}, "others' bytes": []byte("\xa5")} {
			data := slices.Clone(whole[:at[3]+recordHead])
			copy(data[cut:], bytes.Repeat(rest, int(at[3]-cut)))
			c, err := records(data, 1)
			if err != nil || len(c.entries) != 2 || c.end != at[2] {
				t.Fatalf("cut at %d with %s after it: %d records to %d, %v; want 2 to %d", cut-at[2], name, len(c.entries), c.end, err, at[2])
			}
		}
	}
	data := slices.Clone(whole)
	clear(data[at[2]+20 : at[3]])
	write(t, path, data)
	k := open(t, dir)
	owes(t, k, removed("h1"), removed("h2"))
	if !k.AddRemoval(removal("h4")) {
		t.Error("not durable after a torn record")
	}
	owes(t, open(t, dir), removed("h1"), removed("h2"), removed("h4"))
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDamaged: a journal that may have lost an order is an error that names it. Each byte of
// the header and of records that others follow is changed in turn.
func TestDamaged(t *testing.T) {
	dir := t.TempDir()
	path, at := written(t, dir)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range at[2] {
		data := slices.Clone(whole[:at[3]+recordHead])
		data[i] ^= 0x40
		number, _, err := generation(data)
		if err == nil {
			_, err = records(data, number)
		}
		if err == nil {
			t.Fatalf("byte %d is damaged, and nobody hears of it", i)
		}
	}
	body := []byte(`{"expulsion":{"host":"h9"}}`)
	unknown := slices.Concat(mark, []byte{0, 0, 0, byte(len(body))}, make([]byte, 4), body)
	sum := checksum(1, body)
	copy(unknown[8:], []byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
	later := slices.Clone(whole)
	copy(later[at[3]:], unknown)
	damaged := slices.Clone(whole)
	damaged[at[1]+30]++
	for name, tt := range map[string]struct {
		make func(path string) error
		want string
	}{
		"record":           {func(p string) error { return os.WriteFile(p, damaged, 0o600) }, "is damaged"},
		"header":           {func(p string) error { return os.WriteFile(p, append([]byte("x"), whole[1:]...), 0o600) }, "header"},
		"cut off":          {func(p string) error { return os.WriteFile(p, whole[:at[3]], 0o600) }, "bytes"},
		"grown":            {func(p string) error { return os.WriteFile(p, append(slices.Clone(whole), 0), 0o600) }, "bytes"},
		"of another time":  {func(p string) error { return os.WriteFile(p, later, 0o600) }, "expulsion"},
		"others may write": {func(p string) error { return errors.Join(os.WriteFile(p, whole, 0o600), os.Chmod(p, 0o666)) }, "mode"},
		"directory":        {func(p string) error { return os.Mkdir(p, 0o700) }, "regular"},
		"link": {func(p string) error {
			return errors.Join(os.WriteFile(p+".real", whole, 0o600), os.Symlink(p+".real", p))
		}, "symbolic"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := tt.make(Files(dir)[0]); err != nil {
				t.Fatal(err)
			}
			k, err := Open(dir, quiet)
			if _, is := errors.AsType[*UnreadableError](err); !is || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), Files(dir)[0]) {
				t.Errorf("Open = %v, %v; want an UnreadableError that names the file and says %q", k, err, tt.want)
			}
		})
	}
}

// TestCreationCutOff: a file whose creation was interrupted is made again, and the records of the other one are kept, also
// while there is no space for it.
func TestCreationCutOff(t *testing.T) {
	dir := t.TempDir()
	path, _ := written(t, dir)
	other := Files(dir)[1]
	if path == other {
		t.Fatalf("the first file is %s", path)
	}
	write(t, other, make([]byte, 5000))
	owes(t, open(t, dir), removed("h1"), removed("h2"), removed("h3"))
	if info, err := os.Stat(other); err != nil || info.Size() != journalSize {
		t.Errorf("%s: %v, %v", other, info, err)
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 4096, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	k, err := Open(dir, quiet)
	if e := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); e != nil {
		t.Fatal(e)
	}
	if err != nil {
		t.Fatal(err)
	}
	owes(t, k, removed("h1"), removed("h2"), removed("h3"))
	if k.journal != nil {
		t.Error("there is a journal, which has no space")
	}
	if k.AddRemoval(removal("h4")) {
		t.Error("an order is durable without a journal")
	}
	k.retryAt = time.Time{}
	k.again()
	owes(t, open(t, dir), removed("h1"), removed("h2"), removed("h3"), removed("h4"))
}

// TestFull: facts and notes leave room for removals, and are kept in memory where they need
// not be durable.
func TestFull(t *testing.T) {
	dir := t.TempDir()
	k := open(t, dir)
	long := strings.Repeat("x", 4000)
	n, durable := 0, true
	for ; durable && n < 2000; n++ {
		e := note(fmt.Sprintf("fabric/%d", n))
		e.Detail = long
		durable = k.AddNote(e)
	}
	if durable {
		t.Fatalf("%d notes of %d bytes are in a journal of %d", n, len(long), journalSize)
	}
	vital := sm.Fact{Kind: sm.FactSAService, Name: "s1", Body: long}
	if err := k.AddFacts([]sm.Fact{vital}); !errors.Is(err, ErrNotDurable) {
		t.Errorf("AddFacts = %v, want ErrNotDurable", err)
	}
	if err := k.AddFacts([]sm.Fact{lid(1, 7)}); err != nil {
		t.Errorf("AddFacts of what the fabric shows: %v", err)
	}
	if s := k.State(); !s.Fragile || s.Facts != 1 || s.Notes != n {
		t.Errorf("state %+v, want 1 fact, %d notes, fragile", s, n)
	}
	for i := range 2000 {
		if !k.AddRemoval(removal(fmt.Sprintf("host-%04d", i))) {
			t.Fatalf("removal %d has no room", i)
		}
	}
	again := open(t, dir)
	if s := again.State(); s.Removals != 2000 {
		t.Errorf("after a restart %+v, want 2000 removals", s)
	}
}

// TestNotWritten: where the disk takes nothing, orders are in force and said not to be
// durable, facts that must be durable are refused and leave what was before, and all of it
// is written once the disk takes it.
func TestNotWritten(t *testing.T) {
	dir := t.TempDir()
	k := open(t, dir)
	group := sm.Fact{Kind: sm.FactSAService, Name: "s1", Body: "one"}
	if err := k.AddFacts([]sm.Fact{group}); err != nil {
		t.Fatal(err)
	}
	k.journal.write = func(string, int64, []byte) error { return syscall.ENOSPC }
	if k.AddRemoval(removal("h1")) || k.AddNote(note("fabric/0x1/2")) {
		t.Error("durable on a full disk")
	}
	if !k.Removed(1 << 40)["h1"] {
		t.Error("an order that is in memory alone is not in force")
	}
	newer := group
	newer.Body = "two"
	if err := k.AddFacts([]sm.Fact{lid(1, 7), newer, {Kind: sm.FactSAService, Name: "s2", Body: "x"}}); !errors.Is(err, ErrNotDurable) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("AddFacts = %v, want ErrNotDurable and ENOSPC", err)
	}
	n := note("fabric/0x1/2")
	want := []Entry{removed("h1"), {Facts: []sm.Fact{group}}, {Note: &n}}
	owes(t, k, want...)
	if !k.State().Fragile {
		t.Error("nothing says that it is in memory alone")
	}
	owes(t, open(t, dir), want[1])
	k.journal.write = writeAt
	k.again()
	if !k.State().Fragile {
		t.Error("tried again without a pause")
	}
	k.retryAt = time.Time{}
	k.again()
	if k.State().Fragile {
		t.Error("it is written, and still said to be in memory alone")
	}
	owes(t, open(t, dir), want...)
}

// TestFilesAreGone: a journal whose files were removed is made again, also when nothing is
// owed by then.
func TestFilesAreGone(t *testing.T) {
	dir := t.TempDir()
	k, l, st := open(t, dir), &ledger{}, store.New(memory.New(time.Now), "")
	for _, path := range Files(dir) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if k.AddRemoval(removal("h1")) {
		t.Error("durable without files")
	}
	if err := k.Settle(t.Context(), st, l.carry()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Settle = %v, want that the journal is not cleared", err)
	}
	l.brought(t, "removal of h1")
	for range 2 { // it is found to be gone, and made
		k.mu.Lock()
		k.retryAt = time.Time{}
		k.mu.Unlock()
		k.again()
	}
	if err := k.Settle(t.Context(), st, l.carry()); err != nil {
		t.Fatal(err)
	}
	if s := k.State(); s != (State{}) {
		t.Errorf("state %+v, want nothing owed", s)
	}
	if !k.AddRemoval(removal("h2")) {
		t.Error("not durable")
	}
	owes(t, open(t, dir), removed("h2"))
}

// TestHangs: a write that hangs is waited for for a second, and one that lands late takes
// nothing away from what was written after it.
func TestHangs(t *testing.T) {
	for name, hang := range map[string]func(k *Keeper, path string, at int64) bool{
		"record":     func(k *Keeper, path string, at int64) bool { return path == k.journal.path(0) },
		"other file": func(k *Keeper, path string, at int64) bool { return path == k.journal.path(1) && at > 0 },
		"its header": func(k *Keeper, path string, at int64) bool { return path == k.journal.path(1) && at == 0 },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				k := open(t, dir)
				if !k.AddRemoval(removal("h1")) {
					t.Fatal("not durable")
				}
				goOn, hung := make(chan bool), false
				k.journal.write = func(path string, at int64, data []byte) error {
					if !hung && hang(k, path, at) {
						hung = true
						<-goOn
					}
					return writeAt(path, at, data)
				}
				if name != "record" {
					k.journal.unsure = true // so that the other file is begun
				}
				began := time.Now()
				if k.AddRemoval(removal("h2")) || time.Since(began) != writeTime {
					t.Errorf("not durable after %v: want %v", time.Since(began), writeTime)
				}
				if k.AddRemoval(removal("h3")) || time.Since(began) != writeTime {
					t.Errorf("another write waits too, %v", time.Since(began))
				}
				close(goOn)
				synctest.Wait()
				if !k.AddRemoval(removal("h4")) {
					t.Error("not durable though the disk is back")
				}
				owes(t, open(t, dir), removed("h1"), removed("h2"), removed("h3"), removed("h4"))
			})
		})
	}
}

// FuzzJournal: reading is total, and a record that was read can be written again and reads as the same.
func FuzzJournal(f *testing.F) {
	e := removed("h1")
	r, err := record(&e, 1)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append(header(1), r...))
	f.Add(append(header(1), append(r, r[:20]...)...))
	f.Add(make([]byte, 64))
	f.Fuzz(func(t *testing.T, data []byte) {
		number, used, err := generation(data)
		if err != nil || !used {
			return
		}
		c, err := records(data, number)
		if err != nil {
			return
		}
		if c.end > int64(len(data)) && len(data) >= headerSize {
			t.Fatalf("records end at %d of %d", c.end, len(data))
		}
		again := header(number)
		for i := range c.entries {
			r, err := record(&c.entries[i], number)
			if err != nil {
				t.Fatal(err)
			}
			again = append(again, r...)
		}
		back, err := records(again, number)
		if err != nil || len(back.entries) != len(c.entries) {
			t.Fatalf("%d records are read back as %d, %v", len(c.entries), len(back.entries), err)
		}
	})
}

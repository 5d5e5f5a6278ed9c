package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/api/store"
	"portcullis/api/store/etcd"
	"portcullis/api/store/storetest"
	"portcullis/packaging/testenv"
)

const memberVerb = "store-member"

// TestMain lets the test binary serve a member, as portcullisd does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == memberVerb {
		if err := etcd.ServeMember(context.Background(), os.Stdin, os.Stdout, slog.New(slog.DiscardHandler)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// healths keeps each Health that a store reported.
type healths struct {
	mu   sync.Mutex
	last etcd.Health
	all  []etcd.Health
}

func (h *healths) tell(now etcd.Health) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last, h.all = now, append(h.all, now)
}

func (h *healths) now() etcd.Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// patience bounds every wait of these tests.
const patience = time.Minute

// until waits for a condition without an event.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	late := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

func openSupervised(t *testing.T, dir string, quota int64) (*store.Store, *healths) {
	t.Helper()
	h := &healths{}
	s, err := etcd.Open(t.Context(), etcd.Options{
		Dir: dir, Log: storetest.Quiet(), Quota: quota, Command: []string{os.Args[0], memberVerb}, OnHealth: h.tell,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	return s, h
}

func put(ctx context.Context, s *store.Store, key, text string) error {
	_, err := s.Update(ctx, func(tx *store.Tx) error { return words().Put(tx, key, word{text}) })
	return err
}

func TestSupervisedMember(t *testing.T) {
	t.Parallel()
	shared, _ := openSupervised(t, t.TempDir(), 0)
	n := 0
	storetest.Conformance(t, func(testing.TB) *store.Store {
		n++
		return store.New(shared.Backend(), fmt.Sprintf("suite-%d", n))
	})
}

// members returns the children of this process that serve a member.
func members(t *testing.T) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		stat, err := os.ReadFile(f)
		if err != nil {
			continue // it ended meanwhile
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		line, err := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
		if err != nil || len(fields) < 2 || fields[1] != strconv.Itoa(os.Getpid()) || !strings.Contains(string(line), memberVerb) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// TestMemberIsKilled kills the member's process again and again: the store is away, says
// so at once, comes back by itself with everything that was written, and its watches can be
// resumed.
func TestMemberIsKilled(t *testing.T) {
	dir := t.TempDir()
	s, h := openSupervised(t, dir, 0)
	for round := range 3 {
		if err := put(t.Context(), s, strconv.Itoa(round), "kept"); err != nil {
			t.Fatal(err)
		}
		changes := s.Watch(t.Context(), "", 0)
		pids := members(t)
		if len(pids) != 1 {
			t.Fatalf("processes %v serve the member, want one", pids)
		}
		if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for c := range changes {
			if c.Err != nil && errors.Is(c.Err, store.ErrFull) {
				t.Errorf("the watch ended with %v", c.Err)
			}
		}
		until(t, "the member is started again", func() bool { n := h.now(); return n.Restarts == round+1 && n.Away == nil })
		recs, _, err := words().List(t.Context(), s, "")
		if err != nil || len(recs) != round+1 {
			t.Errorf("after death %d: %d records (%v), want %d", round+1, len(recs), err, round+1)
		}
	}
	if err := s.Room(); err != nil {
		t.Errorf("room: %v", err)
	}
}

// TestMemberStandsStill stops the member's process: requests end by their contexts, the
// store reports that it is away, and serves again when the process goes on.
func TestMemberStandsStill(t *testing.T) {
	s, h := openSupervised(t, t.TempDir(), 0)
	pid := members(t)[0]
	testenv.Halt(t, pid)
	until(t, "the store is away", func() bool { return h.now().Away != nil })
	if err := put(t.Context(), s, "k", "v"); !errors.Is(err, store.ErrAway) {
		t.Errorf("a write meanwhile: %v, want ErrAway", err)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	until(t, "the store is back", func() bool { return h.now().Away == nil })
	if err := put(t.Context(), s, "k", "v"); err != nil {
		t.Error(err)
	}
}

// disk mounts a file system of a size in MiB, which takes root.
func disk(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=0700", size)); err != nil {
		testenv.Need(t, fmt.Errorf("a file system of its own, which root may mount: %w", err))
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill takes all the space of a disk, and returns a function that frees it.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	name := filepath.Join(dir, "filler")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 64<<10)
	for err == nil {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Error(err)
		}
	}
}

// TestDiskFills fills the disk twice: first the reserve is given back, so that removals are
// still written while what grows is refused; then there is nothing left, the member dies,
// and comes back when there is space.
func TestDiskFills(t *testing.T) {
	root := disk(t, 170)
	s, h := openSupervised(t, filepath.Join(root, "state"), 0)
	until(t, "the reserve is kept", func() bool { return h.now().Reserve })

	fill(t, root)
	until(t, "the reserve is given back", func() bool { n := h.now(); return !n.Reserve && n.Away == nil && n.Short != nil })
	if err := put(store.Growing(t.Context()), s, "grows", "x"); !errors.Is(err, store.ErrFull) {
		t.Errorf("what grows: %v, want ErrFull", err)
	}
	if err := put(t.Context(), s, "removal", "x"); err != nil {
		t.Errorf("a removal on the reserve: %v", err)
	}

	freeAll := fill(t, root)
	wrote, big := 0, strings.Repeat("x", 200_000)
	var err error
	for ; err == nil; wrote++ {
		err = put(t.Context(), s, fmt.Sprint("filled-", wrote), big)
	}
	t.Logf("%d writes of 200 kB landed on the full disk, then: %v", wrote-1, err)
	until(t, "the store is away", func() bool { return h.now().Away != nil })

	freeAll()
	until(t, "the store is back and takes everything", func() bool { n := h.now(); return n.Away == nil && n.Short == nil && n.Reserve })
	for i := range wrote - 1 {
		if _, err := words().Get(t.Context(), s, fmt.Sprint("filled-", i)); err != nil {
			t.Fatalf("write %d was confirmed and is lost: %v", i, err)
		}
	}
	if err := put(store.Growing(t.Context()), s, "grows", "x"); err != nil {
		t.Errorf("what grows, later: %v", err)
	}
}

// TestDiskIsFullAtStart: a store opens on its reserve when the disk is full.
func TestDiskIsFullAtStart(t *testing.T) {
	root := disk(t, 170)
	dir := filepath.Join(root, "state")
	func() {
		s, h := openSupervised(t, dir, 0)
		until(t, "the reserve is kept", func() bool { return h.now().Reserve })
		if err := put(t.Context(), s, "k", "v"); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	fill(t, root)
	s, h := openSupervised(t, dir, 0)
	if _, err := words().Get(t.Context(), s, "k"); err != nil {
		t.Error(err)
	}
	if h.now().Short == nil {
		t.Error("the store does not tell that it runs on its reserve")
	}
}

// TestQuota fills the database up to its quota by changing one record: old revisions are
// compacted, their space is given back, and the alarm is cleared, all by itself.
func TestQuota(t *testing.T) {
	t.Parallel()
	s, h := openSupervised(t, t.TempDir(), 16<<20)
	big := strings.Repeat("x", 1<<20)
	refused := 0
	until(t, "the quota is reached", func() bool {
		err := put(t.Context(), s, "k", big)
		if err != nil && !errors.Is(err, store.ErrFull) {
			t.Fatal(err)
		}
		if err != nil {
			refused++
		}
		return err != nil
	})
	until(t, "the store takes writes again", func() bool { return put(t.Context(), s, "k", "small") == nil })
	until(t, "the size shows it", func() bool { n := h.now(); return n.Short == nil && n.Warning == "" })
	if refused == 0 {
		t.Error("nothing was refused: the quota was not reached")
	}
}

// TestRecordsReachTheSoftLimit: where records themselves take 80 % of the quota, requests that add data are refused and
// removals are taken. Removing records ends it.
func TestRecordsReachTheSoftLimit(t *testing.T) {
	t.Parallel()
	s, h := openSupervised(t, t.TempDir(), 16<<20)
	part, n := strings.Repeat("x", 64<<10), 0
	for h.now().Short == nil { // as fast as sizes are looked at
		_, err := s.Update(t.Context(), func(tx *store.Tx) error {
			for i := range 16 {
				if err := words().Put(tx, strconv.Itoa(16*n+i), word{part}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		n++
		until(t, "the size is seen", func() bool { return etcd.HealthOf(s).InUse >= int64(n)<<20 }) // also after a compaction
	}
	if err := put(store.Growing(t.Context()), s, "more", "x"); !errors.Is(err, store.ErrFull) || !strings.Contains(err.Error(), "store_quota") {
		t.Errorf("what grows: %v, want ErrFull with the cure", err)
	}
	_, err := s.Update(t.Context(), func(tx *store.Tx) error {
		for i := range 16 * n {
			words().Delete(tx, strconv.Itoa(i))
		}
		return nil
	})
	if err != nil {
		t.Fatalf("a removal: %v", err)
	}
	until(t, "everything is taken", func() bool { return s.Room() == nil })
}

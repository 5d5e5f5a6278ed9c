package etcd_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"portcullis/api/store"
	"portcullis/api/store/etcd"
	"portcullis/api/store/storetest"
)

// TestKill kills a process in the midst of its writes, over and over: writes that it reported as done must be there
// afterwards.
func TestKill(t *testing.T) {
	if os.Getenv("STORE_TEST_DIR") != "" {
		writeForever(t)
		return
	}
	dir := t.TempDir()
	last := -1
	for range 3 {
		last = max(last, killedWriter(t, dir))
		checkNothingLost(t, dir, last)
	}
}

func checkNothingLost(t *testing.T, dir string, last int) {
	t.Helper()
	s, err := etcd.Open(t.Context(), etcd.Options{Dir: dir, Log: storetest.Quiet()})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := words().Get(t.Context(), s, "n")
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	got, _, _ := strings.Cut(rec.Value.Text, " ")
	if n, err := strconv.Atoi(got); err != nil || n < last {
		t.Errorf("store holds %q, %d was reported as written", got, last)
	}
}

// TestDiskFull lets a process run into a file size limit, which fails its writes as a full disk does. The process must get
// an error and not be ended, and nothing that was reported as written may be lost.
func TestDiskFull(t *testing.T) {
	if os.Getenv("STORE_TEST_DIR") != "" {
		writeForever(t)
		return
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDiskFull$")
	cmd.Env = append(os.Environ(), "STORE_TEST_DIR="+dir, "STORE_TEST_LIMIT=2000000")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	last, said := -1, ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if n, err := strconv.Atoi(lines.Text()); err == nil {
			last = n
		} else if strings.HasPrefix(lines.Text(), "refused: ") {
			said = lines.Text()
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the writer: %v", err)
	}
	if !strings.Contains(said, store.ErrFull.Error()) || !strings.Contains(said, "free space") {
		t.Errorf("the writer said %q after %d writes, want that the store is full and what to do", said, last)
	}
	if last < 0 {
		t.Error("nothing could be written before the limit")
	}
	checkNothingLost(t, dir, last)
}

// killedWriter runs this test as a child that counts up, kills it after some reports and returns the last one.
func killedWriter(t *testing.T, dir string) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKill$")
	cmd.Env = append(os.Environ(), "STORE_TEST_DIR="+dir)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	last := -1
	for range 50 {
		var n int
		if _, err := fmt.Fscanln(out, &n); err != nil {
			t.Fatalf("after report %d: %v", last, err)
		}
		last = n
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // "signal: killed", as asked
	return last
}

// writeForever is the child: it reports each number that was written, and ends
// in order when the store refuses.
func writeForever(t *testing.T) {
	s, err := etcd.Open(t.Context(), etcd.Options{Dir: os.Getenv("STORE_TEST_DIR"), Log: storetest.Quiet()})
	if err != nil {
		t.Fatal(err)
	}
	padding := ""
	if limit, err := strconv.ParseUint(os.Getenv("STORE_TEST_LIMIT"), 10, 64); err == nil {
		padding = strings.Repeat("x", 50_000)
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			t.Fatal(err)
		}
	}
	for n := 0; ; n++ {
		_, err := s.Update(t.Context(), func(tx *store.Tx) error { return count(t, tx, &n, padding) })
		if errors.Is(err, store.ErrFull) {
			<-s.Failed()
			_, _, readErr := words().List(t.Context(), s, "")
			fmt.Println("refused:", errors.Join(err, s.Err()), "and then:", readErr, s.Close())
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(n)
	}
}

// count puts the number after the stored one and leaves it in n.
func count(t *testing.T, tx *store.Tx, n *int, padding string) error {
	rec, err := words().Get(t.Context(), tx, "n")
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if err == nil {
		text, _, _ := strings.Cut(rec.Value.Text, " ")
		if *n, err = strconv.Atoi(text); err != nil {
			return err
		}
		*n++
	}
	return words().Put(tx, "n", word{strconv.Itoa(*n) + " " + padding})
}

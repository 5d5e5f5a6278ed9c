package driver_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The asker stands for other machines. So it is a process of its own, which takes no thread and no turn of the manager's
// runtime. It writes the time at which each request came into memory that both share, and wakes the waiting reader, as a
// wire does.

// asker is that process.
type asker struct {
	*askBook
	to   io.WriteCloser // how many to ask
	from io.Reader      // when they were
}

// askBook is the memory.
type askBook struct {
	asked atomic.Int64 // questions that came
	seen  atomic.Int64 // of these, put in line
	times [1 << 16]atomic.Int64
}

const askerEnv = "PORTCULLIS_TEST_ASKER"

func TestMain(m *testing.M) {
	if os.Getenv(askerEnv) != "" {
		if err := beAsker(); err != nil {
			fmt.Fprintln(os.Stderr, "asker:", err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv(flooderEnv) != "" {
		if err := beFlooder(); err != nil {
			fmt.Fprintln(os.Stderr, "flooder:", err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv(simulatorEnv) != "" {
		if err := beSimulator(); err != nil {
			fmt.Fprintln(os.Stderr, "simulator:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// monotonic is a clock that processes share.
func monotonic() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return time.Duration(ts.Nano())
}

func mapBook(fd int) (*askBook, error) {
	size := int(unsafe.Sizeof(askBook{}))
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		return nil, err
	}
	mem, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return (*askBook)(unsafe.Pointer(&mem[0])), nil
}

// startAsker starts an asker that wakes the reader of an eventfd.
func startAsker(b *testing.B, wakes int) *asker {
	b.Helper()
	fd, err := unix.MemfdCreate("asker", unix.MFD_CLOEXEC)
	if err != nil {
		b.Fatal(err)
	}
	shared := os.NewFile(uintptr(fd), "asker")
	defer shared.Close()
	book, err := mapBook(fd)
	if err != nil {
		b.Fatal(err)
	}
	dup, err := unix.FcntlInt(uintptr(wakes), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		b.Fatal(err)
	}
	waker := os.NewFile(uintptr(dup), "wakes")
	defer waker.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), askerEnv+"=1", "GOMAXPROCS=1")
	cmd.ExtraFiles = []*os.File{shared, waker}
	to, from := startPiped(b, cmd)
	b.Cleanup(func() {
		_ = to.Close()
		if err := cmd.Wait(); err != nil {
			b.Errorf("asker: %v", err)
		}
	})
	return &asker{book, to, from}
}

// startPiped starts a process, and returns its standard input and output.
func startPiped(t testing.TB, cmd *exec.Cmd) (in io.WriteCloser, out io.ReadCloser) {
	t.Helper()
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if out, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return in, out
}

func (a *asker) came() int              { return int(a.asked.Load()) }
func (a *asker) take() int              { return int(a.seen.Load()) }
func (a *asker) taken(n int)            { a.seen.Store(int64(n)) }
func (a *asker) at(n int) time.Duration { return time.Duration(a.times[n].Load()) }

// ask has so many questions come, and returns when they have.
func (a *asker) ask(b *testing.B, count int) {
	b.Helper()
	if count > len(a.times) {
		b.Fatalf("%d questions: room for %d", count, len(a.times))
	}
	a.asked.Store(0)
	a.seen.Store(0)
	if _, err := fmt.Fprintln(a.to, count); err != nil {
		b.Fatal(err)
	}
	var done [1]byte
	if _, err := io.ReadFull(a.from, done[:]); err != nil {
		b.Fatal(err)
	}
}

// beAsker is the process.
func beAsker() error {
	book, err := mapBook(3)
	if err != nil {
		return err
	}
	for {
		var count int
		if _, err := fmt.Fscanln(os.Stdin, &count); err != nil {
			return nil // the parent ended it
		}
		at, draw := monotonic(), uint64(1)
		for i := range count {
			draw = draw*6364136223846793005 + 1442695040888963407
			at += time.Duration(draw>>32) * (2 * askEvery) >> 32 // evenly around the mean
			if d := at - monotonic(); d > 0 {
				ts := unix.NsecToTimespec(int64(d))
				_ = unix.Nanosleep(&ts, nil) // one cut short asks a little earlier
			}
			book.times[i].Store(int64(monotonic()))
			book.asked.Store(int64(i + 1))
			if _, err := unix.Write(4, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
				return fmt.Errorf("wake: %w", err)
			}
		}
		if _, err := os.Stdout.WriteString(strconv.Itoa(1)); err != nil {
			return err
		}
	}
}

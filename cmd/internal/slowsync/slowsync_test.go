package slowsync

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/packaging/testenv"
)

// TestGate: a flush of a process takes as long as it is told to, other system calls do not,
// and the Gate ends with the process.
func TestGate(t *testing.T) {
	t.Parallel()
	if os.Getenv("SLOWSYNC_FLUSH") != "" {
		flush(t)
		return
	}
	const delay = 300 * time.Millisecond
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, slow := range []time.Duration{0, delay} {
		made := make(chan *Gate, 1)
		failed := make(chan error, 1)
		beside(func() {
			g, err := Install()
			if err != nil {
				failed <- err
				return
			}
			g.Slow(slow)
			made <- g
			cmd := exec.Command(self, "-test.run=^TestGate$", "-test.v")
			cmd.Env = append(os.Environ(), "SLOWSYNC_FLUSH="+filepath.Join(t.TempDir(), "file"), "SLOWSYNC_WANT="+slow.String())
			out, err := cmd.CombinedOutput()
			if err != nil {
				err = errors.Join(err, errors.New(string(out)))
			}
			failed <- err
		})
		if err := <-failed; errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
			testenv.Need(t, err)
		} else if err != nil {
			t.Fatal(err)
		}
		g := <-made
		select {
		case <-g.Ended():
		case <-time.After(10 * time.Second):
			t.Error("the Gate outlives the process")
		}
		if held := g.Held(); held > 0 != (slow > 0) {
			t.Errorf("%d flushes were held up for %v", held, slow)
		}
	}
}

// beside calls f on a thread of its own, which ends with f. The first thread of a process
// does not end before the process does, so that it is kept from calling f.
func beside(f func()) {
	go func() {
		runtime.LockOSThread() // and never unlocked
		if unix.Gettid() != unix.Getpid() {
			f()
			return
		}
		defer runtime.UnlockOSThread()
		called := make(chan struct{})
		beside(func() { defer close(called); f() })
		<-called
	}()
}

// flush is the process: it flushes a file both ways, and looks how long that takes.
func flush(t *testing.T) {
	want, err := time.ParseDuration(os.Getenv("SLOWSYNC_WANT"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(os.Getenv("SLOWSYNC_FLUSH"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, sync := range map[string]func() error{"fsync": f.Sync, "fdatasync": func() error { return unix.Fdatasync(int(f.Fd())) }} {
		if _, err := f.WriteString("text"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := sync(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(began); took < want {
			t.Errorf("%s took %v, want %v", name, took, want)
		}
	}
}

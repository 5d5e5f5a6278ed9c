//go:build vm

package softhca_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/packaging/vm/inside/adapter"
	"portcullis/packaging/vm/inside/guest"
)

// lockdepWatches matches a line of /proc/lockdep_stats.
var lockdepWatches = regexp.MustCompile(`(?m)^ *debug_locks: +1$`)

// TestLeaks is for kernels with KASAN, lockdep and kmemleak. It runs last: go test takes files by their names.
func TestLeaks(t *testing.T) {
	const dir, file = "/sys/kernel/debug", "/sys/kernel/debug/kmemleak"
	adapter.Load(t)
	if !strings.Contains(guest.Read(t, "/proc/kallsyms"), " kasan_report") {
		t.Error("the kernel has no KASAN")
	}
	// lockdep ends with its first report, and with too many locks.
	if stats := guest.Read(t, "/proc/lockdep_stats"); !lockdepWatches.MatchString(stats) {
		t.Errorf("lockdep watches no longer:\n%s", stats)
	}
	if _, err := os.Stat(file); err != nil {
		check(t, unix.Mount("debugfs", dir, "debugfs", 0, ""))
	}
	text := ""
	for range 2 { // what is found twice is no pointer on its way
		check(t, os.WriteFile(file, []byte("scan"), 0))
		time.Sleep(6 * time.Second) // kmemleak reports only leaks older than 5 s
		b, err := os.ReadFile(file)
		check(t, err)
		text = string(b)
	}
	if strings.Contains(text, "[softhca]") {
		t.Errorf("memory that the module allocated is lost:\n%s", text)
	} else if text != "" {
		t.Logf("of others:\n%s", text)
	}
}

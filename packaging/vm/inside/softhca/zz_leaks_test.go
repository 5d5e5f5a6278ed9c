//go:build vm

package softhca_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/packaging/vm/inside/adapter"
)

// TestLeaks is for kernels with kmemleak. It runs last: go test takes files by their names.
func TestLeaks(t *testing.T) {
	const dir, file = "/sys/kernel/debug", "/sys/kernel/debug/kmemleak"
	adapter.Load(t)
	if _, err := os.Stat(file); err != nil {
		check(t, unix.Mount("debugfs", dir, "debugfs", 0, ""))
	}
	text := ""
	for range 2 { // what is found twice is no pointer on its way
		check(t, os.WriteFile(file, []byte("scan"), 0))
		time.Sleep(6 * time.Second) // kmemleak tells only of what is older than 5 s
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

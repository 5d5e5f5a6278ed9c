package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// built is a directory with the programs that tests share.
var built string

func TestMain(m *testing.M) {
	var err error
	if built, err = os.MkdirTemp("", "bench-programs-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(built)
	os.Exit(code)
}

// measured builds the program to measure, once.
var measured = sync.OnceValues(func() (string, error) {
	file := filepath.Join(built, "portcullisd")
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", file, "portcullis/cmd/portcullisd").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return file, nil
})

func portcullisd(t *testing.T) string {
	t.Helper()
	file, err := measured()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

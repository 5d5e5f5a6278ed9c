package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"portcullis/packaging/testenv"
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
	return filepath.Join(built, "portcullisd"), testenv.Build(context.Background(), built, "cmd/portcullisd")
})

func portcullisd(t *testing.T) string {
	t.Helper()
	file, err := measured()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

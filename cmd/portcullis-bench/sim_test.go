package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/fabricsm/transport/ibsim/ibsimtest"
	"portcullis/packaging/testenv"
)

func TestSimulators(t *testing.T) {
	ibsimtest.Need(t)
	dir := t.TempDir()
	program, table := filepath.Join(dir, "portcullis-sim"), filepath.Join(dir, "sim.md")
	if err := testenv.Build(t.Context(), dir, "cmd/portcullis-sim"); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	args := []string{"sim", "--sizes", "648", "--runs", "1", "--duration", "20ms", "--portcullis-sim", program, "--out", table}
	if code := run(t.Context(), args, &said); code != exitDone {
		t.Fatalf("exit code %d: %s", code, &said)
	}
	text, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"bench sim --runs 1 --sizes 648 --duration 20ms\n", "| 648 | own node | 1 |", "| 648 | six links away | 256 |", "| 648 | 90 | 1 |"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
}

func TestRouteAcrossTheFabric(t *testing.T) {
	f, err := newFabric(648)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.route(); got.Len() != 6 {
		t.Errorf("the way to the last host has %d links, want 6", got.Len())
	}
}

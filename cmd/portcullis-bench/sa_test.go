package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

func TestAdministrations(t *testing.T) {
	ibsimtest.Need(t, "opensm")
	table := filepath.Join(t.TempDir(), "sa.md")
	var said bytes.Buffer
	args := []string{"sa", "--sizes", "36", "--runs", "1", "--duration", "20ms", "--portcullisd", portcullisd(t), "--out", table}
	if code := run(t.Context(), args, &said); code != exitDone {
		t.Fatalf("exit code %d: %s", code, &said)
	}
	text, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"bench sa --runs 1 --sizes 36 --duration 20ms\n", "| 36 | by LID | 1 |", "| 36 | as IPoIB | 256 |", "| 36 | OpenSM | 1 |", "| 36 | Portcullis | 1 |",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
}

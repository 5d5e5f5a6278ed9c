package factfile

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzJournal: any content of the journal is read without harm, and the next start reads the same facts.
func FuzzJournal(f *testing.F) {
	f.Add([]byte(`{"kind":"lid","guid":"0x0000000000000010","lid":5}` + "\n" + `{"kind":"lid","guid":"0x0000000000000011","lid":6,"lmc":200}` + "\n"))
	f.Add([]byte(`{"kind":"not-kept","guid":"0x0000000000000010","not_kept":513,"model":"x"}` + "\n{"))
	f.Add([]byte("\n\n\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "facts"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		var before [][]byte
		for range 2 {
			s, err := Open(dir, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			facts, err := s.Load()
			if err != nil {
				t.Fatal(err)
			}
			text, err := encode(facts)
			if err != nil {
				t.Fatal(err)
			}
			before = append(before, text)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(before[0], before[1]) {
			t.Errorf("facts differ after a restart:\n%s", cmp.Diff(string(before[0]), string(before[1])))
		}
	})
}

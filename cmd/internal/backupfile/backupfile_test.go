package backupfile

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"portcullis/api/backup/archive"
)

// written writes a backup without records, and returns its file.
func written(t *testing.T, to *age.X25519Identity) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "a.backup")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w, err := archive.NewWriter(f, archive.Header{Time: time.Now().UTC(), Revision: 7}, to.Recipient())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

func identity(t *testing.T) *age.X25519Identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// The identities of a file open a backup to one of them, and others do not. The digest needs none.
func TestOpen(t *testing.T) {
	t.Parallel()
	mine, other := identity(t), identity(t)
	name := written(t, mine)
	for id, opens := range map[*age.X25519Identity]bool{mine: true, other: false} {
		text := []byte("# a comment\n" + id.String() + "\n")
		ids, err := Identities("id.txt", text)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "AGE-SECRET-KEY") {
			t.Error("the text of an identity stays in memory")
		}
		f, err := Open(name, ids, nil)
		if err != nil {
			t.Fatal(err)
		}
		if h, digest, err := f.Digest(); err != nil || h.Revision != 7 || len(digest) != 64 {
			t.Errorf("digest %q of %+v, %v", digest, h, err)
		}
		n, err := f.Verify()
		if (err == nil) != opens || n != 0 || err != nil && !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("opens, %v: %d records, %v", opens, n, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	if _, err := Identities("id.txt", []byte("AGE-SECRET-KEY-1nothing")); err == nil || !strings.HasPrefix(err.Error(), "id.txt: ") || strings.Contains(err.Error(), "1nothing") {
		t.Errorf("no identity: %v", err)
	}
	gone := filepath.Join(t.TempDir(), "gone")
	if _, err := Open(gone, nil, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a backup that is not there: %v", err)
	}
	name := written(t, identity(t))
	if _, err := Open(name, nil, []string{gone}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("anchors that are not there: %v", err)
	}
	garbage := filepath.Join(t.TempDir(), "garbage")
	text, err := json.Marshal("no backup")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(garbage, text, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(garbage, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, _, err := f.Digest(); err == nil || !strings.HasPrefix(err.Error(), garbage+": ") {
		t.Errorf("what is no backup: %v", err)
	}
}

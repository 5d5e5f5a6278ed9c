package etcd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/api/store"
)

func TestEnough(t *testing.T) {
	for _, c := range []struct {
		name       string
		free, need uint64
		want       string
	}{
		{"exactly", spaceToBegin, spaceToBegin, ""},
		{"none", 0, spaceToStart, "has 0 MiB free and the store needs 24"},
		{"a byte short", spaceToBegin - 1, spaceToBegin, "has 39 MiB free and the store needs 40"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := enough(c.free, c.need)
			if c.want == "" && err != nil {
				t.Errorf("got %v, want none", err)
			}
			if c.want != "" && (!errors.Is(err, store.ErrFull) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want ErrFull with %q", err, c.want)
			}
		})
	}
}

func TestCheckSpaceLooksAtTheDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	if err := checkSpace(dir); err != nil {
		t.Errorf("a disk that holds this test: %v", err)
	}
	if err := checkSpace(filepath.Join(dir, "missing", "etcd")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such directory: got %v, want ErrNotExist", err)
	}
}

package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"

	"portcullis/api/store"
)

// Format numbers what the records and files of a state directory mean. A release
// whose state earlier releases cannot read, or must not ignore, has a higher
// number than theirs: a new collection, a new version of one, another format of
// etcd. packaging/state lists what each number stands for.
const Format = 1

// formatName is the file in the state directory with the number and, after a
// space, the version of the service that raised it. Directories of releases that
// wrote no such file have format 1.
const formatName = "format"

// maxFormat bounds the file.
const maxFormat = 256

// NewerError says that a newer service wrote a state directory, or the records that
// several services share.
type NewerError struct {
	Dir    string // empty: shared records
	Format int    // of the directory
	Since  string // the first version with that format; empty if unknown
}

func (e *NewerError) Error() string {
	since := ""
	if e.Since != "" {
		since = fmt.Sprintf(" since version %s used it", e.Since)
	}
	if e.Dir == "" {
		return fmt.Sprintf("the shared store: its format is %d%s, and this version reads formats up to %d; nothing was changed",
			e.Format, since, Format)
	}
	return fmt.Sprintf("state directory %s: its format is %d%s, and this version reads formats up to %d; nothing was changed",
		e.Dir, e.Format, since, Format)
}

// readFormat returns the format of a state directory. It returns a *NewerError
// where this service must not touch it.
func readFormat(dir string) (int, error) {
	f, err := os.Open(filepath.Join(dir, formatName))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("state directory: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFormat+1))
	if err != nil {
		return 0, fmt.Errorf("state directory: read %s: %w", f.Name(), err)
	}
	format, since, ok := parseFormat(text)
	if !ok {
		return 0, fmt.Errorf("state directory: %s has no format number: restore that file from a backup of the state directory", f.Name())
	}
	if format > Format {
		return 0, &NewerError{Dir: dir, Format: format, Since: since}
	}
	return format, nil
}

// parseFormat reads a format number and the version that raised it.
func parseFormat(text []byte) (format int, since string, ok bool) {
	number, since, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	format, err := strconv.Atoi(number)
	return format, printable(since), len(text) <= maxFormat && err == nil && format >= 1
}

// agreeOnFormat records under key which format the records of a store have that
// several services share. It returns a *NewerError, and changes nothing, where a newer
// service wrote them.
func (e *backend) agreeOnFormat(ctx context.Context, key, version string) error {
	for {
		items, err := e.Read(ctx, key, false, 0)
		if err != nil {
			return err
		}
		var modified int64
		if len(items.Items) > 0 {
			modified = items.Items[0].Modified
			format, since, ok := parseFormat(items.Items[0].Value)
			switch {
			case !ok:
				return fmt.Errorf("the key %s of the shared store has no format number: restore it from a backup", key)
			case format > Format:
				return &NewerError{Format: format, Since: since}
			case format == Format:
				return nil
			}
		}
		_, err = e.Commit(ctx, store.Batch{
			If: []store.Condition{{Key: key, Modified: modified}},
			Do: []store.Op{{Key: key, Value: formatText(version)}},
		})
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

func formatText(version string) []byte {
	return []byte(strings.TrimSpace(fmt.Sprint(Format, " ", version)) + "\n")
}

// printable leaves out what terminals would obey.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, s)
}

// raiseFormat records that a service with this format writes to the directory,
// before it writes anything else. An earlier service refuses the directory from
// then on.
func raiseFormat(dir string, found int, version string) error {
	if found == Format {
		return nil
	}
	if err := renameio.WriteFile(filepath.Join(dir, formatName), formatText(version), 0o600); err != nil {
		return fmt.Errorf("state directory: record its format: %w", err)
	}
	return nil
}

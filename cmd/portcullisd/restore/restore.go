// Package restore is "portcullisd restore": it writes a backup into an empty state directory.
package restore

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"portcullis/api/backup"
	"portcullis/api/review"
	"portcullis/api/store"
	"portcullis/api/store/etcd"
	"portcullis/cmd/internal/backupfile"
	"portcullis/cmd/internal/input"
	"portcullis/cmd/internal/version"
	"portcullis/cmd/portcullisd/command"
	"portcullis/cmd/portcullisd/config"
	"portcullis/cmd/portcullisd/journal"
)

const restoreUsage = `Usage:
  portcullisd restore --identity FILE [options] BACKUP

Writes a backup of "portcullis backup create" into the empty state directory that the
configuration names. It is verified whole first: digest, records and audit log. Run it as the
user of the service, while that is stopped. The service then starts in review: it grants only what backup and
fabric agree on, until an operator has decided about the rest (portcullis restore review).

Options:
`

// openingLimit bounds the opening of an empty store.
const openingLimit = 2 * time.Minute

// Run is "portcullisd restore".
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("portcullisd restore", flag.ContinueOnError)
	file := flags.String("config", command.DefaultConfigFile, "configuration `file`")
	identity := flags.String("identity", "", "`file` of age-keygen that belongs to a recipient of the backup")
	var anchors []string
	flags.Func("anchor", "`file` of anchored heads of the audit log, which the backup's must have", func(s string) error {
		anchors = append(anchors, s)
		return nil
	})
	// The backup may stand before options, as people write it.
	var name string
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	} else if n := len(args); n > 0 && !strings.HasPrefix(args[n-1], "-") && (n < 2 || !strings.HasPrefix(args[n-2], "-") || strings.Contains(args[n-2], "=")) {
		name, args = args[n-1], args[:n-1]
	}
	if err := command.Parse(flags, restoreUsage+command.Options(flags), args, stdout, stderr); err != nil {
		return err
	}
	if name == "" || *identity == "" {
		command.Report(stderr, command.Hint(errors.New("want BACKUP and --identity FILE"), "portcullisd restore --help"))
		return command.ErrUsage
	}
	c, err := config.Load(*file)
	if err != nil {
		return err
	}
	return restore(ctx, c, name, *identity, anchors, stdout, stderr)
}

func restore(ctx context.Context, c *config.Config, name, identity string, anchors []string, stdout, stderr io.Writer) (err error) {
	text, err := input.ReadFile(identity, input.Small)
	if err != nil {
		return fmt.Errorf("read identity: %w", err)
	}
	ids, err := backupfile.Identities(identity, text)
	if err != nil {
		return command.Hint(err, backupfile.IdentityHint)
	}
	f, err := backupfile.Open(name, ids, anchors)
	if err != nil {
		return err
	}
	defer f.Close()
	dir := c.Path(c.StateDir)
	if err := empty(dir); err != nil {
		return err
	}
	log := journal.New(stderr, c.Level())
	opening, cancel := context.WithTimeout(ctx, openingLimit)
	defer cancel()
	st, err := etcd.Open(opening, etcd.Options{Dir: dir, Log: log, Version: version.Short()})
	if err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	mark, n, err := backup.Restore(ctx, backup.RestoreOptions{
		Store: st, File: f, Size: f.Size, Identities: f.Identities, Anchors: f.Anchors, State: etcd.Format, Actor: command.OperatorHere(), Now: time.Now(),
	})
	if err != nil {
		return command.Hint(fmt.Errorf("%s: %w", name, err), "nothing runs on "+dir+" before it was emptied and a backup restored into it whole")
	}
	fmt.Fprintf(stdout, "restored %d records of %s, revision %d, audit entry %d, into %s\n", n, mark.Taken.Format(time.RFC3339), mark.Revision, mark.Audit.Seq, dir)
	if known, k := f.Anchors, len(f.Anchors); k > 0 && known[k-1].Seq > mark.Audit.Seq {
		fmt.Fprintf(stdout, "the audit log went on to entry %d at least, anchored at %s: what was decided since the backup is in none of these records\n",
			known[k-1].Seq, known[k-1].Time.Format(time.RFC3339))
	}
	fmt.Fprintln(stdout, "start the service, then compare with the fabric: portcullis restore review")
	return nil
}

// empty refuses a directory with anything in it.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	if len(entries) > 0 {
		return command.Hint(fmt.Errorf("state directory %s is not empty: it has %s", dir, entries[0].Name()), "move what is there to another place, and keep it until the review has ended")
	}
	return nil
}

// RefuseIncomplete refuses a state whose restore broke off. A store that does not answer is no reason to end: such a
// state is in review, too, once it answers.
func RefuseIncomplete(ctx context.Context, st *store.Store, dir string) error {
	mark, err := review.Current(ctx, st)
	if err == nil && mark != nil && mark.Incomplete {
		return command.Hint(fmt.Errorf("state directory %s: a restore into it broke off at %s, and some records are missing", dir, mark.Since.Format(time.RFC3339)),
			"empty it, and restore the backup again")
	}
	return nil
}

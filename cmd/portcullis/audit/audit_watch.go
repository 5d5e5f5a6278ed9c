package audit

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

// watchEvery is how often the service is asked for new entries.
const watchEvery = time.Second

func auditWatch(env *cli.Env) *cobra.Command {
	var f auditFilter
	after, format := uint64(0), lineFormat("")
	c := &cobra.Command{
		Use: "watch", Short: "Print entries of the audit log as they are written", Args: cli.Operands(),
		Long: `Print entries of the audit log as they are written, a line for each, until interrupted: from
now on, or with --last or --since those of that time first. With -o json or --format json
each line is an object, as audit export writes it, and with --format ocsf an event of the
Open Cybersecurity Schema Framework.

When the connection is lost, it is made again, and no entry is left out or printed twice.
--after SEQ begins behind an entry, where an earlier call ended (--after 0: with the first).
A log that ends before that entry, or goes on differently, is an error: the state was
restored, or the service is another one.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, err := f.query()
			if err != nil {
				return err
			}
			switch {
			case f.until != "":
				return &cli.UsageError{Msg: "--until is not for audit watch", Hint: "audit list and audit export print what was before a time"}
			case format == "" && env.JSON():
				format = asJSON
			case format == "" && !env.Tabular():
				return &cli.UsageError{Msg: "audit watch prints lines of text or JSON", Hint: "use -o json: an object on each line"}
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			w := &watcher{env: env, c: c, q: q, format: format, every: watchEvery}
			switch {
			case cmd.Flags().Changed("after"):
				w.at.Seq = after
			case q.Since.IsZero():
				w.fromNow = true
			}
			return w.run(cmd.Context())
		},
	}
	f.add(c)
	c.Flags().Uint64Var(&after, "after", 0, "begin behind the entry with this number (default: from now on)")
	format.add(c, "format of each line: "+wantLine+" (default: text, or that of --output)")
	return c
}

// otherLog is the error about a log that does not have what was read of it before.
type otherLog struct{ text string }

// Error implements error.
func (e *otherLog) Error() string { return e.text }

func differs(format string, args ...any) error {
	return cli.Hint(&otherLog{fmt.Sprintf(format, args...)}, "portcullis audit verify shows whether it is whole; audit watch --after SEQ begins at another entry")
}

// watcher prints entries of the audit log as they are written.
type watcher struct {
	env    *cli.Env
	c      *client.Client
	q      v1.AuditQuery
	format lineFormat // empty: text
	every  time.Duration

	fromNow bool         // the first answer of the service says where to begin
	at      v1.AuditHead // last entry that was looked at; Hash is empty where it is not known
}

// run prints entries until ctx ends, or the service refuses.
func (w *watcher) run(ctx context.Context) error {
	return retry(ctx, w.env, "the service is asked again", func() (bool, error) { return w.once(ctx) })
}

// once asks again and again, until the first error, and reports whether there was an answer.
func (w *watcher) once(ctx context.Context) (begun bool, err error) {
	for {
		if err := w.poll(ctx); err != nil {
			return begun, err
		}
		begun = true
		select {
		case <-ctx.Done():
			return begun, ctx.Err()
		case <-time.After(w.every):
		}
	}
}

// poll prints what is new.
func (w *watcher) poll(ctx context.Context) error {
	if w.fromNow {
		head, err := w.c.Audit().Head(ctx)
		if err != nil {
			return err
		}
		w.at, w.fromNow = *head, false
		return nil
	}
	q := w.q
	q.Limit, q.After = v1.MaxPage, strconv.FormatUint(w.at.Seq, 10)
	for page, err := range w.c.Audit().Entries(ctx, q) {
		if err != nil {
			return err
		}
		if err := w.take(page); err != nil {
			return err
		}
	}
	return nil
}

// otherEntry is the error about an entry, by number.
const otherEntry = "entry %d of the audit log is not the one that follows what was read before: the state was restored, or the log was altered"

// take prints a page, and notes where it ends.
func (w *watcher) take(page *v1.AuditEntries) error {
	if page.Head.Seq < w.at.Seq {
		return differs("the audit log ends at entry %d, before entry %d: the state was restored, or the service is another one", page.Head.Seq, w.at.Seq)
	}
	if page.Head.Seq == w.at.Seq && w.at.Hash != "" && page.Head.Hash != w.at.Hash {
		return differs(otherEntry, w.at.Seq)
	}
	for i := range page.Items {
		e := &page.Items[i]
		if e.Seq <= w.at.Seq {
			return fmt.Errorf("the service returned entry %d after entry %d", e.Seq, w.at.Seq)
		}
		if e.Seq == w.at.Seq+1 && w.at.Hash != "" && e.Prev != w.at.Hash {
			return differs(otherEntry, e.Seq)
		}
		if err := w.print(e); err != nil {
			return &printError{err}
		}
		w.at = v1.AuditHead{Seq: e.Seq, Hash: e.Hash}
	}
	if page.Next == "" {
		return nil
	}
	next, err := strconv.ParseUint(page.Next, 10, 64)
	if err != nil || next < w.at.Seq {
		return fmt.Errorf("the service returned %q as the number to go on from, after entry %d", page.Next, w.at.Seq)
	}
	if next > w.at.Seq { // the filters left entries out
		w.at = v1.AuditHead{Seq: next}
		if page.Head.Seq == next {
			w.at.Hash = page.Head.Hash
		}
	}
	return nil
}

// print writes an entry on a line.
func (w *watcher) print(e *v1.AuditEntry) error {
	if w.format != "" {
		return w.format.write(w.env.Out, e)
	}
	line := fmt.Sprintf("%d %s %s %s %s", e.Seq, cli.Stamp(e.Time), e.Actor, e.Action, e.Object)
	if e.Code != "" {
		line += " (" + e.Code + ")"
	}
	if e.Detail != "" {
		line += ": " + e.Detail
	}
	if e.Reason != "" {
		line += "; reason: " + e.Reason
	}
	_, err := fmt.Fprintln(w.env.Out, cli.Plain(line))
	return err
}

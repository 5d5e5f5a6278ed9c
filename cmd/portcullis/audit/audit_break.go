package audit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

func auditBreaks(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "breaks", Short: "List where the audit log is not what was written", Args: cli.Operands(),
		Long: `List where the audit log is not what was written, by the last verification of the service, and the
breaks that operators accepted.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			b, err := c.Audit().Breaks(cmd.Context())
			if err != nil {
				return err
			}
			return env.Print(b, func(w *cli.Columns) { showBreaks(w, b) })
		},
	}
}

func auditAcceptBreak(env *cli.Env) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "accept-break SEQ --reason WHY", Short: "Accept a break of the audit log, in the log itself", Args: cli.Operands("SEQ"),
		Long: `Accept the open break of the audit log at entry SEQ (audit breaks). The log gets an entry with the reason,
your name, and the two entries between which it is broken; the break stays listed. Once all are accepted, the part
audit of /readyz is ready again. Do this only when you know how the break came to be, and keep a copy of the state
from before.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			seq, err := strconv.ParseUint(args[0], 10, 64)
			if err != nil || seq == 0 {
				return &cli.UsageError{Msg: fmt.Sprintf("%q: want the number of an entry", args[0]), Hint: "portcullis audit breaks"}
			}
			if strings.TrimSpace(reason) == "" {
				return &cli.UsageError{Msg: "--reason is needed", Hint: "usage: " + cmd.UseLine()}
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			known, err := c.Audit().Breaks(cmd.Context())
			if err != nil {
				return err
			}
			for i := range known.Open {
				b := &known.Open[i]
				if b.Seq != seq {
					continue
				}
				after, err := c.Audit().AcceptBreak(cmd.Context(), v1.AuditAccept{Seq: seq, Hash: b.To.Hash, Reason: reason})
				if err != nil {
					return err
				}
				return env.Print(after, func(w *cli.Columns) { showBreaks(w, after) })
			}
			return cli.Hint(errors.New("no break at audit entry "+args[0]+" is open"), "portcullis audit breaks; an instance finds breaks when it starts, and every hour")
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "what is known of how the break came to be, for the audit log")
	return c
}

func showBreaks(w *cli.Columns, b *v1.AuditBreaks) {
	if len(b.Open)+len(b.Accepted) == 0 {
		w.Text("no break is known; the log was whole at %s", cli.Stamp(b.Verified))
		return
	}
	w.Row("SEQ", "CAUSE", "FROM", "TO", "ACCEPTED BY", "AT", "ENTRY", "DETAIL")
	for i := range b.Open {
		o := &b.Open[i]
		w.Row(strconv.FormatUint(o.Seq, 10), o.Cause, entryOf(o.From), entryOf(o.To), "-", "-", "-", o.Found)
	}
	for i := range b.Accepted {
		o := &b.Accepted[i]
		w.Row(strconv.FormatUint(o.Seq, 10), o.Cause, entryOf(o.From), entryOf(o.To), o.Actor, cli.Stamp(o.Time), strconv.FormatUint(o.Entry, 10), o.Detail)
	}
}

// entryOf returns number and hash of an entry, shortened.
func entryOf(h v1.AuditHead) string { return fmt.Sprintf("%d/%.12s", h.Seq, h.Hash) }

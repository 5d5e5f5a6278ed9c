package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
)

func (a *app) auditBreaks() *cobra.Command {
	return &cobra.Command{
		Use: "breaks", Short: "List where the audit log is not what was written", Args: operands(),
		Long: `List where the audit log is not what was written, by the last verification of the service, and the
breaks that operators accepted.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			b, err := c.AuditBreaks(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(b, func(w *columns) { showBreaks(w, b) })
		},
	}
}

func (a *app) auditAcceptBreak() *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "accept-break SEQ --reason WHY", Short: "Accept a break of the audit log, in the log itself", Args: operands("SEQ"),
		Long: `Accept the open break of the audit log at entry SEQ (audit breaks). The log gets an entry with the reason,
your name, and the two entries between which it is broken; the break stays listed. Once all are accepted, the part
audit of /readyz is ready again. Do this only when you know how the break came to be, and keep a copy of the state
from before.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			seq, err := strconv.ParseUint(args[0], 10, 64)
			if err != nil || seq == 0 {
				return &usageError{msg: fmt.Sprintf("%q: want the number of an entry", args[0]), hint: "portcullis audit breaks"}
			}
			if strings.TrimSpace(reason) == "" {
				return &usageError{msg: "--reason is needed", hint: "usage: " + cmd.UseLine()}
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			known, err := c.AuditBreaks(cmd.Context())
			if err != nil {
				return err
			}
			for i := range known.Open {
				b := &known.Open[i]
				if b.Seq != seq {
					continue
				}
				after, err := c.AcceptAuditBreak(cmd.Context(), v1.AuditAccept{Seq: seq, Hash: b.To.Hash, Reason: reason})
				if err != nil {
					return err
				}
				return a.print(after, func(w *columns) { showBreaks(w, after) })
			}
			return hint(errors.New("no break at audit entry "+args[0]+" is open"), "portcullis audit breaks; an instance finds breaks when it starts, and every hour")
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "what is known of how the break came to be, for the audit log")
	return c
}

func showBreaks(w *columns, b *v1.AuditBreaks) {
	if len(b.Open)+len(b.Accepted) == 0 {
		w.text("no break is known; the log was whole at %s", stamp(b.Verified))
		return
	}
	w.row("SEQ", "CAUSE", "FROM", "TO", "ACCEPTED BY", "AT", "ENTRY", "DETAIL")
	for i := range b.Open {
		o := &b.Open[i]
		w.row(strconv.FormatUint(o.Seq, 10), o.Cause, entryOf(o.From), entryOf(o.To), "-", "-", "-", o.Found)
	}
	for i := range b.Accepted {
		o := &b.Accepted[i]
		w.row(strconv.FormatUint(o.Seq, 10), o.Cause, entryOf(o.From), entryOf(o.To), o.Actor, stamp(o.Time), strconv.FormatUint(o.Entry, 10), o.Detail)
	}
}

// entryOf returns number and hash of an entry, shortened.
func entryOf(h v1.AuditHead) string { return fmt.Sprintf("%d/%.12s", h.Seq, h.Hash) }

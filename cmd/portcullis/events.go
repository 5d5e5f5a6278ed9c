package main

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
)

func (a *app) eventsCommand() *cobra.Command {
	q := v1.EventQuery{}
	var last time.Duration
	c := &cobra.Command{
		Use: "events", Short: "List what happened to locks of adapters and to evidence, though nobody asked", Args: operands(),
		Long: `List what happened to locks of adapters and to accepted evidence, the last first: one row
for a type, host, adapter and cause. COUNT is exact; the log tells only of the 1st, 2nd,
5th, 10th, 20th, 50th and so on of what hosts cause.

BY is who says so:
  evidence  the host's TPM vouched for it, from a boot that is trusted
  host      the host's word alone, from which nothing follows
  service   the service did it, or found it out`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if last < 0 {
				return &usageError{msg: "--last is negative", hint: "for example --last 24h"}
			}
			if last > 0 {
				q.Since = time.Now().Add(-last)
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			all, err := c.Events(cmd.Context(), q)
			if err != nil {
				return err
			}
			return a.print(all, func(w *columns) {
				w.row("LAST", "SEVERITY", "EVENT", "CAUSE", "BY", "HOST", "ADAPTER", "COUNT", "EXPECTED", "SEEN", "DO")
				for i := range all.Items {
					e := &all.Items[i]
					w.row(stamp(e.Last), e.Severity, e.Type, e.Cause, e.By, e.Host, adapterOf(e), strconv.FormatUint(e.Count, 10), e.Expected, e.Seen, e.Do)
				}
			})
		},
	}
	c.Flags().StringVar(&q.Type, "type", "", "of this type only: lock.changed, evidence.outdated, ...")
	c.Flags().StringVar(&q.Host, "host", "", "of this host only")
	c.Flags().StringVar(&q.Severity, "severity", "", "this severe or more: info, notice, warning or critical")
	c.Flags().DurationVar(&last, "last", 0, "that happened within this time, such as 24h")
	return c
}

func adapterOf(e *v1.Event) string {
	if e.Adapter == 0 {
		return ""
	}
	return e.Adapter.String()
}

package audit

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

func eventsCommand(env *cli.Env) *cobra.Command {
	q := v1.EventQuery{}
	var last time.Duration
	follow, after := false, ""
	c := &cobra.Command{
		Use: "events", Short: "List events of adapter locks and accepted evidence", Args: cli.Operands(),
		Long: `List events of adapter locks and accepted evidence, newest first: one row for each type,
host, adapter and cause. COUNT is exact. Of events that hosts cause, the log has only the
1st, 2nd, 5th, 10th, 20th, 50th and so on.

BY is the source:
  evidence  the host's TPM vouched for it, in a boot that is trusted
  host      only the host claims it; nothing follows from it
  service   the service did it or detected it

--follow prints events as they happen, a line for each, or with -o json an object. After a
cut it goes on where it was, by itself. --after begins where an earlier call ended: at the
id of an event (-o json shows it). Where single times of an event are no longer known,
standard error says so.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if last < 0 {
				return &cli.UsageError{Msg: "--last is negative", Hint: "for example --last 24h"}
			}
			switch {
			case after != "" && !follow:
				return &cli.UsageError{Msg: "--after is for --follow", Hint: "add --follow, or use --last to list"}
			case follow && last > 0:
				return &cli.UsageError{Msg: "--last is not for --follow", Hint: "list with --last, or follow with --after ID"}
			}
			if last > 0 {
				q.Since = time.Now().Add(-last)
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			if follow {
				return followEvents(cmd.Context(), env, c, v1.EventWatch{Type: q.Type, Host: q.Host, Severity: q.Severity, After: after})
			}
			all, err := c.Audit().Events(cmd.Context(), q)
			if err != nil {
				return err
			}
			return env.Print(all, func(w *cli.Columns) {
				w.Row("LAST", "SEVERITY", "EVENT", "CAUSE", "BY", "HOST", "ADAPTER", "COUNT", "EXPECTED", "SEEN", "DO")
				for i := range all.Items {
					e := &all.Items[i]
					w.Row(cli.Stamp(e.Last), e.Severity, e.Type, e.Cause, e.By, e.Host, adapterOf(e), strconv.FormatUint(e.Count, 10), e.Expected, e.Seen, e.Do)
				}
			})
		},
	}
	c.Flags().StringVar(&q.Type, "type", "", "only this type: lock.changed, evidence.outdated, ...")
	c.Flags().StringVar(&q.Host, "host", "", "only this host")
	c.Flags().StringVar(&q.Severity, "severity", "", "only this severity or a higher one: info, notice, warning or critical")
	c.Flags().DurationVar(&last, "last", 0, "only events of this last period, such as 24h")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "print events as they happen, until interrupted")
	c.Flags().StringVar(&after, "after", "", "with --follow: begin after the event with this id, instead of now")
	return c
}

func adapterOf(e *v1.Event) string {
	if e.Adapter == 0 {
		return ""
	}
	return e.Adapter.String()
}

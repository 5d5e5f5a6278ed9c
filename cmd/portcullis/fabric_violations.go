package main

import (
	"strconv"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
)

func (a *app) fabricViolations() *cobra.Command {
	q := v1.ViolationQuery{PageQuery: v1.PageQuery{Limit: v1.MaxPage}}
	c := &cobra.Command{
		Use: "violations", Short: "List who tried a wrong key, with whom, and how often", Args: operands(),
		Long: `List what devices reported of wrong keys and of forged traps since the subnet
manager was started: one row for a kind, a source, a reporter and what was tried.

FROM is the switch port that is named, and behind it what names it. Neither of these
proves who it was:
  by LID     the source LID of the packet, which other firmware may choose
  by way     the return path of the SMP, which its sender may have made up
Without these words a switch port stopped the packet, as the report says, or the subnet
manager itself has read it there.
VERDICT says what a report is worth: anybody may send a trap in the name of another.
  claimed    a trap says so, and nothing proves it or disproves it
  confirmed  the device that the trap comes from has counted it, whoever did it
  refuted    that device has counted nothing: somebody else sent the trap
COUNT is exact; the log tells only of the 1st, 2nd, 5th, 10th, 20th, 50th and so on.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			page, err := gather(c.Violations(cmd.Context(), q))
			if err != nil {
				return err
			}
			return list(a, page, "nothing was reported", violationHeader, violationRow)
		},
	}
	c.Flags().StringVar(&q.Kind, "kind", "", "of this kind only: m-key, p-key, q-key, cc-key, vs-key, n2n-key, sm-key, forged-trap, host-wrote, ...")
	c.Flags().StringVar(&q.Verdict, "verdict", "", "with this verdict only: claimed, confirmed or refuted")
	c.Flags().StringVar(&q.Host, "host", "", "from this host only")
	c.Flags().StringVar(&q.Tenant, "tenant", "", "from hosts of this tenant only")
	c.Flags().BoolVar(&q.All, "all", false, "traps that tell of no violation, too")
	return c
}

var violationHeader = []string{"LAST", "KIND", "VERDICT", "FROM", "HOST", "TENANT", "REPORTED BY", "WHAT", "COUNT", "FIRST"}

func violationRow(v *v1.FabricViolation) []string {
	from := v.At
	switch {
	case from == "" && v.LID != 0 && !v.Others:
		from = "LID " + v.LID.String() + ", of nobody"
	case from == "":
		from = "unknown"
	case v.Others:
	case v.By == "lid":
		from += " (by LID)"
	case v.By == "way":
		from += " (by way)"
	}
	what := v.Detail
	if v.PKey != 0 {
		what = v.PKey.String()
		if v.Detail != "" {
			what += " " + v.Detail
		}
	}
	if v.NamedLID != 0 {
		what += ", names LID " + v.NamedLID.String()
	}
	if v.Others {
		what = "various"
	}
	return []string{
		stamp(v.Last), v.Kind, v.Verdict, from, v.Host, v.Tenant, v.ReporterAt, what, strconv.FormatUint(v.Count, 10), stamp(v.First),
	}
}

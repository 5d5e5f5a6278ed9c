package fabric

import (
	"strconv"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

func fabricViolations(env *cli.Env) *cobra.Command {
	q := v1.ViolationQuery{PageQuery: v1.PageQuery{Limit: v1.MaxPage}}
	c := &cobra.Command{
		Use: "violations", Short: "List attempts with wrong keys: source, reporter and count", Args: cli.Operands(),
		Long: `List what devices reported about wrong keys and forged traps since the subnet manager was
started: one row for each kind, source, reporter and attempted key.

FROM is the switch port that is named, and after it how it was found. Neither of these
proves the sender:
  by LID     the source LID of the packet, which modified firmware can choose
  by way     the return path of the SMP, which its sender can invent
Without these words the switch port itself stopped the packet, as the report says, or the
subnet manager has read it there.

VERDICT says how reliable a report is. Any host can send a trap in the name of another one.
  claimed    a trap says so, and nothing proves or disproves it
  confirmed  the device in whose name the trap came counted a violation; its author is not proven
  refuted    that device counted no violation: another host sent the trap

COUNT is exact. The log has only the 1st, 2nd, 5th, 10th, 20th, 50th and so on.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			page, err := gather(c.Fabric().Violations(cmd.Context(), q))
			if err != nil {
				return err
			}
			return list(env, page, "nothing was reported", violationHeader, violationRow)
		},
	}
	c.Flags().StringVar(&q.Kind, "kind", "", "only this kind: m-key, p-key, q-key, cc-key, vs-key, n2n-key, sm-key, forged-trap, host-wrote, ...")
	c.Flags().StringVar(&q.Verdict, "verdict", "", "only this verdict: claimed, confirmed or refuted")
	c.Flags().StringVar(&q.Host, "host", "", "only from this host")
	c.Flags().StringVar(&q.Tenant, "tenant", "", "only from hosts of this tenant")
	c.Flags().BoolVar(&q.All, "all", false, "include traps that report no violation")
	return c
}

var violationHeader = []string{"LAST", "KIND", "VERDICT", "FROM", "HOST", "TENANT", "REPORTED BY", "WHAT", "COUNT", "FIRST"}

func violationRow(v *v1.FabricViolation) []string {
	from := v.At
	switch {
	case from == "" && v.LID != 0 && !v.Others:
		from = "LID " + v.LID.String() + ", of no host"
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
		cli.Stamp(v.Last), v.Kind, v.Verdict, from, v.Host, v.Tenant, v.ReporterAt, what, strconv.FormatUint(v.Count, 10), cli.Stamp(v.First),
	}
}

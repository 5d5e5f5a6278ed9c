package fabric

import (
	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"

	v1 "portcullis/api/v1"
)

func verifyPorts(env *cli.Env) *cobra.Command {
	q := v1.IsolationPortQuery{PageQuery: v1.PageQuery{Limit: v1.MaxPage}}
	c := &cobra.Command{
		Use: "ports [--host HOST] [--tenant TENANT] [--verdict VERDICT]", Short: "List what was proven last of each port", Args: cli.Operands(),
		Long: `List what the newest examination of all tenants proves of each declared port of a host. Nothing is
read. The verdicts are
  isolated   no packet passes between the port and a port of another tenant
  leaks      a packet passes from it, to it, or both
  unproven   the port was not found, a packet depends on what was not read, or the proof is too old

A role tenant sees the ports of its own tenants alone. The exit status says nothing about the verdicts:
it is 0 if the list is complete. "verify --last" has the exit status of the verdict about all tenants.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			ports, err := c.IsolationPorts(cmd.Context(), q)
			if err != nil {
				return err
			}
			return env.Print(ports, func(w *cli.Columns) { showVerifiedPorts(w, ports) })
		},
	}
	c.Flags().StringVar(&q.Host, "host", "", "only ports of this host")
	c.Flags().StringVar(&q.Tenant, "tenant", "", "only ports of this tenant")
	c.Flags().Var(cli.OneOf(&q.Verdict, []string{v1.Isolated, v1.Leaks, v1.Unproven}), "verdict", "only ports with this verdict")
	return c
}

func showVerifiedPorts(w *cli.Columns, ports *v1.IsolationPorts) {
	showAge(w, ports.Age, ports.MaxAge, ports.Current, "")
	w.Gap()
	if len(ports.Items) == 0 {
		w.Text("none of the ports that were examined matches")
		return
	}
	w.Row("HOST", "TENANT", "PORT", "AT", "VERDICT", "HELD BY", "WHY")
	for i := range ports.Items {
		p := &ports.Items[i]
		w.Row(p.Host, p.Tenant, cli.GUID(p.GUID), cli.Place(p.Place), portVerdict(p), p.Held, cli.WhyPort(p))
	}
}

// portVerdict says a verdict to people.
func portVerdict(p *v1.IsolationPortVerdict) string {
	switch p.Verdict {
	case v1.Leaks:
		return verdictWords[v1.Leaks]
	case v1.Unproven:
		return verdictWords[v1.IsolationUnknown]
	default:
		return p.Verdict
	}
}

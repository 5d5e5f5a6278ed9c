package fabric

import (
	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

func fabricTopology(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "topology", Short: "List where the fabric differs from the declared topology", Args: cli.Operands(),
		Long: `List switch ports where the fabric differs from the declared topology: what is there, what
belongs there, and what is done about it. "portcullis topospec status" shows which topology
is in force.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			page, err := gather(c.Fabric().Differing(cmd.Context(), v1.PageQuery{Limit: v1.MaxPage}))
			if err != nil {
				return err
			}
			return list(env, page, "the fabric is as declared, or no topology is declared", differingHeader, differingRow)
		},
	}
}

var differingHeader = []string{"AT", "VERDICT", "STATE", "WOULD", "THERE IS", "EXPECTED", "HOST", "TENANT", "WHERE", "SINCE"}

func differingRow(p *v1.TopospecPort) []string {
	state := p.State
	if p.Page {
		state += ", look at once"
	}
	return []string{p.At, p.Verdict, state, p.Would, p.Seen, p.Expected, p.Host, p.Tenant, p.Where, cli.Stamp(p.Since)}
}

package host

import (
	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

func inventoryCheck(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "Compare the inventory with the topology in force and with the fabric", Args: cli.Operands(),
		Long: `Compare the inventory with the topology in force, and its cables with those that are up, in physical
terms: site, rack, unit, name, port and the label beside it. A draft that makes the topology
agree is made by "topospec draft --from-inventory".

Exit status: 0 if there is no difference, 1 if there is one, and 2 if they could not be compared.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return cli.NotCompared(err)
			}
			r, err := c.Inventory().Check(cmd.Context())
			if err != nil {
				return cli.NotCompared(err)
			}
			if err := env.Print(r, func(w *cli.Columns) { showCheck(w, r) }); err != nil {
				return cli.NotCompared(err)
			}
			if len(r.Topology.Differences)+len(r.Fabric.Differences) > 0 {
				return cli.ErrNo
			}
			return nil
		},
	}
}

func showCheck(w *cli.Columns, r *v1.InventoryCheck) {
	for _, side := range []struct {
		what string
		c    *v1.InventoryComparison
	}{{"topology in force", &r.Topology}, {"fabric", &r.Fabric}} {
		c := side.c
		switch {
		case !c.Compared:
			w.Text("%s: not compared: %s", side.what, c.Why)
		case len(c.Differences) == 0:
			w.Text("%s: no difference, %s are the same", side.what, cli.Count(c.Same, "link"))
		default:
			w.Text("%s: %s, %s are the same", side.what, cli.Count(len(c.Differences)+c.More, "difference"), cli.Count(c.Same, "link"))
		}
		for i := range c.Differences {
			w.Text("  %s", c.Differences[i].Text)
		}
		if c.More > 0 {
			w.Text("  and %d more", c.More)
		}
	}
}

package host

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

// removable returns what can be removed, and how the service calls it.
func removable() map[string]string {
	return map[string]string{"site": "site", "rack": "rack", "switch": "switch", "trunk": "cable", "stock": "adapter"}
}

func inventoryRemove(env *cli.Env) *cobra.Command {
	var yes bool
	var in v1.HostRemoval
	cmd := &cobra.Command{
		Use: "remove site|rack|switch|trunk|stock ID --reason WHY --yes", Short: "Remove equipment from inventory that left permanently",
		Args: cli.Operands("KIND", "ID"),
		Long: `Remove a site, a rack, a switch, a cable between switches (trunk) or an adapter in stock.

A switch has a name or a GUID, a trunk the name of one of its ends (SWITCH/PORT), and an adapter a
node GUID. A site with racks stays, a rack with devices, and a switch to which hosts are cabled. A
switch takes its cables to other switches along. A host is removed with "host remove".`,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, known := removable()[args[0]]
			switch {
			case !known:
				return &cli.UsageError{Msg: args[0] + " cannot be removed", Hint: "want one of " + strings.Join(slices.Sorted(maps.Keys(removable())), ", ")}
			case in.Reason == "":
				return &cli.UsageError{Msg: "--reason is missing", Hint: "usage: " + cmd.UseLine()}
			}
			if err := env.Confirm(yes, args[0]+" "+args[1]+" leaves inventory"); err != nil {
				return err
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			if err := c.Inventory().Remove(cmd.Context(), kind, args[1], in); err != nil {
				return err
			}
			return env.Deleted(args[0], args[1])
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it; without this, only say what would be done")
	cmd.Flags().StringVar(&in.Reason, "reason", "", "reason why it leaves, for the audit log")
	return cmd
}

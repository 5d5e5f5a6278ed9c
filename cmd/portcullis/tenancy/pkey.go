package tenancy

import (
	"strings"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

func pkeyCommand(env *cli.Env) *cobra.Command {
	return cli.Group("pkey", "Show P_Keys that wait to be used again", pkeyList(env))
}

func pkeyList(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List quarantined P_Keys and what they wait for", Args: cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			keys, err := c.Clusters().QuarantinedPKeys(cmd.Context())
			if err != nil {
				return err
			}
			return env.Print(v1.List[v1.QuarantinedPKey]{Items: keys}, func(w *cli.Columns) {
				w.Row("P_KEY", "QUARANTINED SINCE", "WAITING FOR")
				for _, k := range keys {
					w.Row(k.PKey.String(), cli.Stamp(k.Since), strings.Join(k.Waiting, "; "))
				}
			})
		},
	}
}

// Package tenancy has the commands about tenants, clusters and P_Keys.
package tenancy

import (
	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"
)

// Commands returns the nouns of this package.
func Commands(env *cli.Env) []*cobra.Command {
	return []*cobra.Command{tenantCommand(env), clusterCommand(env), pkeyCommand(env)}
}

// Package apply has the command that brings tenants, clusters and assignments of hosts to what files declare.
package apply

import (
	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"
)

// Commands returns the nouns of this package.
func Commands(env *cli.Env) []*cobra.Command {
	return []*cobra.Command{applyCommand(env)}
}

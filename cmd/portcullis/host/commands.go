// Package host has the commands about hosts, their inventory and the locks of their adapters.
package host

import (
	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"
)

// Commands returns the nouns of this package.
func Commands(env *cli.Env) []*cobra.Command {
	return []*cobra.Command{hostCommand(env), inventoryCommand(env), lockCommand(env), whyCommand(env)}
}

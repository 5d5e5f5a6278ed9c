// Package movein has the commands that plan the move of a site from another Subnet Manager, and keep what its fabric has.
package movein

import (
	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"
)

// Commands returns the nouns of this package.
func Commands(env *cli.Env) []*cobra.Command {
	return []*cobra.Command{importCommand(env), adoptCommand(env)}
}

// Package diag has the commands that have diagnostic tools read devices through the service.
package diag

import (
	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"
)

// Commands are diag.
func Commands(env *cli.Env) []*cobra.Command {
	return []*cobra.Command{cli.Group("diag", "Run diagnostic tools on devices whose keys they do not have", runCommand(env))}
}

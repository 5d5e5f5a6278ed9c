// Package fabric has the commands that show the fabric, and those that mark its places and manage its keys.
package fabric

import (
	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"
)

// Commands returns the nouns of this package.
func Commands(env *cli.Env) []*cobra.Command {
	return []*cobra.Command{fabricCommand(env), verifyCommand(env)}
}

// Package keys has the commands that back up, rehearse and recover keys of the fabric.
package keys

import (
	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"
)

// Commands returns the nouns of this package.
func Commands(env *cli.Env) []*cobra.Command {
	return []*cobra.Command{keysCommand(env)}
}

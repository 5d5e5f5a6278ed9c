// Package sm has the commands about the subnet manager, its packets and its recordings.
package sm

import (
	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"
)

// Commands returns the nouns of this package.
func Commands(env *cli.Env) []*cobra.Command {
	return []*cobra.Command{smCommand(env), madCommand(env), replayCommand(env)}
}

// Package identity has the commands about the credential in use, and about contexts: services by name.
package identity

import (
	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"
)

// Commands returns the commands of this package.
func Commands(env *cli.Env) []*cobra.Command {
	return []*cobra.Command{contextCommand(env), login(env), logout(env), whoami(env)}
}

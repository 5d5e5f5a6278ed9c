// Package service has the commands about the service itself: brakes, authorities, backups, reviews, security profiles and its clock.
package service

import (
	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"
)

// Commands returns the nouns of this package.
func Commands(env *cli.Env) []*cobra.Command {
	return []*cobra.Command{admissionCommand(env), authorityCommand(env), backupCommand(env), clockCommand(env), profileCommand(env), restoreCommand(env)}
}

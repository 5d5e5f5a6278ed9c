// Package audit has the commands about the audit log, events and webhooks.
package audit

import (
	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"
)

// Commands returns the nouns of this package.
func Commands(env *cli.Env) []*cobra.Command {
	return []*cobra.Command{auditCommand(env), eventsCommand(env), webhookCommand(env)}
}

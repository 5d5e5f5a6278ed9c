// Package firmware has the commands that describe and verify firmware images and files of adapter settings.
package firmware

import (
	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"
)

// Commands returns the nouns of this package.
func Commands(env *cli.Env) []*cobra.Command {
	return []*cobra.Command{firmwareCommand(env), nvconfigCommand(env)}
}

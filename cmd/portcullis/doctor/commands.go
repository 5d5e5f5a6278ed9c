// Package doctor has the command that checks the service and the way to it, and gathers what others need to help.
package doctor

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"
)

// Commands returns the nouns of this package.
func Commands(env *cli.Env) []*cobra.Command {
	return []*cobra.Command{doctorCommand(env)}
}

func doctorCommand(env *cli.Env) *cobra.Command {
	var bundle string
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check the service and the way to it", Args: cli.Operands(),
		Long: `Check the service and the way to it: reachability, certificate, clocks, credential, versions,
the parts of the service with its store, Subnet Manager and leader, brakes, the last backup, the
escrow kit and the security profile. Each check is shown with its result, and with a hint if it is
not ok. Nothing is changed. What the role of the credential may not see is skipped.

With --bundle a new archive has the results, what the service answered, the events of the last day,
the health of the fabric and the metrics. Tokens, private keys and passwords in URLs are removed from
all of it. It has names of hosts, tenants and operators: read it before it leaves the site.

The exit code is 0 if no check failed, and 1 otherwise.`,
		Example: "  portcullis doctor\n  portcullis doctor --bundle portcullis.tar.gz",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			if env.Local() {
				return &cli.UsageError{Msg: "doctor needs the service, and does not work with --socket", Hint: "name the service with --service; portcullis sm show --socket PATH shows the Subnet Manager"}
			}
			d := &doctor{c: c, now: time.Now, answers: map[string]any{}}
			found := d.examine(cmd.Context())
			if bundle != "" {
				if err := d.bundle(cmd.Context(), bundle, found); err != nil {
					return err
				}
				fmt.Fprintf(env.Err, "portcullis: %s is written; it has names of hosts, tenants and operators\n", cli.Plain(bundle))
			}
			if err := show(env, found); err != nil {
				return err
			}
			if !found.OK {
				return cli.ErrNo
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&bundle, "bundle", "", "also write the archive FILE.tar.gz, which must not exist")
	return cmd
}

// show prints a diagnosis in the form of the agent's doctor.
func show(env *cli.Env, d *diagnosis) error {
	if !env.Tabular() {
		return env.Print(d, nil)
	}
	_, err := io.WriteString(env.Out, d.Checks.Text(cli.Plain))
	return err
}

package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"portcullis/cmd/internal/version"
	"portcullis/cmd/portcullis/apply"
	"portcullis/cmd/portcullis/audit"
	"portcullis/cmd/portcullis/cli"
	"portcullis/cmd/portcullis/diag"
	"portcullis/cmd/portcullis/doctor"
	"portcullis/cmd/portcullis/fabric"
	"portcullis/cmd/portcullis/firmware"
	"portcullis/cmd/portcullis/host"
	"portcullis/cmd/portcullis/identity"
	"portcullis/cmd/portcullis/keys"
	"portcullis/cmd/portcullis/label"
	"portcullis/cmd/portcullis/movein"
	"portcullis/cmd/portcullis/receipt"
	"portcullis/cmd/portcullis/reference"
	"portcullis/cmd/portcullis/result"
	"portcullis/cmd/portcullis/service"
	"portcullis/cmd/portcullis/sm"
	"portcullis/cmd/portcullis/tenancy"
	"portcullis/cmd/portcullis/top"
	"portcullis/cmd/portcullis/topology"
)

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	env := cli.New(stdin, stdout, stderr)
	root := root(env)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	return env.Report(cmd, err)
}

// nouns are all commands, by package.
var nouns = []func(*cli.Env) []*cobra.Command{
	apply.Commands, audit.Commands, diag.Commands, doctor.Commands, fabric.Commands, firmware.Commands, host.Commands, identity.Commands, keys.Commands, label.Commands, movein.Commands, receipt.Commands, reference.Commands, result.Commands, service.Commands, sm.Commands, tenancy.Commands, top.Commands, topology.Commands,
}

func root(env *cli.Env) *cobra.Command {
	root := cli.Group("portcullis", "Admit attested hosts to InfiniBand partitions")
	root.Long = `Admit attested hosts to InfiniBand partitions.

Each setting of the connection is taken from the first of these that has it:
  --service, --ca and --token-file, or in its place --client-cert and --client-key
  PORTCULLIS_SERVICE, PORTCULLIS_CA, PORTCULLIS_TOKEN_FILE, PORTCULLIS_CLIENT_CERT and PORTCULLIS_CLIENT_KEY
  the context in use, of --context, PORTCULLIS_CONTEXT or "portcullis context use"; without one:
  service, ca, token_file, client_cert and client_key in ~/.config/portcullis/config.yaml
Without a file of a token or certificate, the session of "portcullis login" counts.
Commands that show the fabric and the subnet manager can also ask a subnet manager on this
machine: use --socket, PORTCULLIS_SOCKET or socket.

Exit codes: 0 done, 1 error, 2 wrong usage, 3 refused by a guard of the service or by the
policy for firmware, 4 not converged within the time of --timeout; for firmware 5 invalid, 6 not
signed, 7 not verifiable, as for isolation; for import 8 settings lost that were not accepted; for
apply --dry-run and fabric diff 1 a difference, 2 not compared.`
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Version = version.String()
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	env.Flags(root)
	for _, commands := range nouns {
		root.AddCommand(commands(env)...)
	}
	root.AddCommand(versionCommand(env))
	return root
}

func versionCommand(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this build", Args: cli.Operands(),
		RunE: func(*cobra.Command, []string) error {
			if !env.Tabular() {
				return env.Print(map[string]string{"version": version.Short()}, nil)
			}
			_, err := fmt.Fprintln(env.Out, "portcullis", version.String())
			return err
		},
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	"portcullis/cmd/internal/input"
	"portcullis/cmd/internal/version"
)

// app is what the commands of one invocation share.
type app struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	conn   connection
	client *client.Client // nil: not connected yet
	output format
	json   bool
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, output: formatTable}
	root := a.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	if errors.Is(err, errNo) {
		return exitError
	}
	if errors.Is(err, errGuard) {
		return exitRefused
	}
	if j, ok := errors.AsType[*judged](err); ok {
		return j.code
	}
	where := strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), "portcullis"), " ")
	if where != "" {
		where += ": "
	}
	fmt.Fprintf(stderr, "portcullis: %s%s\n", where, plainLines(input.Explain(err)))
	for _, line := range mistakes(err) {
		fmt.Fprintf(stderr, "portcullis:   %s\n", plain(line))
	}
	if hint := a.hintOf(err); hint != "" {
		fmt.Fprintf(stderr, "portcullis: hint: %s\n", plain(hint))
	}
	return exitCode(err)
}

func (a *app) root() *cobra.Command {
	root := group("portcullis", "Admit attested hosts to InfiniBand partitions")
	root.Long = `Admit attested hosts to InfiniBand partitions.

Each setting of the connection is taken from the first of these that has it:
  --service, --ca and --token-file
  PORTCULLIS_SERVICE, PORTCULLIS_CA and PORTCULLIS_TOKEN_FILE
  service, ca and token_file in ~/.config/portcullis/config.yaml
Commands that show the fabric and the subnet manager can also ask a subnet manager on this
machine: use --socket, PORTCULLIS_SOCKET or socket.

Exit codes: 0 done, 1 error, 2 wrong usage, 3 refused by a guard of the service or by the
policy for firmware, 4 not converged within the time of --timeout; for firmware 5 invalid, 6 not
signed, 7 not verifiable.`
	root.PersistentPreRun = func(*cobra.Command, []string) {
		if a.json {
			a.output = formatJSON
		}
	}
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Version = version.String()
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &usageError{msg: err.Error(), hint: c.CommandPath() + " --help names the options"}
	})
	f := root.PersistentFlags()
	f.VarP(&a.output, "output", "o", "output format: table, json or yaml")
	f.BoolVar(&a.json, "json", false, "short for --output json")
	f.StringVar(&a.conn.service, "service", "", "URL of the service, https://HOST:PORT")
	f.StringVar(&a.conn.socket, "socket", "", "unix socket of a subnet manager on this machine, instead of a service")
	f.StringVar(&a.conn.ca, "ca", "", "PEM file of the CA that issued the service's certificate")
	f.StringVar(&a.conn.tokenFile, "token-file", "", "file that holds the operator token")
	f.StringVar(&a.conn.configFile, "config", "", "configuration file (default ~/.config/portcullis/config.yaml)")
	root.AddCommand(a.hostCommand(), a.tenantCommand(), a.clusterCommand(), a.inventoryCommand(), a.referenceCommand(), a.lockCommand(), a.resultCommand(), a.authorityCommand(), a.eventsCommand(), a.auditCommand(), a.backupCommand(), a.restoreCommand(),
		a.admissionCommand(), a.clockCommand(), a.fabricCommand(), a.smCommand(), a.keysCommand(), a.pkeyCommand(), a.firmwareCommand(), a.madCommand(), a.nvconfigCommand(), a.topospecCommand(), a.replayCommand(), a.versionCommand())
	return root
}

// group is a noun: a command that only has verbs.
func group(name, short string, verbs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: name, Short: short, Args: cobra.ArbitraryArgs}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		hint := cmd.CommandPath() + " --help names them"
		if len(args) == 0 {
			return &usageError{msg: "a command is missing", hint: hint}
		}
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = "did you mean " + strings.Join(near, " or ") + "?"
		}
		return &usageError{msg: fmt.Sprintf("unknown command %q", args[0]), hint: hint}
	}
	c.SuggestionsMinimumDistance = 2
	c.AddCommand(verbs...)
	return c
}

// operands demands exactly the named operands; a last name that ends in "..."
// may be given more than once.
func operands(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		many := len(names) > 0 && strings.HasSuffix(names[len(names)-1], "...")
		switch {
		case len(args) < len(names):
			return &usageError{msg: names[len(args)] + " is missing", hint: "usage: " + cmd.UseLine()}
		case len(args) > len(names) && !many:
			return &usageError{msg: fmt.Sprintf("unexpected argument %q", args[len(names)]), hint: "usage: " + cmd.UseLine()}
		}
		return nil
	}
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this build", Args: operands(),
		RunE: func(*cobra.Command, []string) error {
			if a.output != formatTable {
				return a.print(map[string]string{"version": version.Short()}, nil)
			}
			_, err := fmt.Fprintln(a.stdout, "portcullis", version.String())
			return err
		},
	}
}

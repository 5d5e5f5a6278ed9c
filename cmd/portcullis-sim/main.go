// Command portcullis-sim is an InfiniBand fabric without hardware: it serves a
// simulated fabric to the clients of ibsim, generates netlists, plays attacks
// against the Subnet Manager, and writes the kernel's files about the adapters of a
// simulated host.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"portcullis/cmd/internal/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Exit codes.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// usageError is a mistake in how the program was called.
type usageError struct{ error }

// run is the program; it returns its exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:           "portcullis-sim",
		Short:         "Simulate an InfiniBand fabric",
		Long:          "portcullis-sim is an InfiniBand fabric without hardware. Clients of ibsim can attach\nto it: portcullisd, and with the umad2sim library infiniband-diags and OpenSM.",
		Version:       version.String(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q: want run, generate, drill or sysfs", args[0])}
			}
			return usageError{errors.New("want a command: run, generate, drill or sysfs")}
		},
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(runCommand(), generateCommand(), drillCommand(), sysfsCommand(), versionCommand())
	c, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "portcullis-sim: %v\n", err)
	var wrong usageError
	if errors.As(err, &wrong) {
		fmt.Fprintf(stderr, "portcullis-sim: hint: %s --help shows the options\n", c.CommandPath())
		return exitUsage
	}
	return exitError
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this build",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unexpected argument %q", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "portcullis-sim", version.String())
			return err
		},
	}
}

// one wants exactly one argument, and says what it is for.
func one(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usageError{fmt.Errorf("want %s, and nothing else, got %d arguments", what, len(args))}
		}
		return nil
	}
}

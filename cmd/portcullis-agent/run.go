package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"portcullis/agent"
	"portcullis/cmd/internal/version"
)

// app is one invocation.
type app struct {
	stdout, stderr io.Writer
	json           bool // --json
	machine        bool // progress goes to a machine, and so does the error that ends it
	settings       settings
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	a := &app{stdout: stdout, stderr: stderr, settings: settings{flags: agent.DefaultConfig(), standard: standardConfig}}
	root := a.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	a.report(cmd, err)
	return int(agent.ClassOf(err))
}

// report reports an error and how to correct it: lines for people, or one JSON object.
func (a *app) report(cmd *cobra.Command, err error) {
	hint := ""
	if e, ok := errors.AsType[*agent.Error](err); ok {
		hint = e.Hint
	}
	if a.json || a.machine {
		say := a.logger().With("exit_code", int(agent.ClassOf(err)))
		if hint != "" {
			say = say.With("hint", hint)
		}
		say.Error(err.Error())
		return
	}
	what := strings.TrimPrefix(cmd.CommandPath(), "portcullis-agent")
	if what = strings.TrimSpace(what); what != "" {
		what += ": "
	}
	for i, line := range strings.Split(err.Error(), "\n") {
		if i > 0 {
			what = "  "
		}
		fmt.Fprintf(a.stderr, "portcullis-agent: %s%s\n", what, plain(line))
	}
	if hint != "" {
		fmt.Fprintf(a.stderr, "portcullis-agent: hint: %s\n", plain(hint))
	}
}

// plain replaces what could move the cursor or hide text: some of it comes
// from devices and from the network.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// rootHelp has the exit codes, each with its meaning.
func rootHelp() string {
	var b strings.Builder
	b.WriteString("Attest this host and wait until its InfiniBand adapters are admitted.\n\nExit codes:\n")
	for _, e := range agent.Exits() {
		fmt.Fprintf(&b, "  %2d  %s\n", e.Code, e.Meaning)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: "portcullis-agent", Short: "Attest this host", Long: rootHelp(), Version: version.String(),
		SilenceErrors: true, SilenceUsage: true, Args: cobra.ArbitraryArgs,
	}
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return misuse(cmd, "a command is missing")
		}
		return misuse(cmd, "unknown command %q", args[0])
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return misuse(cmd, "%w", err) })
	root.PersistentFlags().BoolVar(&a.json, "json", false, "progress and results as JSON, also on a terminal")
	root.CompletionOptions.DisableDefaultCmd = true
	for _, v := range verbs {
		root.AddCommand(a.verbCommand(v))
	}
	root.AddCommand(a.verifyCommand(), a.hcaCommand(), a.statusCommand(), a.doctorCommand(), a.selinuxCommand(), a.versionCommand())
	return root
}

func misuse(cmd *cobra.Command, format string, args ...any) error {
	return &agent.Error{
		Class: agent.ClassUsage, Err: fmt.Errorf(format, args...), Hint: cmd.CommandPath() + " --help shows the options",
	}
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return misuse(cmd, "unexpected argument %q", args[0])
	}
	return nil
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this build", Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			if a.json {
				return a.print(map[string]string{"version": version.Short()})
			}
			_, err := fmt.Fprintln(a.stdout, "portcullis-agent", version.String())
			return err
		},
	}
}

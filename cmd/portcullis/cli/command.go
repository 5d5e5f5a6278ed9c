package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Group is a noun: a command that only has verbs.
func Group(name, short string, verbs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: name, Short: short, Args: cobra.ArbitraryArgs}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		hint := cmd.CommandPath() + " --help names them"
		if len(args) == 0 {
			return &UsageError{Msg: "a command is missing", Hint: hint}
		}
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = "did you mean " + strings.Join(near, " or ") + "?"
		}
		return &UsageError{Msg: fmt.Sprintf("unknown command %q", args[0]), Hint: hint}
	}
	c.SuggestionsMinimumDistance = 2
	c.AddCommand(verbs...)
	return c
}

// Operands demands exactly the named operands; a last name that ends in "..."
// may be given more than once.
func Operands(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		many := len(names) > 0 && strings.HasSuffix(names[len(names)-1], "...")
		switch {
		case len(args) < len(names):
			return &UsageError{Msg: names[len(args)] + " is missing", Hint: "usage: " + cmd.UseLine()}
		case len(args) > len(names) && !many:
			return &UsageError{Msg: fmt.Sprintf("unexpected argument %q", args[len(names)]), Hint: "usage: " + cmd.UseLine()}
		}
		return nil
	}
}

// OneOrTwo demands the first of the named operands, and takes the second.
func OneOrTwo(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			names = names[:1]
		}
		return Operands(names...)(cmd, args)
	}
}

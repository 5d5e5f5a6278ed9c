package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "portcullis/api/v1"
)

// choice is an option with few values.
type choice struct {
	v    *string
	from []string
}

// OneOf returns an option that is one of the values, and puts it into v.
func OneOf(v *string, values []string) pflag.Value { return &choice{v, values} }

// Set takes a value in any case.
func (c *choice) Set(s string) error {
	for _, v := range c.from {
		if strings.EqualFold(s, v) {
			*c.v = v
			return nil
		}
	}
	return fmt.Errorf("want %s", strings.Join(c.from, ", "))
}

func (c *choice) String() string { return *c.v }

// Type names the value in help texts.
func (c *choice) Type() string { return strings.Join(c.from, "|") }

// WaitFlags are the options of a command that can wait until its change is made.
type WaitFlags struct {
	Wait    bool
	Timeout time.Duration
}

// Register adds the options to a command; usage is the help text of --wait.
func (w *WaitFlags) Register(cmd *cobra.Command, usage string) {
	cmd.Flags().BoolVar(&w.Wait, "wait", false, usage)
	cmd.Flags().DurationVar(&w.Timeout, "timeout", 5*time.Minute, "how long --wait waits; then the exit code is 4")
}

// ReasonFlag adds the option for a reason that must be given.
func ReasonFlag(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "reason, for operators who read it later; it must be given")
}

// WordFlag adds the flag for the reason of an operator who approves a change. The author of the change wrote the reason for
// it.
func WordFlag(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "reason, for the audit log")
}

// WantReason refuses a reason without a word in it.
func WantReason(reason string) error {
	if strings.TrimSpace(reason) == "" {
		return &UsageError{Msg: "no --reason is given", Hint: "say in a few words why, for operators who read it later"}
	}
	return nil
}

// Confirm refuses a dangerous verb without --yes, after saying what it does.
func (env *Env) Confirm(yes bool, plan string) error {
	if yes {
		return nil
	}
	return &UsageError{Msg: "not done: " + plan, Hint: "add --yes to do it"}
}

// ConfirmMany is Confirm of a verb for several hosts, whose number has to be named. plans has a sentence of each.
func (env *Env) ConfirmMany(yes bool, number int, plans []string) error {
	if yes && number == len(plans) {
		return nil
	}
	for _, p := range plans {
		fmt.Fprintf(env.Err, "portcullis: %s\n", Plain(p))
	}
	what := fmt.Sprintf("not done: %d hosts are named", len(plans))
	if len(plans) == 1 {
		what = "not done: 1 host is named"
	}
	if number >= 0 && number != len(plans) {
		what += fmt.Sprintf(", not %d", number)
	}
	return &UsageError{Msg: what, Hint: fmt.Sprintf("add --yes --hosts %d to do it", len(plans))}
}

// CompleteHosts asks for the ids that begin with the typed text, and for nothing else of these hosts.
func (env *Env) CompleteHosts(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && !strings.Contains(cmd.Use, "HOST...") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, err := env.Connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	ids, err := c.Hosts().IDPage(cmd.Context(), v1.HostQuery{Prefix: typed})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// CompleteClusters completes up to so many operands: full names of clusters that the credential sees.
func (env *Env) CompleteClusters(operands int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= operands {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := env.Connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		clusters, err := c.Clusters().List(cmd.Context(), v1.ClusterQuery{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for i := range clusters {
			if strings.HasPrefix(clusters[i].Name, typed) {
				names = append(names, clusters[i].Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

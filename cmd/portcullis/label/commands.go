// Package label has the command that labels hosts, clusters and tenants.
package label

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	"portcullis/api/label"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

const long = `Set labels of a %[1]s (KEY=VALUE) and remove some (KEY-), all or none. Without any, or with
--list, show the labels that it has. To change the value of a label that is there takes --overwrite.

A key is [PREFIX/]NAME: a name of up to 63 letters, digits, "-", "_" and ".", and before it perhaps
a DNS name. A value is nothing, or as a name. A %[1]s has 32 labels at most. Labels are for finding
objects with --selector: they grant nothing, and nothing is decided by them.`

// Commands returns the noun of this package.
func Commands(env *cli.Env) []*cobra.Command {
	host := command(env, "host", func(c *client.Client) client.Labels { return c.Hosts().Labels() })
	host.ValidArgsFunction = env.CompleteHosts
	return []*cobra.Command{cli.Group("label", "Label hosts, clusters and tenants, to find them by selectors",
		host,
		command(env, "cluster", func(c *client.Client) client.Labels { return c.Clusters().Labels() }),
		command(env, "tenant", func(c *client.Client) client.Labels { return c.Tenants().Labels() }),
	)}
}

func command(env *cli.Env, kind string, of func(*client.Client) client.Labels) *cobra.Command {
	var overwrite, list bool
	operand := strings.ToUpper(kind)
	cmd := &cobra.Command{
		Use: kind + " " + operand + " [KEY=VALUE]... [KEY-]...", Short: "Set, remove and show labels of a " + kind,
		Long: fmt.Sprintf(long, kind), Example: "  portcullis label " + kind + " " + example(kind) + " env=prod example.com/owner=ada old-",
		Args: func(cmd *cobra.Command, args []string) error {
			return cli.Operands(operand)(cmd, args[:min(len(args), 1)])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			patch, err := parse(args[1:])
			if err != nil {
				return err
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			labels, err := of(c).Get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if len(patch) > 0 {
				if labels, err = change(cmd.Context(), of(c), kind, args[0], labels, patch, overwrite); err != nil {
					return err
				}
			}
			if len(patch) > 0 && !list && env.Tabular() {
				return env.Print(labels, func(w *cli.Columns) { w.Text("%s", kind+" "+args[0]+" labelled") })
			}
			return env.Print(labels, func(w *cli.Columns) {
				for _, key := range slices.Sorted(maps.Keys(labels.Labels)) {
					w.Text("%s", key+"="+labels.Labels[key])
				}
			})
		},
	}
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "change the value of labels that are there")
	cmd.Flags().BoolVar(&list, "list", false, "show the labels, after the change if there is one")
	return cmd
}

func example(kind string) string {
	if kind == "host" {
		return "node-17"
	}
	return "train"
}

// parse reads what is to be set and removed.
func parse(args []string) (label.Patch, error) {
	patch := label.Patch{}
	for _, arg := range args {
		key, value, sets := strings.Cut(arg, "=")
		to := &value
		if !sets {
			var removes bool
			if key, removes = strings.CutSuffix(arg, "-"); !removes {
				return nil, &cli.UsageError{Msg: fmt.Sprintf("%q neither sets nor removes a label", arg), Hint: "KEY=VALUE sets it, and KEY- removes it"}
			}
			to = nil
		}
		err := label.CheckKey(key)
		if err == nil && sets {
			err = label.CheckValue(value)
		}
		if err != nil {
			return nil, &cli.UsageError{Msg: err.Error(), Hint: "for example env=prod or example.com/owner=ada"}
		}
		if _, twice := patch[key]; twice {
			return nil, &cli.UsageError{Msg: "label " + key + " is named twice", Hint: "set it or remove it, once"}
		}
		patch[key] = to
	}
	return patch, nil
}

// change makes the change, if the labels are still those that were looked at.
func change(ctx context.Context, of client.Labels, kind, name string, has *v1.Labels, patch label.Patch, overwrite bool) (*v1.Labels, error) {
	for _, key := range slices.Sorted(maps.Keys(patch)) {
		to := patch[key]
		if is, there := has.Labels[key]; there && to != nil && *to != is && !overwrite {
			return nil, &cli.UsageError{Msg: fmt.Sprintf("label %s of %s %s is %q", key, kind, name, is), Hint: "add --overwrite to change it"}
		}
	}
	return of.Patch(client.IfMatch(ctx, has.Version), name, patch)
}

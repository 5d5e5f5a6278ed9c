package fabric

import (
	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

func fabricHealth(env *cli.Env) *cobra.Command {
	c := &cobra.Command{
		Use: "health", Short: "List ports and switches that are unhealthy or marked, and mark them", Args: cli.Operands(),
		Long: `List switch ports and switches that are unhealthy or that an operator marked.

PLACE is a switch port as SWITCH/PORT, or SWITCH for the whole switch. NODE/PORT of a
host means the switch port that it is cabled to. A mark survives restarts until it is
released.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			page, err := gather(c.Fabric().Health(cmd.Context(), v1.PageQuery{Limit: v1.MaxPage}))
			if err != nil {
				return err
			}
			return list(env, page, "nothing is unhealthy or marked", healthHeader, healthRow)
		},
	}
	c.AddCommand(
		healthMark(env, "mark", "Mark a port or switch as unhealthy; fabric.health.marked says what follows", v1.MarkUnhealthy, true),
		healthMark(env, "trust", "Mark a port or switch as healthy, whatever it does", v1.MarkHealthy, false),
		healthMark(env, "release", "Remove a mark and end a quarantine; the rules decide again", v1.MarkNone, false),
	)
	return c
}

var healthHeader = []string{"AT", "PLACE", "HEALTH", "ACTION", "REASON", "SINCE", "UNTIL"}

func healthRow(h *v1.FabricHealth) []string {
	health, until := h.Condition, "released"
	switch {
	case !h.Unhealthy:
		health = "trusted"
	case !h.Until.IsZero():
		until = cli.Stamp(h.Until)
	}
	return []string{h.At, h.Place.String(), health, h.Action, h.Reason, cli.Stamp(h.Since), until}
}

// healthMark is a command that marks a place.
func healthMark(env *cli.Env, name, short, mark string, needsReason bool) *cobra.Command {
	m := v1.HealthMark{Mark: mark}
	cmd := &cobra.Command{
		Use: name + " PLACE", Short: short, Args: cli.Operands("PLACE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if needsReason && m.Reason == "" {
				return &cli.UsageError{Msg: "no --reason is given", Hint: "say in a few words why, for operators who find the port closed"}
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			m.Place = args[0]
			h, err := c.Fabric().MarkHealth(cmd.Context(), m)
			if err != nil {
				return err
			}
			return env.Print(h, func(w *cli.Columns) {
				if !h.Unhealthy && h.Mark == "" {
					w.Text("%s is no longer unhealthy or marked", h.At)
					return
				}
				w.Row(healthHeader...)
				w.Row(healthRow(h)...)
			})
		},
	}
	if mark != v1.MarkNone {
		cmd.Flags().StringVar(&m.Reason, "reason", "", "reason, for operators who read it later")
	}
	return cmd
}

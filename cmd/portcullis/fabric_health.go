package main

import (
	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
)

func (a *app) fabricHealth() *cobra.Command {
	c := &cobra.Command{
		Use: "health", Short: "List ports and switches that are unhealthy or marked, and mark them", Args: operands(),
		Long: `List switch ports and switches that are unhealthy or that an operator marked.

PLACE is a switch port as SWITCH/PORT, or SWITCH for the whole switch. NODE/PORT of a
host means the switch port that it is cabled to. A mark survives restarts until it is
released.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			page, err := gather(c.Health(cmd.Context(), v1.PageQuery{Limit: v1.MaxPage}))
			if err != nil {
				return err
			}
			return list(a, page, "nothing is unhealthy or marked", healthHeader, healthRow)
		},
	}
	c.AddCommand(
		a.healthMark("mark", "Mark a port or switch as unhealthy; fabric.health.marked says what follows", v1.MarkUnhealthy, true),
		a.healthMark("trust", "Mark a port or switch as healthy, whatever it does", v1.MarkHealthy, false),
		a.healthMark("release", "Remove a mark and end a quarantine; the rules decide again", v1.MarkNone, false),
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
		until = stamp(h.Until)
	}
	return []string{h.At, h.Place.String(), health, h.Action, h.Reason, stamp(h.Since), until}
}

// healthMark is a command that marks a place.
func (a *app) healthMark(name, short, mark string, needsReason bool) *cobra.Command {
	m := v1.HealthMark{Mark: mark}
	cmd := &cobra.Command{
		Use: name + " PLACE", Short: short, Args: operands("PLACE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if needsReason && m.Reason == "" {
				return &usageError{msg: "no --reason is given", hint: "say in a few words why, for operators who find the port closed"}
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			m.Place = args[0]
			h, err := c.MarkHealth(cmd.Context(), m)
			if err != nil {
				return err
			}
			return a.print(h, func(w *columns) {
				if !h.Unhealthy && h.Mark == "" {
					w.text("%s is no longer unhealthy or marked", h.At)
					return
				}
				w.row(healthHeader...)
				w.row(healthRow(h)...)
			})
		},
	}
	if mark != v1.MarkNone {
		cmd.Flags().StringVar(&m.Reason, "reason", "", "reason, for operators who read it later")
	}
	return cmd
}

package main

import (
	"time"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
)

func (a *app) clockCommand() *cobra.Command {
	return group("clock", "See and set the time that decisions rest on, which does not go back", a.clockShow(), a.clockSet())
}

func (a *app) clockShow() *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Show how the clock of the service's machine stands to the highest time seen", Args: operands(),
		Long: `Show how the clock of the service's machine stands to the highest time that any instance has
seen and recorded. While the clock is behind that, or another instance contradicts it, nothing new is granted;
removals go on.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			s, err := c.Clock(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(s, func(w *columns) { showClock(w, s) })
		},
	}
}

func (a *app) clockSet() *cobra.Command {
	var reason, is string
	c := &cobra.Command{
		Use: "set --reason WHY", Short: "Have the recorded time be what the clock of the service's machine shows", Args: operands(),
		Long: `Have the recorded time be what the clock of the service's machine shows, for all instances. Do this
only when the recorded time is the wrong one, and after the clock was corrected. What was over by the
recorded time alone, such as a waiver, is not over any more: end that first. The clock of this machine, or --time,
says what time it is; the service refuses where its own differs by more than a minute.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if reason == "" {
				return &usageError{msg: "--reason is needed", hint: "usage: " + cmd.UseLine()}
			}
			now := time.Now().UTC()
			if is != "" {
				var err error
				if now, err = time.Parse(time.RFC3339, is); err != nil {
					return &usageError{msg: "--time " + is + ": want a time such as 2026-11-27T12:00:00Z", hint: "usage: " + cmd.UseLine()}
				}
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			s, err := c.SetClock(cmd.Context(), v1.ClockSet{Time: now, Reason: reason})
			if err != nil {
				return err
			}
			return a.print(s, func(w *columns) { showClock(w, s) })
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for the audit log")
	c.Flags().StringVar(&is, "time", "", "what time it is (default: what this machine shows)")
	return c
}

func showClock(w *columns, c *v1.Clock) {
	w.row("STATE", "SINCE", "TIME", "MACHINE", "OFF", "HIGHEST", "BY")
	w.row(c.State, stamp(c.Since), stamp(c.Time), stamp(c.Machine), c.Off, stamp(c.Highest), c.By)
}

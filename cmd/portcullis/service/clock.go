package service

import (
	"time"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

func clockCommand(env *cli.Env) *cobra.Command {
	return cli.Group("clock", "Show and set the recorded time, which decisions use and which never goes back", clockShow(env), clockSet(env))
}

func clockShow(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Compare the clock of the service's machine with the recorded time", Args: cli.Operands(),
		Long: `Compare the clock of the service's machine with the recorded time, which is the highest time
that any instance has seen. Nothing new is granted while the clock is behind it, or while
another instance contradicts the clock. Removals go on.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			s, err := c.Clock().Get(cmd.Context())
			if err != nil {
				return err
			}
			return env.Print(s, func(w *cli.Columns) { showClock(w, s) })
		},
	}
}

func clockSet(env *cli.Env) *cobra.Command {
	var reason, is string
	c := &cobra.Command{
		Use: "set --reason WHY", Short: "Set the recorded time to the clock of the service's machine", Args: cli.Operands(),
		Long: `Set the recorded time to the clock of the service's machine, for all instances. Do this only
when the recorded time is wrong, and after the clock was corrected. What ended only by the
recorded time, such as a waiver, is in force again: end it first.

The clock of this machine, or --time, confirms the time. The service refuses if its own clock
differs by more than a minute.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if reason == "" {
				return &cli.UsageError{Msg: "--reason is needed", Hint: "usage: " + cmd.UseLine()}
			}
			now := time.Now().UTC()
			if is != "" {
				var err error
				if now, err = time.Parse(time.RFC3339, is); err != nil {
					return &cli.UsageError{Msg: "--time " + is + ": want a time such as 2026-11-27T12:00:00Z", Hint: "usage: " + cmd.UseLine()}
				}
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			s, err := c.Clock().Set(cmd.Context(), v1.ClockSet{Time: now, Reason: reason})
			if err != nil {
				return err
			}
			return env.Print(s, func(w *cli.Columns) { showClock(w, s) })
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "reason, for the audit log")
	c.Flags().StringVar(&is, "time", "", "the present time (default: the clock of this machine)")
	return c
}

func showClock(w *cli.Columns, c *v1.Clock) {
	w.Row("STATE", "SINCE", "TIME", "MACHINE", "OFF", "HIGHEST", "BY")
	w.Row(c.State, cli.Stamp(c.Since), cli.Stamp(c.Time), cli.Stamp(c.Machine), c.Off, cli.Stamp(c.Highest), c.By)
}

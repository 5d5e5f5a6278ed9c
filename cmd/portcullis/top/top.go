// Package top has the command that shows at a glance what hosts, admission, the proof of isolation and attackers do.
package top

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	"portcullis/cmd/portcullis/cli"
	"portcullis/cmd/portcullis/screen"
)

const (
	// defaultRefresh is how often the service is asked.
	defaultRefresh = 5 * time.Second
	// leastRefresh bounds what the service is asked: all hosts are listed each time.
	leastRefresh = time.Second
	// plainWidth is that of a frame that is not on a terminal.
	plainWidth = 100
	// askLimit is how long the service has for all answers of a frame.
	askLimit = 30 * time.Second
)

// Commands returns the nouns of this package.
func Commands(env *cli.Env) []*cobra.Command { return []*cobra.Command{topCommand(env)} }

func topCommand(env *cli.Env) *cobra.Command {
	once, refresh := false, defaultRefresh
	cmd := &cobra.Command{
		Use: "top", Short: "Watch hosts, admission, isolation and violations", Args: cli.Operands(),
		Long: `Watch hosts by phase and those that wait for admission, the Subnet Manager, the proof of isolation,
brakes, and which violations and events happened last. What the credential may not see is left out.
q quits.

Without a terminal, and with --once or --json, the present state is printed once. "portcullis sm top"
watches the Subnet Manager at work.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if refresh < leastRefresh {
				return &cli.UsageError{Msg: fmt.Sprintf("--interval %v is too short", refresh), Hint: "want 1s or more"}
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			s := &sample{}
			if err := s.next(cmd.Context(), c, time.Now()); err != nil {
				return err
			}
			in, inOK := env.In.(*os.File)
			out, outOK := env.Out.(*os.File)
			if !once && env.Tabular() && inOK && outOK && cli.IsTerminal(in) && cli.IsTerminal(out) {
				return watch(cmd.Context(), c, s, in, out, refresh)
			}
			return env.Print(s, func(w *cli.Columns) {
				for _, l := range frame(s, plainWidth, 0) {
					w.Text("%s", l.Text)
				}
			})
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "print the present state once")
	cmd.Flags().DurationVar(&refresh, "interval", defaultRefresh, "how often to ask and draw")
	return cmd
}

func watch(ctx context.Context, c *client.Client, s *sample, in, out *os.File, refresh time.Duration) error {
	return screen.Watch(ctx, in, out, refresh, func(width, height int) []screen.Line { return frame(s, width, height) }, func(ctx context.Context) {
		if err := s.next(ctx, c, time.Now()); err != nil && ctx.Err() == nil {
			s.Lost = err.Error()
		}
	})
}

package sm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
	"portcullis/cmd/portcullis/screen"
)

const (
	// defaultRefresh is how often the screen is drawn.
	defaultRefresh = 300 * time.Millisecond
	// leastRefresh bounds what the subnet manager's process is asked.
	leastRefresh = 100 * time.Millisecond
	// keptRates is how many values the small bars show at most.
	keptRates = 60
	// plainWidth is that of a frame that is not on a terminal.
	plainWidth = 100
)

func smTop(env *cli.Env) *cobra.Command {
	once, refresh := false, defaultRefresh
	cmd := &cobra.Command{
		Use: "top", Short: "Watch the subnet manager at work", Args: cli.Operands(),
		Long: `Watch the subnet manager at work: what it has found, what it requests and how fast, what waits,
what is wrong, and what happened last. q quits.

Without a terminal, and with --once or --json, the present state is printed once.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if refresh < leastRefresh {
				return &cli.UsageError{Msg: fmt.Sprintf("--interval %v is too short", refresh), Hint: "want 100ms or more"}
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			in, inOK := env.In.(*os.File)
			out, outOK := env.Out.(*os.File)
			if !once && env.Tabular() && inOK && outOK && cli.IsTerminal(in) && cli.IsTerminal(out) {
				return watchTop(cmd.Context(), c, in, out, refresh)
			}
			p, err := c.SM().Progress(cmd.Context())
			if err != nil {
				return err
			}
			return env.Print(p, func(w *cli.Columns) {
				for _, l := range frame(&sample{now: p}, plainWidth, 0) {
					w.Text("%s", l.Text)
				}
			})
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "print the present state once")
	cmd.Flags().DurationVar(&refresh, "interval", defaultRefresh, "how often to draw")
	return cmd
}

// watchTop draws until q is pressed or ctx ends. The terminal is then as it
// was.
func watchTop(ctx context.Context, c *client.Client, in, out *os.File, refresh time.Duration) error {
	s := &sample{}
	if err := s.next(ctx, c); err != nil {
		return err
	}
	return screen.Watch(ctx, in, out, refresh, func(width, height int) []screen.Line { return frame(s, width, height) }, func(ctx context.Context) {
		if err := s.next(ctx, c); err != nil && ctx.Err() == nil {
			s.lost = err.Error()
		}
	})
}

// next takes the next report. A subnet manager that has not seen the fabric yet
// is waited for.
func (s *sample) next(ctx context.Context, c *client.Client) error {
	p, err := c.SM().Progress(ctx)
	if problem, ok := errors.AsType[*v1.Problem](err); ok && problem.Status == http.StatusServiceUnavailable && problem.Code != v1.CodeSMElsewhere {
		if s.now == nil {
			now := time.Now()
			s.now = &v1.SMProgress{State: "waiting", Phase: "nothing", Now: now, Started: now}
		}
		s.lost = problem.Detail
		return nil
	}
	if err != nil {
		return err
	}
	s.before, s.now, s.lost = s.now, p, ""
	if s.before != nil && s.before.Observed.IsZero() {
		s.before = nil
	}
	s.rates = append(s.rates, rate(s.now, s.before, func(p *v1.SMProgress) uint64 { return p.Sent }))
	s.rates = s.rates[max(0, len(s.rates)-keptRates):]
	return nil
}

package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

// reconnect is the pause before a broken watch is opened again.
const reconnect = time.Second

// lastLook bounds a request for a host after the time limit.
const lastLook = 5 * time.Second

func hostWait(env *cli.Env) *cobra.Command {
	var phase string
	w := cli.WaitFlags{Wait: true}
	cmd := &cobra.Command{
		Use: "wait HOST...", Short: "Wait until hosts are in a phase", Args: cli.Operands("HOST..."),
		Long: `Wait until hosts are in a phase.

` + rangesHelp,
		ValidArgsFunction: env.CompleteHosts,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch v1.Phase(phase) {
			case v1.PhaseQuarantined, v1.PhaseAwaiting, v1.PhaseVerified, v1.PhaseGranting, v1.PhaseAdmitted, v1.PhaseReleasing:
			default:
				return &cli.UsageError{
					Msg:  fmt.Sprintf("--for %q: no such phase", phase),
					Hint: "want quarantined, awaiting, verified, granting, admitted or releasing",
				}
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			ids, err := expand(args)
			if err != nil {
				return err
			}
			return each(cmd.Context(), env, c, ids, change{phase, c.Hosts().Get, w, v1.Phase(phase)})
		},
	}
	cmd.Flags().StringVar(&phase, "for", string(v1.PhaseAdmitted), "the phase to wait for")
	cmd.Flags().DurationVar(&w.Timeout, "timeout", 5*time.Minute, "how long to wait; then the exit code is 4")
	return cmd
}

// afterChange prints where a host stands, after waiting for phase when asked.
func afterChange(ctx context.Context, env *cli.Env, c *client.Client, h *v1.Host, w cli.WaitFlags, phase v1.Phase) error {
	if w.Wait {
		within, cancel := context.WithTimeout(ctx, w.Timeout)
		defer cancel()
		var err error
		if h, err = WaitFor(ctx, within, env, c, h, w.Timeout, phase); err != nil {
			return err
		}
	}
	notRecorded(env, h)
	return env.Print(h, func(t *cli.Columns) { changed(t, h) })
}

// notRecorded says that a change waits for the store.
func notRecorded(env *cli.Env, h *v1.Host) {
	for _, g := range h.Status.Guards {
		if g.Name == v1.GuardRecorded && !g.Met {
			fmt.Fprintf(env.Err, "portcullis: %s\n", cli.Plain(g.Detail))
		}
	}
}

// changed writes where hosts stand.
func changed(t *cli.Columns, hosts ...*v1.Host) {
	t.Row("HOST", "TENANT", "CLUSTER", "PHASE", "P_KEY")
	for _, h := range hosts {
		t.Row(h.ID, h.Tenant, h.Cluster, string(h.Status.Phase), cli.PKey(h.Status.PKey))
	}
}

// WaitFor follows a host until it is in phase and returns it then. It reports each change of phase on standard error. If a
// watch breaks, because the service restarts for example, it is opened again. It ends with within, which ends timeout after the command
// began to wait; a host of which nothing was seen by then is asked for once, for at most lastLook.
func WaitFor(ctx, within context.Context, env *cli.Env, c *client.Client, h *v1.Host, timeout time.Duration, phase v1.Phase) (*v1.Host, error) {
	told := v1.Phase("")
	for within.Err() == nil {
		for next, err := range c.Hosts().Watch(within, h.ID) {
			if p, ok := errors.AsType[*v1.Problem](err); ok && p.Status < 500 {
				return nil, err
			}
			if err != nil {
				break
			}
			h = next
			if h.Status.Phase != told {
				told = h.Status.Phase
				fmt.Fprintf(env.Err, "portcullis: host %s: %s\n", cli.Plain(h.ID), cli.Plain(string(told)))
			}
			if told == phase {
				return h, nil
			}
		}
		select {
		case <-within.Done():
		case <-time.After(reconnect):
		}
	}
	if errors.Is(within.Err(), context.Canceled) {
		return nil, fmt.Errorf("stopped waiting for host %s", h.ID)
	}
	if told == "" {
		look, cancel := context.WithTimeout(ctx, lastLook)
		defer cancel()
		if now, err := c.Hosts().Get(look, h.ID); err == nil {
			h = now
		}
	}
	if h.Status.Phase == phase {
		return h, nil
	}
	return nil, timedOut(h, timeout, phase)
}

func timedOut(h *v1.Host, timeout time.Duration, phase v1.Phase) error {
	var missing []string
	for _, g := range h.Status.Guards {
		if !g.Met {
			missing = append(missing, g.Text())
		}
	}
	msg := fmt.Sprintf("host %s is %s, not %s, after %v", h.ID, h.Status.Phase, phase, timeout)
	if len(missing) > 0 {
		msg += ": " + strings.Join(missing, "; ")
	}
	return &cli.NotConverged{Msg: msg, Hint: "portcullis host show " + h.ID + " shows more; the service continues to try"}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
)

// reconnect is the pause before a broken watch is opened again.
const reconnect = time.Second

type waitFlags struct {
	wait    bool
	timeout time.Duration
}

func (w *waitFlags) register(cmd *cobra.Command, usage string) {
	cmd.Flags().BoolVar(&w.wait, "wait", false, usage)
	cmd.Flags().DurationVar(&w.timeout, "timeout", 5*time.Minute, "how long --wait waits; then the exit code is 4")
}

func (a *app) hostWait() *cobra.Command {
	var phase string
	w := waitFlags{wait: true}
	cmd := &cobra.Command{
		Use: "wait HOST", Short: "Wait until a host is in a phase", Args: operands("HOST"),
		ValidArgsFunction: a.completeHosts,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch v1.Phase(phase) {
			case v1.PhaseQuarantined, v1.PhaseAwaiting, v1.PhaseVerified, v1.PhaseGranting, v1.PhaseAdmitted, v1.PhaseReleasing:
			default:
				return &usageError{
					msg:  fmt.Sprintf("--for %q: no such phase", phase),
					hint: "want quarantined, awaiting, verified, granting, admitted or releasing",
				}
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			h, err := c.Host(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.afterChange(cmd.Context(), c, h, w, v1.Phase(phase))
		},
	}
	cmd.Flags().StringVar(&phase, "for", string(v1.PhaseAdmitted), "the phase to wait for")
	cmd.Flags().DurationVar(&w.timeout, "timeout", 5*time.Minute, "how long to wait; then the exit code is 4")
	return cmd
}

// afterChange prints where a host stands, after waiting for phase when asked.
func (a *app) afterChange(ctx context.Context, c *client.Client, h *v1.Host, w waitFlags, phase v1.Phase) error {
	if w.wait {
		var err error
		if h, err = a.waitFor(ctx, c, h, w.timeout, phase); err != nil {
			return err
		}
	}
	for _, g := range h.Status.Guards {
		if g.Name == v1.GuardRecorded && !g.Met {
			fmt.Fprintf(a.stderr, "portcullis: %s\n", plain(g.Detail))
		}
	}
	return a.print(h, func(t *columns) {
		t.row("HOST", "TENANT", "CLUSTER", "PHASE", "P_KEY")
		t.row(h.ID, h.Tenant, h.Cluster, string(h.Status.Phase), pkey(h.Status.PKey))
	})
}

// waitFor follows a host until it is in phase and returns it then. It reports each change of phase on standard error. If a
// watch breaks, because the service restarts for example, it is opened again.
func (a *app) waitFor(ctx context.Context, c *client.Client, h *v1.Host, timeout time.Duration, phase v1.Phase) (*v1.Host, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	told := v1.Phase("")
	for {
		for next, err := range c.Watch(ctx, h.ID) {
			if p, ok := errors.AsType[*v1.Problem](err); ok && p.Status < 500 {
				return nil, err
			}
			if err != nil {
				break
			}
			h = next
			if h.Status.Phase != told {
				told = h.Status.Phase
				fmt.Fprintf(a.stderr, "portcullis: host %s: %s\n", plain(h.ID), plain(string(told)))
			}
			if told == phase {
				return h, nil
			}
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil, fmt.Errorf("stopped waiting for host %s", h.ID)
			}
			return nil, timedOut(h, timeout, phase)
		case <-time.After(reconnect):
		}
	}
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
	return &notConverged{msg: msg, hint: "portcullis host show " + h.ID + " shows more; the service continues to try"}
}

package agent

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	v1 "portcullis/api/v1"
)

const (
	pollFirst = 200 * time.Millisecond
	pollMost  = 5 * time.Second
)

// await polls the host's status until the host is admitted. first is the phase that the service reported with the
// acceptance.
func (r *run) await(ctx context.Context, c *ownStatus, first v1.Phase) error {
	defer c.close()
	r.phase = first
	wait, why := pollFirst, ""
	for {
		h, err := c.read(ctx)
		switch {
		case err == nil:
			done, err := r.judge(h, &why)
			if done || err != nil {
				return err
			}
		case isTransient(err):
			if ctx.Err() == nil {
				r.log.Warn("no status from "+r.config.Service, "error", err)
			}
		default:
			return statusRefused(err, r.config)
		}
		if !sleep(ctx, wait) {
			return failf(ClassTimeout, "portcullis host show "+r.config.Host+" shows what it waits for; run the agent again to continue waiting",
				"host %s is %s, not admitted in %s: %s", r.config.Host, r.phase, r.config.Timeout, orNothing(why))
		}
		wait = min(wait*3/2, pollMost)
	}
}

func orNothing(why string) string {
	if why == "" {
		return "no status was read"
	}
	return why
}

// judge looks at one status and reports whether the host is admitted.
func (r *run) judge(h *v1.Host, why *string) (done bool, err error) {
	if h.Status.Phase != r.phase {
		r.log.Info("phase changed", "from", r.phase, "to", h.Status.Phase)
	}
	r.phase = h.Status.Phase
	switch r.phase {
	case v1.PhaseAdmitted:
		r.log.Info("admitted", "host", h.ID, "cluster", h.Cluster, "p_key", h.Status.PKey)
		r.notify.Notify("STATUS=admitted to " + h.Cluster)
		return true, nil
	case v1.PhaseVerified, v1.PhaseGranting:
		if sealedGuard(h) == unmetYet {
			return false, failf(ClassReboot, rebootHint, "host %s was handed over in this boot, and the service has no record of it", h.ID)
		}
		if w := unmet(h); w != *why {
			*why = w
			r.say("waiting: " + w)
		}
		return false, nil
	default:
		return false, Withdrawn(h)
	}
}

// unmet says which conditions of admission are open.
func unmet(h *v1.Host) string {
	var open []string
	for _, g := range h.Status.Guards {
		if !g.Met {
			open = append(open, strings.TrimSuffix(g.Name+": "+g.Detail, ": "))
		}
	}
	if len(open) == 0 {
		return "the fabric is being programmed"
	}
	return strings.Join(open, "; ")
}

// statusRefused is the end of waiting: the host was handed over, so that nothing more
// can be attested in this boot.
func statusRefused(err error, c *Config) error {
	if p, ok := errors.AsType[*v1.Problem](err); ok && (p.Status == http.StatusUnauthorized || p.Status == http.StatusForbidden) {
		return failf(ClassReboot, "check that the host is assigned, and that only one agent runs for it; then "+rebootHint,
			"the service no longer knows this run of host %s: it was released, or a newer session replaced it: %w", c.Host, p)
	}
	return explain(err, c)
}

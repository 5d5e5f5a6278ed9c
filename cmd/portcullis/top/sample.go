package top

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
)

const (
	// mostRows bounds each list of a sample.
	mostRows = 50
	// recently is how far back admissions are counted, and events listed.
	recently = 10 * time.Minute
)

// sample is what a frame shows. A part that the credential may not see, or that there is not, is nil.
type sample struct {
	Time       time.Time            `json:"time"`
	Hosts      *hosts               `json:"hosts,omitempty"`
	Manager    *v1.SM               `json:"sm,omitempty"`
	Isolation  *v1.IsolationKept    `json:"isolation,omitempty"`
	Brakes     *v1.Brakes           `json:"brakes,omitempty"`
	Violations []v1.FabricViolation `json:"violations,omitempty"` // the last first
	Events     []v1.Event           `json:"events,omitempty"`     // the last first
	Lost       string               `json:"-"`                    // why there is no newer one; empty: there is
}

// hosts counts hosts.
type hosts struct {
	Total    int              `json:"total"`
	Phases   map[v1.Phase]int `json:"phases"`
	Admitted int              `json:"admitted_recently"` // in the last 10 minutes
	Waiting  []v1.HostSummary `json:"waiting"`           // that are assigned and not admitted, or leave, the longest first
	More     int              `json:"waiting_more"`      // that are not in Waiting
}

// next asks the service again. An error means that there is no newer sample; the old one stays.
func (s *sample) next(ctx context.Context, c *client.Client, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	n := sample{Time: now}
	for _, part := range []func() error{
		func() error {
			list, err := c.Hosts().Summaries(ctx, v1.HostQuery{})
			if err == nil {
				n.Hosts = count(list, now)
			}
			return err
		},
		func() (err error) { n.Manager, err = c.SM().Get(ctx); return err },
		func() (err error) { n.Isolation, err = c.LastIsolation(ctx); return err },
		func() (err error) { n.Brakes, err = c.Brakes().Get(ctx); return err },
		func() (err error) { n.Violations, err = violations(ctx, c); return err },
		func() error {
			list, err := c.Audit().Events(ctx, v1.EventQuery{Since: now.Add(-recently)})
			if err == nil {
				n.Events = list.Items[:min(len(list.Items), mostRows)]
			}
			return err
		},
	} {
		if err := part(); err != nil && !hidden(err) {
			return err
		}
	}
	*s = n
	return nil
}

// hidden reports whether a part is left out: the credential may not see it, it is not there, or this process cannot say.
func hidden(err error) bool {
	p, ok := errors.AsType[*v1.Problem](err)
	return ok && (p.Status == http.StatusForbidden || p.Status == http.StatusNotFound || p.Status == http.StatusServiceUnavailable)
}

// count counts hosts, and lists those that wait.
func count(list []v1.HostSummary, now time.Time) *hosts {
	h := &hosts{Total: len(list), Phases: map[v1.Phase]int{}, Waiting: []v1.HostSummary{}}
	for i := range list {
		p := list[i].Phase
		h.Phases[p]++
		switch p {
		case v1.PhaseAdmitted:
			if now.Sub(list[i].Since) < recently {
				h.Admitted++
			}
		case v1.PhaseAwaiting, v1.PhaseVerified, v1.PhaseGranting, v1.PhaseReleasing:
			h.Waiting = append(h.Waiting, list[i])
		case v1.PhaseQuarantined: // nothing is about to happen to it
		}
	}
	slices.SortFunc(h.Waiting, func(a, b v1.HostSummary) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
	h.More = max(0, len(h.Waiting)-mostRows)
	h.Waiting = h.Waiting[:len(h.Waiting)-h.More]
	return h
}

// violations returns the newest ones.
func violations(ctx context.Context, c *client.Client) ([]v1.FabricViolation, error) {
	var out []v1.FabricViolation
	for page, err := range c.Fabric().Violations(ctx, v1.ViolationQuery{}) {
		if err != nil {
			return nil, err
		}
		out = append(out, page.Items...)
		slices.SortFunc(out, func(a, b v1.FabricViolation) int { return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(b.ID, a.ID)) })
		out = out[:min(len(out), mostRows)]
	}
	return out, nil
}

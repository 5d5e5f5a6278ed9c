package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
	"portcullis/cmd/portcullis/host"
	"portcullis/fabricsm/ib"
)

// Results of a change.
const (
	resultDone    = "done"
	resultFailed  = "failed"
	resultNotDone = "not done"
)

// outcome is what became of a change.
type outcome struct {
	Verb   string `json:"verb"`
	Object string `json:"object"`
	Detail string `json:"detail"`
	Result string `json:"result"` // done, failed or not done
	Why    string `json:"why,omitempty"`
}

// report is what became of a plan.
type report struct {
	Changes []outcome     `json:"changes"`
	Kept    []v1.PlanNote `json:"kept,omitempty"`
	Done    int           `json:"done"`
	Failed  int           `json:"failed"`
	NotDone int           `json:"not_done"`
}

// made is what an object got that the run created.
type made struct {
	version string
	key     ib.PKey // of a cluster
}

// run makes the changes of a plan, one after the other.
type run struct {
	env     *cli.Env
	c       *client.Client
	timeout time.Duration
	failed  map[string]string // key: why it was not completed
	made    map[string]made   // by object
}

// all makes all changes that nothing stops. It returns the first error.
func (r *run) all(ctx context.Context, p *v1.Plan) (*report, error) {
	out := &report{Changes: []outcome{}, Kept: p.Kept}
	within, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	var first error
	for i := range p.Changes {
		c := &p.Changes[i]
		o := outcome{Verb: c.Verb, Object: c.Object, Detail: c.Detail, Result: resultDone}
		if o.Why = r.stopped(ctx, c); o.Why != "" {
			o.Result = resultNotDone
			out.NotDone++
		} else if err := r.change(ctx, within, c); err != nil {
			o.Result, o.Why = resultFailed, err.Error()
			if out.Failed++; first == nil {
				first = err
			}
		} else {
			out.Done++
		}
		if o.Result != resultDone {
			for _, k := range c.Keys {
				r.failed[k] = fmt.Sprintf("%s of %s is not done", c.Verb, c.Object)
			}
		}
		out.Changes = append(out.Changes, o)
	}
	switch {
	case first != nil:
		return out, fmt.Errorf("%d of %s failed, %d were not begun, %d are done; running the command again continues; the first: %w",
			out.Failed, cli.Count(len(out.Changes), "change"), out.NotDone, out.Done, first)
	case out.NotDone > 0:
		return out, fmt.Errorf("stopped: %d of %s were not begun; running the command again continues", out.NotDone, cli.Count(len(out.Changes), "change"))
	default:
		return out, nil
	}
}

// stopped says why a change is not begun; "" if it is.
func (r *run) stopped(ctx context.Context, c *v1.PlannedChange) string {
	if ctx.Err() != nil {
		return "stopped before the service was asked"
	}
	for _, k := range c.After {
		if why := r.failed[k]; why != "" {
			return why
		}
	}
	return ""
}

// change sends the request of one change, for the version that the plan found or the run created. A change without a version is
// sent for no other: it is of an object that this run has made.
func (r *run) change(ctx, within context.Context, c *v1.PlannedChange) error {
	version := c.Version
	if version == "" {
		version = r.made[c.Object].version
	}
	meant := client.IfMatch(ctx, version)
	t, cl := r.c.Tenants(), r.c.Clusters()
	var err error
	switch {
	case c.Verb == v1.PlanStopUse:
		_, err = cl.StopUse(meant, c.Name, c.Shared)
	case c.Verb == v1.PlanRelease:
		_, err = r.c.Hosts().Release(meant, c.Name)
	case c.Verb == v1.PlanDeleteCluster:
		err = cl.Delete(meant, c.Name)
	case c.Verb == v1.PlanDeleteTenant:
		err = t.Delete(meant, c.Name)
	case c.Verb == v1.PlanCreateTenant && c.Tenant != nil:
		var tenant *v1.Tenant
		if tenant, err = t.Create(ctx, *c.Tenant); err == nil {
			r.made[c.Object] = made{version: tenant.Version}
		}
	case c.Verb == v1.PlanSetQuota && c.Quota != nil:
		_, err = t.SetQuota(meant, c.Name, *c.Quota)
	case c.Verb == v1.PlanCreateCluster && c.Cluster != nil:
		var cluster *v1.Cluster
		if cluster, err = cl.Create(ctx, *c.Cluster); err == nil {
			r.made[c.Object] = made{cluster.Version, cluster.PKey}
		}
	case c.Verb == v1.PlanUse && c.Use != nil:
		_, err = cl.Use(meant, c.Name, c.Shared, *c.Use)
	case c.Verb == v1.PlanAssign && c.Assignment != nil:
		err = r.assign(ctx, within, c, version)
	case c.Verb == v1.PlanLabel && len(c.Labels) > 0:
		err = r.label(meant, c)
	default:
		err = fmt.Errorf("the service plans a change %q that this command does not know; use the release of the service", c.Verb)
	}
	return err
}

// label sets labels of an object.
func (r *run) label(meant context.Context, c *v1.PlannedChange) error {
	of := r.c.Hosts().Labels()
	switch kind, _, _ := strings.Cut(c.Object, "/"); kind {
	case "tenant":
		of = r.c.Tenants().Labels()
	case "cluster":
		of = r.c.Clusters().Labels()
	}
	patch := make(map[string]*string, len(c.Labels))
	for key, value := range c.Labels {
		patch[key] = &value
	}
	_, err := of.Patch(meant, c.Name, patch)
	return err
}

// assign assigns a host, after waiting until it is proven that it left its last cluster.
func (r *run) assign(ctx, within context.Context, c *v1.PlannedChange, version string) error {
	a := *c.Assignment
	if m, ok := r.made["cluster/"+a.Cluster]; ok {
		a.PKey = &m.key
	}
	if c.Waits {
		h, err := r.c.Hosts().Get(ctx, c.Name)
		if err != nil {
			return err
		}
		if h.Status.Phase != v1.PhaseQuarantined {
			if _, err := host.WaitFor(ctx, within, r.env, r.c, h, r.timeout, v1.PhaseQuarantined); err != nil {
				return err
			}
		}
	}
	_, err := r.c.Hosts().Assign(client.IfMatch(ctx, version), c.Name, a)
	if p, ok := errors.AsType[*v1.Problem](err); ok && p.Code == v1.CodeChanged {
		return cli.Hint(err, "the host was assigned by another operator meanwhile; compare again with --dry-run")
	}
	return err
}

func reportTable(w *cli.Columns, r *report) {
	if len(r.Changes) == 0 {
		w.Text("no difference")
	} else {
		w.Row("RESULT", "CHANGE", "OBJECT", "DETAIL")
		for _, o := range r.Changes {
			detail := o.Detail
			if o.Why != "" {
				detail = o.Why
			}
			w.Row(o.Result, o.Verb, o.Object, detail)
		}
	}
	keptRows(w, r.Kept)
}

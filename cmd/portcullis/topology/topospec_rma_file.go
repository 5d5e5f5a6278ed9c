package topology

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/format"
	"portcullis/fabricsm/topospec/rma"
	"portcullis/fabricsm/topospec/verify"
)

// rmaSteps are the revisions of a replacement that can be made of a file.
var rmaSteps = []string{"window", "replace", "open"}

// rmaFiles is what is said of a replacement without a service.
type rmaFiles struct {
	name, step, form, out string
	observed, sm          string
}

func (f *rmaFiles) flags(cmd *cobra.Command) {
	f.step, f.form = rmaSteps[0], "yaml"
	cmd.Flags().StringVar(&f.name, "file", "", "make one revision from this file, without a service")
	cmd.Flags().Var(cli.OneOf(&f.step, rmaSteps), "step", "which revision, with --file: "+strings.Join(rmaSteps, ", "))
	cmd.Flags().Var(cli.OneOf(&f.form, format.Names()), "to", "output format, with --file")
	outFlag(cmd, &f.out)
}

// offline names the author where no service knows the operator. The operator who approves the new revision confirms the
// observations and attestations in it.
const offline = "offline"

// writeRMA makes one revision of a replacement.
func writeRMA(ctx context.Context, env *cli.Env, r *replacing) error {
	s, err := readSpec(ctx, env, r.files.name, false)
	if err != nil {
		return err
	}
	var next *topospec.Revision
	if r.in.Kind == v1.RMASwitch {
		next, err = switchRevision(ctx, env, s, r)
	} else {
		next, err = adapterRevision(s, r)
	}
	if err != nil {
		return err
	}
	next.Number, next.Parent = s.Revision().Number+1, s.Digest()
	made, err := topospec.Compile("replacement", next)
	if err != nil {
		return err
	}
	return writeSpec(env, made, r.files.form, r.files.out)
}

func adapterRevision(s *topospec.Spec, r *replacing) (*topospec.Revision, error) {
	now := time.Now().UTC()
	flow, window, err := rma.OpenAdapter(s, r.in.Old, r.in.Ticket, offline, now, r.window)
	if err != nil || r.files.step == "window" {
		return window, err
	}
	if r.files.step != "replace" || r.in.New == 0 {
		return nil, &cli.UsageError{Msg: fmt.Sprintf("step %s without a new adapter", r.files.step), Hint: "portcullis topospec rma hca OLD NEW --file FILE --step replace"}
	}
	if s, err = topospec.Compile("window", window); err != nil {
		return nil, err
	}
	if err := flow.Seen(s, flow.At, r.in.New, now); err != nil {
		return nil, err
	}
	psid := s.Device(s.DeviceByGUID(r.in.New)).PSID
	if err := flow.Attest(s, rma.Proof{Host: flow.Host, GUID: r.in.New, PSID: psid, Fresh: true}, now); err != nil {
		return nil, err
	}
	return flow.Accept(s, offline, now)
}

func switchRevision(ctx context.Context, env *cli.Env, s *topospec.Spec, r *replacing) (*topospec.Revision, error) {
	if r.files.step == "open" {
		return openedSwitch(ctx, env, s, r)
	}
	now := time.Now().UTC()
	flow, window, err := rma.OpenSwitch(s, r.in.Old, r.in.New, r.in.AggregationNode, r.in.Ticket, offline, now, r.window)
	if err != nil || r.files.step == "window" {
		return window, err
	}
	if s, err = topospec.Compile("window", window); err != nil {
		return nil, err
	}
	return flow.Replace(s, now)
}

// openedSwitch lets the hosts of a new switch in, if an observed fabric has its cables to
// other switches.
func openedSwitch(ctx context.Context, env *cli.Env, s *topospec.Spec, r *replacing) (*topospec.Revision, error) {
	if r.files.observed == "" {
		return nil, &cli.UsageError{Msg: "--observed is missing", Hint: "the cables between the new switch and others must be seen first: ibnetdiscover > now.topo"}
	}
	f, sm, err := observed(ctx, env, r.files.observed, s, r.files.sm)
	if err != nil {
		return nil, err
	}
	j := verify.New(s, topospec.Observe, nil)
	verify.Sweep(j, f, sm)
	flow := &rma.Switch{Ticket: r.in.Ticket, Old: r.in.Old, New: r.in.New, State: rma.Replaced}
	return flow.Open(j)
}

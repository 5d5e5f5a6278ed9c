package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

// replacer plays package api/rma: one replacement, for which it records who did what.
type replacer struct {
	api.Replacer
	one v1.RMA
}

func (r *replacer) Start(_ context.Context, actor string, in v1.NewRMA) (*v1.RMA, error) {
	r.one = v1.RMA{
		Ticket: in.Ticket, Kind: in.Kind, Old: in.Old, New: in.New, State: "drafted", Next: "an operator other than " + actor, By: actor, Reason: in.Reason,
		Opened: noon, Expires: noon.Add(4 * 3600e9), Where: "rack 7 leaf-1 port 1", Steps: []v1.RMAStep{{At: noon, By: actor, What: "opened", Revision: 7}},
	}
	return &r.one, nil
}

func (r *replacer) Show(_ context.Context, ticket string) (*v1.RMA, error) {
	if ticket != r.one.Ticket {
		return nil, &refusal.Error{Code: "rma_unknown", Status: refusal.NotFound, Detail: "no replacement has the ticket", Hint: "portcullis topospec rma list"}
	}
	return &r.one, nil
}

func (r *replacer) List(context.Context) (*v1.RMAs, error) {
	return &v1.RMAs{Items: []v1.RMA{r.one}}, nil
}

func (r *replacer) Confirm(_ context.Context, actor, ticket string, in v1.RMAConfirm) (*v1.RMA, error) {
	return nil, &refusal.Error{Code: "not_attested", Status: refusal.Conflict, Detail: "host gpu-1 has not attested " + ticket + in.Reason, Hint: "run its agent, " + actor}
}

func (r *replacer) Cancel(_ context.Context, _, _ string, in v1.RMACancel) (*v1.RMA, error) {
	r.one.State, r.one.Next = "cancelled", "nothing: "+in.Reason
	return &r.one, nil
}

// TestRMACommands: each verb over the real API.
func TestRMACommands(t *testing.T) {
	s := apitest.Start(t, apitest.NewSite(t), func(o *api.Options) { o.RMA = &replacer{} })
	const old, spare = "0x0020000000000010", "0x0020000000000090"
	for _, tt := range []struct {
		args string
		code int
		want []string
	}{
		{"rma hca " + old + " --ticket RMA-7 --reason broken", cli.ExitOK, []string{"drafted", "an operator other than olga", "rack 7 leaf-1 port 1", "7         opened"}},
		{"rma show RMA-7", cli.ExitOK, []string{"hca " + old, "2026-11-21", "broken"}},
		{"rma list", cli.ExitOK, []string{"RMA-7", "drafted", "olga"}},
		{"rma confirm RMA-7", cli.ExitRefused, []string{"has not attested RMA-7", "run its agent"}},
		{"rma confirm RMA-7 --reason seen", cli.ExitRefused, []string{"has not attested RMA-7seen"}},
		{"rma cancel RMA-7 --reason mistake", cli.ExitOK, []string{"cancelled", "nothing: mistake"}},
		{"rma switch " + old + " " + spare + " --ticket RMA-8 --reason fan", cli.ExitOK, []string{"switch " + old + " by " + spare}},
		{"rma show RMA-9", cli.ExitError, []string{"no replacement has the ticket"}},
		{"rma cancel RMA-7", cli.ExitUsage, []string{"no --reason is given"}},
		{"rma hca " + old + " --reason broken", cli.ExitUsage, []string{"no --ticket is given"}},
		{"rma hca " + old + " " + spare + " --ticket RMA-7 --reason x", cli.ExitUsage, []string{"NEW needs --file"}},
		{"rma switch " + old + " --ticket RMA-7 --reason x", cli.ExitUsage, []string{"NEW is missing"}},
		{"rma hca nonsense --ticket RMA-7 --reason x", cli.ExitUsage, []string{"want 0x and 16"}},
	} {
		t.Run(tt.args, func(t *testing.T) {
			args := append([]string{"--service", s.URL, "--ca", s.CAFile, "--token-file", s.OperatorFile, "topospec"}, strings.Fields(tt.args)...)
			var out, complaint bytes.Buffer
			if code := run(t.Context(), args, nil, &out, &complaint); code != tt.code {
				t.Errorf("exit code %d, want %d: %s", code, tt.code, complaint.String())
			}
			for _, want := range tt.want {
				if said := out.String() + complaint.String(); !strings.Contains(said, want) {
					t.Errorf("it does not say %q:\n%s", want, said)
				}
			}
		})
	}
}

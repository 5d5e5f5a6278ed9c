package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/attest/eventlog"
	"portcullis/attest/reference"
	"portcullis/cmd/portcullis/cli"
)

// referenceKeeper plays package api/measuredboot: one set, for which it records who did what.
type referenceKeeper struct {
	api.ReferenceKeeper
	one v1.Reference
}

func (k *referenceKeeper) List(_ context.Context, class string) (*v1.References, error) {
	if class == "empty" {
		return &v1.References{Items: []v1.Reference{}}, nil
	}
	return &v1.References{Items: []v1.Reference{k.one}}, nil
}

func (k *referenceKeeper) Show(_ context.Context, class string, version uint64) (*v1.Reference, error) {
	if class != k.one.Class || version != k.one.Version {
		return nil, &refusal.Error{Code: "reference_unknown", Status: refusal.NotFound, Detail: "no such set", Hint: "portcullis reference list"}
	}
	return &k.one, nil
}

func (k *referenceKeeper) Learn(_ context.Context, actor string, in v1.NewReference) (*v1.Reference, error) {
	k.one = v1.Reference{
		Name: in.Class + "/3", Class: in.Class, Version: 3, State: "draft", Owner: actor, Made: noon, Reason: in.Reason,
		Source: strings.Join(in.Hosts, "+") + " " + string(bytes.Join(in.Logs, []byte("+"))),
		Registers: []reference.Register{
			{PCR: 1, Events: []reference.Position{{Ignore: true, Note: "Boot0000"}}},
			{PCR: 4, Events: []reference.Position{{OneOf: []eventlog.Digest{eventlog.Separator}, Note: "EV_SEPARATOR"}}},
			{PCR: 11, Values: []eventlog.Digest{eventlog.Separator}},
			{PCR: 12},
		},
	}
	if in.Predicted != nil {
		k.one.Source, k.one.Registers = "predicted of "+in.Predicted.Image, in.Predicted.Registers
	}
	for _, p := range in.Ignore {
		k.one.Source += " ignore " + string(rune('0'+p.PCR)) + "/" + string(rune('0'+p.Position))
	}
	return &k.one, nil
}

func (k *referenceKeeper) Waive(_ context.Context, actor string, in v1.NewWaiver) (*v1.Reference, error) {
	return &v1.Reference{Name: in.Class + "/4", Waiver: true, State: "draft", Owner: actor, Reason: in.Reason, Expires: in.Expires}, nil
}

func (k *referenceKeeper) Approve(_ context.Context, actor, class string, _ uint64, in v1.ReferenceApprove) (*v1.Reference, error) {
	if class == "own" {
		return nil, &refusal.Error{Code: "two_persons", Status: refusal.Conflict, Detail: strings.TrimSpace(actor + " may not approve it " + in.Reason), Hint: "have somebody else look at it"}
	}
	k.one.State, k.one.InForce, k.one.Approver, k.one.Trusted, k.one.Expires = "approved", true, actor, noon, in.Expires
	return &k.one, nil
}

func (k *referenceKeeper) Expire(_ context.Context, _, _ string, _ uint64, in v1.ReferenceExpire) (*v1.Reference, error) {
	k.one.State, k.one.InForce, k.one.Reason, k.one.Expires = "ended", false, in.Reason, in.At
	return &k.one, nil
}

func (k *referenceKeeper) DiffHost(_ context.Context, class string, _ uint64, host string) (*v1.ReferenceDiff, error) {
	return &v1.ReferenceDiff{Reference: class + "/3", Other: host, Differences: []reference.Difference{
		{PCR: 4, Position: 3, Got: "aa (EV_EFI_BOOT_SERVICES_APPLICATION)", Want: "bb"}, {PCR: 11, Got: "cc", Want: "dd"},
	}}, nil
}

func (k *referenceKeeper) Diff(_ context.Context, class string, _, with uint64) (*v1.ReferenceDiff, error) {
	return &v1.ReferenceDiff{Reference: class + "/3", Other: "version " + string(rune('0'+with)), Differences: []reference.Difference{}}, nil
}

// TestReferenceCommands: each verb over the real API.
func TestReferenceCommands(t *testing.T) {
	s := apitest.Start(t, apitest.NewSite(t), func(o *api.Options) { o.Reference = &referenceKeeper{} })
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, []byte("the log"), 0o600); err != nil {
		t.Fatal(err)
	}
	predicted := filepath.Join(t.TempDir(), "predicted")
	if err := os.WriteFile(predicted, []byte(`{"image": "portcullis.efi", "registers": [{"pcr": 4, "events": [{"one_of": ["`+eventlog.Separator.String()+`"]}]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args string
		code int
		want []string
	}{
		{"learn gpu --host h1 --host h2 --log " + file + " --ignore 1/3 --base 2 --reason new", cli.ExitOK, []string{"gpu/3", "draft", "by olga: new", "h1+h2 the log ignore 1/3", "any event (Boot0000)", eventlog.Separator.String() + " (EV_SEPARATOR)", "11   value", "12   none"}},
		{"show gpu/3", cli.ExitOK, []string{"gpu/3", "draft", "2026-11-21"}},
		{"list", cli.ExitOK, []string{"gpu/3", "values", "draft", "olga", "new"}},
		{"list --class empty", cli.ExitOK, []string{"SET"}},
		{"approve gpu/3 --expires 2027-03-31", cli.ExitOK, []string{"approved", "by olga", "2027-03-31"}},
		{"approve own/3 --reason seen", cli.ExitRefused, []string{"olga may not approve it seen"}},
		{"approve own/3", cli.ExitRefused, []string{"olga may not approve it", "have somebody else"}},
		{"expire gpu/3 --at 2027-01-01T12:00:00Z --reason over", cli.ExitOK, []string{"ended", "over", "2027-01-01"}},
		{"waive gpu --until 2027-01-01 --reason INC-7", cli.ExitOK, []string{"gpu/4", "waiver", "INC-7", "2027-01-01"}},
		{"diff gpu/3 h1", cli.ExitError, []string{"PCR", "4    3", "aa (EV_EFI", "bb", "cc"}},
		{"diff gpu/3 gpu/5", cli.ExitOK, []string{"version 5 is as gpu/3 has it"}},
		{"diff gpu/3 other/5", cli.ExitUsage, []string{"of another class"}},
		{"show gpu/9", cli.ExitError, []string{"no such set"}},
		{"show gpu", cli.ExitUsage, []string{"want CLASS/VERSION"}},
		{"show gpu/0", cli.ExitUsage, []string{"want CLASS/VERSION"}},
		{"learn gpu --predicted " + predicted + " --reason new", cli.ExitOK, []string{"gpu/3", "draft", "predicted of portcullis.efi", "4    1", eventlog.Separator.String()}},
		{"learn gpu --predicted " + predicted + " --host h1 --reason x", cli.ExitUsage, []string{"--predicted excludes --host"}},
		{"learn gpu --predicted " + file + " --reason x", cli.ExitError, []string{"want a file that portcullis reference predict"}},
		{"learn gpu --reason x", cli.ExitUsage, []string{"nothing to learn from"}},
		{"learn gpu --host h1", cli.ExitUsage, []string{"no --reason is given"}},
		{"learn gpu --host h1 --ignore 1 --reason x", cli.ExitUsage, []string{"want PCR/EVENT"}},
		{"learn gpu --log /nonexistent --reason x", cli.ExitError, []string{"no such file"}},
		{"waive gpu --reason x", cli.ExitUsage, []string{"no --until is given"}},
		{"waive gpu --until tomorrow --reason x", cli.ExitUsage, []string{"is not a date"}},
		{"expire gpu/3", cli.ExitUsage, []string{"no --reason is given"}},
	} {
		t.Run(tt.args, func(t *testing.T) {
			args := append([]string{"--service", s.URL, "--ca", s.CAFile, "--token-file", s.OperatorFile, "reference"}, strings.Fields(tt.args)...)
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

// TestReferenceNeedsOperator: a viewer looks, and changes nothing.
func TestReferenceNeedsOperator(t *testing.T) {
	s := apitest.Start(t, apitest.NewSite(t), func(o *api.Options) { o.Reference = &referenceKeeper{} })
	for args, want := range map[string]int{
		"list": cli.ExitOK, "approve gpu/3": cli.ExitError, "expire gpu/3 --reason x": cli.ExitError,
		"learn gpu --host h --reason x": cli.ExitError, "waive gpu --until 2027-01-01 --reason x": cli.ExitError,
	} {
		var out, complaint bytes.Buffer
		full := append([]string{"--service", s.URL, "--ca", s.CAFile, "--token-file", s.ViewerFile, "reference"}, strings.Fields(args)...)
		if code := run(t.Context(), full, nil, &out, &complaint); code != want {
			t.Errorf("%s: exit code %d, want %d: %s", args, code, want, complaint.String())
		}
	}
}

package topology

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/format"
	"portcullis/fabricsm/topospec/native"
)

// revisionNumber reads an operand that names a revision of the service.
func revisionNumber(s string) (uint64, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && n > 0
}

// wantRevision is revisionNumber where nothing else will do.
func wantRevision(s string) (uint64, error) {
	n, ok := revisionNumber(s)
	if !ok {
		return 0, &cli.UsageError{Msg: fmt.Sprintf("%q: want the number of a revision", s), Hint: "portcullis topospec revisions lists them"}
	}
	return n, nil
}

// fetchRevision reads what a revision of the service says.
func fetchRevision(ctx context.Context, env *cli.Env, number uint64) (*topospec.Revision, error) {
	c, err := env.Connect()
	if err != nil {
		return nil, err
	}
	data, err := c.Topospec().Content(ctx, number, "json")
	if err != nil {
		return nil, err
	}
	return native.Parse(fmt.Sprintf("revision %d", number), data)
}

var topospecModes = []string{topospec.Observe.String(), topospec.Warn.String(), topospec.Enforce.String()}

func modeFlag(cmd *cobra.Command, mode *string) {
	cmd.Flags().Var(cli.OneOf(mode, topospecModes), "mode", "mode to activate: "+strings.Join(topospecModes, ", ")+" (default: the present one)")
}

func topospecStatus(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show which topology is in force", Args: cli.Operands(),
		Long: `Show which revision is in force and in which mode, who activated it and why, whether the Subnet
Manager has it, and how many links are verified. While an automatic rollback is possible, its end
is shown.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			t, err := c.Topospec().Get(cmd.Context())
			if err != nil {
				return err
			}
			return env.Print(t, func(w *cli.Columns) { showTopospec(w, t) })
		},
	}
}

func showTopospec(w *cli.Columns, t *v1.Topospec) {
	switch t.Source {
	case v1.TopospecNone:
		w.Text("no topology is declared; %s", cli.Count(t.Drafts, "draft"))
	case v1.TopospecOfFile:
		w.Text("fabric.topology.file of the configuration is in force; %s", cli.Count(t.Drafts, "draft"))
	default:
		w.Text("revision %d (%.12s) in mode %s, by %s at %s: %s", t.Revision, strings.TrimPrefix(t.Digest, "sha256:"), t.Mode, t.By, cli.Stamp(t.Since), t.Reason)
		w.Text("%s not decided yet", cli.Count(t.Drafts, "draft"))
	}
	if p := t.InForce; p != nil {
		w.Text("the subnet manager compares with revision %d of %s in mode %s: %d of %d links verified (%d.%d%%), %d missing, %s differ",
			p.Revision, p.Fabric, p.Mode, p.Verified, p.Expected, p.Score/10, p.Score%10, p.Missing, cli.Count(p.Differ, "port"))
	}
	if x := t.Watch; x != nil {
		w.Text("watched until %s: if fewer than %d links are verified, revision %d in mode %s comes back", cli.Stamp(x.Until), x.Least, x.Back, x.BackMode)
	}
	if t.Problem != "" {
		w.Text("problem: %s", t.Problem)
	}
}

func topospecRevisions(env *cli.Env) *cobra.Command {
	q := v1.TopospecQuery{}
	cmd := &cobra.Command{
		Use: "revisions", Short: "List the revisions that the service keeps, newest first", Args: cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			all := []v1.TopospecRevision{}
			for {
				page, err := c.Topospec().Revisions(cmd.Context(), q)
				if err != nil {
					return err
				}
				all = append(all, page.Items...)
				if q.Before = page.Next; q.Before == 0 {
					break
				}
			}
			return env.Print(all, func(w *cli.Columns) { showRevisions(w, all) })
		},
	}
	statuses := []string{"draft", "active", "superseded", "rolled_back", "rejected"}
	cmd.Flags().Var(cli.OneOf(&q.Status, statuses), "status", "only revisions of this status: "+strings.Join(statuses, ", "))
	return cmd
}

func showRevisions(w *cli.Columns, all []v1.TopospecRevision) {
	if len(all) == 0 {
		w.Text("no revision is kept; portcullis topospec draft FILE makes one")
		return
	}
	w.Row("REVISION", "STATUS", "MODE", "FABRIC", "LINKS", "AUTHOR", "DRAFTED", "APPROVED", "DIGEST", "REASON")
	for i := range all {
		r := &all[i]
		w.Row(strconv.FormatUint(r.Revision, 10), r.Status, r.Mode, r.Fabric, strconv.Itoa(r.Links), r.Author, cli.Stamp(r.Drafted), approvals(r), shortDigest(r.Digest), r.Reason)
	}
}

func approvals(r *v1.TopospecRevision) string {
	names := make([]string, len(r.Approvals))
	for i := range r.Approvals {
		names[i] = r.Approvals[i].By
	}
	return strings.TrimSpace(fmt.Sprintf("%d/%d %s", len(names), r.Needed, strings.Join(names, ", ")))
}

func shortDigest(d string) string { return fmt.Sprintf("%.12s", strings.TrimPrefix(d, "sha256:")) }

func topospecShow(env *cli.Env) *cobra.Command {
	form, file := "", ""
	cmd := &cobra.Command{
		Use: "show REVISION", Short: "Show a revision that the service keeps, or write its contents", Args: cli.Operands("REVISION"),
		Long: `Show a revision that the service keeps: who drafted and approved it, its status, and the digest
that an approval must name. --to writes its contents in a format of "topospec convert" instead.`,
		Example: `  portcullis topospec show 42
  portcullis topospec show 42 --to yaml --out rail-a-42.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := wantRevision(args[0])
			if err != nil {
				return err
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			if form != "" {
				s, err := readSpec(cmd.Context(), env, args[0], false)
				if err != nil {
					return err
				}
				return writeSpec(env, s, form, file)
			}
			r, err := c.Topospec().Revision(cmd.Context(), number)
			if err != nil {
				return err
			}
			return env.Print(r, func(w *cli.Columns) { showRevision(w, r) })
		},
	}
	cmd.Flags().Var(cli.OneOf(&form, format.Names()), "to", "write the contents in this format")
	outFlag(cmd, &file)
	return cmd
}

func showRevision(w *cli.Columns, r *v1.TopospecRevision) {
	w.Row("revision", strconv.FormatUint(r.Revision, 10))
	w.Row("status", r.Status)
	if r.Mode != "" {
		w.Row("mode", r.Mode)
	}
	w.Row("fabric", r.Fabric)
	w.Row("devices", strconv.Itoa(r.Devices))
	w.Row("links", fmt.Sprintf("%d, of which %d are expected up", r.Links, r.Expected))
	w.Row("digest", r.Digest)
	if r.Parent != "" {
		w.Row("made from", r.Parent)
	}
	w.Row("drafted", fmt.Sprintf("by %s at %s, of %s: %s", r.Author, cli.Stamp(r.Drafted), r.Source, r.Reason))
	w.Row("approvals", approvals(r))
	if len(r.Touches) > 0 {
		w.Row("touches", strings.Join(r.Touches, ", "))
	}
	for _, n := range []struct {
		what string
		note *v1.TopospecNote
	}{{"checked", r.Checked}, {"simulated", r.Simulated}} {
		if n.note != nil {
			w.Row(n.what, fmt.Sprintf("by %s at %s: %s", n.note.By, cli.Stamp(n.note.At), n.note.Outcome))
		}
	}
	if !r.Activated.IsZero() {
		w.Row("activated", cli.Stamp(r.Activated))
	}
	if r.Last != "" {
		w.Row("last step", r.Last)
	}
}

func validateOnline(ctx context.Context, env *cli.Env, number uint64) error {
	c, err := env.Connect()
	if err != nil {
		return err
	}
	r, err := c.Topospec().Validate(ctx, number)
	if err != nil {
		return err
	}
	if err := env.Print(r, func(w *cli.Columns) { showValidation(w, r) }); err != nil {
		return err
	}
	switch {
	case len(r.Refused) > 0:
		return cli.ErrGuard
	case len(r.Findings) > 0:
		return cli.ErrNo
	}
	return nil
}

func showValidation(w *cli.Columns, r *v1.TopospecCheck) {
	w.Text("%s revision %d, %d devices, %d links, %d of them expected up, %d that differ from the revision in force, %s", r.Fabric, r.Revision, r.Devices, r.Links, r.Expected, r.Changed, r.Digest)
	w.Gap()
	if len(r.Findings) > 0 {
		w.Row("RULE", "WHERE", "FINDING")
		for _, f := range r.Findings {
			w.Row(f.Rule, f.Object, f.Text)
		}
	}
	for _, x := range r.Refused {
		w.Text("refused by %s: %s; %s", x.Guard, x.Text, x.Do)
	}
}

func simulateOnline(ctx context.Context, env *cli.Env, operand, mode string) error {
	number, ok := revisionNumber(operand)
	if !ok {
		return &cli.UsageError{Msg: "OBSERVED is missing", Hint: "name the output of ibnetdiscover, or the number of a revision of the service"}
	}
	c, err := env.Connect()
	if err != nil {
		return err
	}
	r, err := c.Topospec().Simulate(ctx, number, v1.TopospecSimulate{Mode: mode})
	if err != nil {
		return err
	}
	if err := env.Print(r, func(w *cli.Columns) { showOnlineSimulation(w, r) }); err != nil {
		return err
	}
	if len(r.Refused) > 0 {
		return cli.ErrGuard
	}
	return nil
}

func permille(n int) string { return fmt.Sprintf("%d.%d%%", n/10, n%10) }

func showOnlineSimulation(w *cli.Columns, r *v1.TopospecSimulation) {
	w.Text("revision %d (%s) in mode %s, against the fabric as of %s", r.Revision, shortDigest(r.Digest), r.Mode, cli.Stamp(r.Observed))
	w.Text("%d of %d expected links verified (%s), %d missing; it has %s of the %d links that are up", r.Verified, r.Expected, permille(r.Score), r.Missing, permille(r.Covered), r.Live)
	w.Text("%d ports would change, the limit is %d; %d differ, of %s and %s", r.Flips, r.Limit, len(r.Hits)+r.More, cli.Count(r.Hosts, "host"), cli.Count(len(r.Tenants), "tenant"))
	if !r.Would && len(r.Hits) > 0 {
		w.Text("this mode changes no port; enforce would:")
	}
	w.Gap()
	if len(r.Hits) > 0 {
		w.Row("PORT", "ACTION", "VERDICT", "EXPECTED", "THERE IS", "HOST", "TENANT")
		for i := range r.Hits {
			h := &r.Hits[i]
			action := h.Action
			if action == "keep" {
				action = "keep, page"
			}
			w.Row(h.Where, action, h.Verdict, h.Expected, h.Seen, h.Host, h.Tenant)
		}
		if r.More > 0 {
			w.Text("and %d more", r.More)
		}
	}
	w.Gap()
	for _, x := range r.Refused {
		w.Text("refused by %s: %s; %s", x.Guard, x.Text, x.Do)
	}
	for _, x := range r.Cautions {
		w.Text("a stronger mode would be refused by %s: %s; %s", x.Guard, x.Text, x.Do)
	}
	if len(r.Refused) == 0 {
		w.Text("no guard refuses it")
	}
}

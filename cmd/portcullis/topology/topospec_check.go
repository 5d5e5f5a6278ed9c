package topology

import (
	"strconv"

	"github.com/spf13/cobra"

	"portcullis/cmd/internal/input"
	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/strictyaml"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/diff"
	"portcullis/fabricsm/topospec/generate"
	"portcullis/fabricsm/topospec/lint"
	"portcullis/fabricsm/topospec/simulate"
	"portcullis/fabricsm/topospec/verify"
)

// parseDesign reads the file of a design.
func parseDesign(name string, data []byte) (d generate.Design, err error) {
	if err := strictyaml.Load(name, data, input.Large, &d); err != nil {
		return d, cli.Hint(err, "docs/understand/topospec.md has the fields of a design")
	}
	return d, nil
}

// checked is what "topospec check" prints.
type checked struct {
	Fabric   string          `json:"fabric"`
	Revision uint64          `json:"revision"`
	Digest   topospec.Digest `json:"digest"`
	Devices  int             `json:"devices"`
	Links    int             `json:"links"`
	Active   int             `json:"active_links"`
	Findings []lint.Finding  `json:"findings"`
	Cables   []lint.RackPair `json:"cables,omitempty"`
}

func topospecCheck(env *cli.Env) *cobra.Command {
	draft, cables := false, false
	cmd := &cobra.Command{
		Use: "check FILE", Aliases: []string{"validate"}, Short: "Check a topology for errors and suspicious items", Args: cli.Operands("FILE"),
		Long: `Check a topology for errors and suspicious items: ports that a model does not have, a missing
aggregation node, rails that cross, unequal numbers of cables, and devices that no Subnet
Manager reaches.

A file that cannot be used at all (a GUID or port used twice, a truncated file, an unknown word)
is an error with line, object, cause and cure. The exit status is 1 for an error or a finding,
and 0 otherwise.

With the number of a revision the service checks it, and records the check. It also reports the
guards that refuse the revision independent of the fabric, with exit status 3.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if number, ok := revisionNumber(args[0]); ok {
				return validateOnline(cmd.Context(), env, number)
			}
			s, err := readSpec(cmd.Context(), env, args[0], draft)
			if err != nil {
				return err
			}
			r := s.Revision()
			out := checked{Fabric: r.Fabric, Revision: r.Number, Digest: s.Digest(), Devices: len(r.Devices), Links: len(r.Links), Active: s.NumActive(), Findings: lint.Check(s)}
			if cables {
				out.Cables = lint.Cables(s)
			}
			if err := env.Print(out, func(w *cli.Columns) { out.table(w) }); err != nil {
				return err
			}
			if len(out.Findings) > 0 {
				return cli.ErrNo
			}
			return nil
		},
	}
	draftFlag(cmd, &draft)
	cmd.Flags().BoolVar(&cables, "cables", false, "count the cables between each pair of racks")
	return cmd
}

func (c *checked) table(w *cli.Columns) {
	w.Text("%s revision %d, %d devices, %d links, %d of them expected up, %s", c.Fabric, c.Revision, c.Devices, c.Links, c.Active, c.Digest)
	w.Gap()
	if len(c.Findings) > 0 {
		w.Row("RULE", "WHERE", "FINDING")
		for _, f := range c.Findings {
			w.Row(string(f.Rule), f.Object, f.Text)
		}
	}
	w.Gap()
	if len(c.Cables) > 0 {
		w.Row("RACK", "RACK", "CABLES")
		for _, p := range c.Cables {
			w.Row(p.A, p.B, strconv.Itoa(p.Cables))
		}
	}
}

func topospecDiff(env *cli.Env) *cobra.Command {
	draft, ufm, cables := false, false, false
	cmd := &cobra.Command{
		Use: "diff EXPECTED ACTUAL", Short: "Compare two topologies, in physical terms", Args: cli.Operands("EXPECTED", "ACTUAL"),
		Long: `Compare two topologies, in physical terms: rack, unit, name, port and the label beside it.
--cables compares only what a fabric shows: use it if ACTUAL is the output of ibnetdiscover.
--ufm prints the result in the format of UFM's Topology_Compare.

Exit status: 0 if there is no difference, 1 if there is one, and 2 if the two could not be
compared.`,
		Example: `  ibnetdiscover | portcullis topospec diff --cables rail-a.yaml -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			x, err := readSpec(cmd.Context(), env, args[0], draft)
			if err != nil {
				return cli.NotCompared(err)
			}
			y, err := readSpec(cmd.Context(), env, args[1], draft)
			if err != nil {
				return cli.NotCompared(err)
			}
			what := diff.Everything
			if cables {
				what = diff.CablesOnly
			}
			report := diff.Compare(x, y, what)
			if ufm {
				err = env.PrintJSON(report.Topology())
			} else {
				err = env.Print(report.Items, func(w *cli.Columns) { showDifferences(w, report) })
			}
			if err != nil {
				return cli.NotCompared(err)
			}
			if !report.Empty() {
				return cli.ErrNo
			}
			return nil
		},
	}
	draftFlag(cmd, &draft)
	cmd.Flags().BoolVar(&cables, "cables", false, "compare cables and devices only, as a fabric shows them")
	cmd.Flags().BoolVar(&ufm, "ufm", false, "print JSON in the format of UFM's Topology_Compare")
	return cmd
}

func showDifferences(w *cli.Columns, r *diff.Report) {
	if r.Empty() {
		w.Text("no difference: %s are the same", cli.Count(r.Same, "link"))
		return
	}
	for _, i := range r.Items {
		w.Text("%s", i)
	}
}

func topospecSimulate(env *cli.Env) *cobra.Command {
	active, sm, mode, draft := "", "", "", false
	cmd := &cobra.Command{
		Use: "simulate NEXT [OBSERVED]", Short: "Simulate what activating a topology does to a fabric", Args: cli.OneOrTwo("NEXT", "OBSERVED"),
		Long: `Simulate what activating a topology does to a fabric as ibnetdiscover sees it: which ports
enforcement would switch off or hold, whose ports they are, how many links it covers, and which
guards refuse it. Nothing is changed.

--active names the revision in force. --sm names the node GUID of the Subnet Manager, if NEXT has
no device of role sm.

With the number of a revision and without OBSERVED the service simulates it with the fabric as it
is seen now, in the mode of --mode. The result also names the hosts and tenants of the ports. The
service records that the revision was simulated.

Exit status: 0 if it may be activated, and 3 if a guard refuses it.`,
		Example: `  ibnetdiscover > now.topo
  portcullis topospec simulate --active rail-a-41.yaml rail-a-42.yaml now.topo
  portcullis topospec simulate 42`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return simulateOnline(cmd.Context(), env, args[0], mode)
			}
			if mode != "" {
				return &cli.UsageError{Msg: "--mode is for revisions of the service", Hint: "without OBSERVED the service simulates"}
			}
			next, err := readSpec(cmd.Context(), env, args[0], draft)
			if err != nil {
				return err
			}
			in := simulate.Input{Next: next}
			if active != "" {
				if in.Active, err = readSpec(cmd.Context(), env, active, false); err != nil {
					return err
				}
			}
			if in.Fabric, in.SM, err = observed(cmd.Context(), env, args[1], next, sm); err != nil {
				return err
			}
			r := simulate.Run(in)
			if err := env.Print(r, func(w *cli.Columns) { showSimulation(w, r) }); err != nil {
				return err
			}
			if len(r.Refused) > 0 {
				return cli.ErrGuard
			}
			return nil
		},
	}
	draftFlag(cmd, &draft)
	cmd.Flags().StringVar(&active, "active", "", "the revision in force")
	cmd.Flags().StringVar(&sm, "sm", "", "node GUID that the Subnet Manager runs on")
	modeFlag(cmd, &mode)
	return cmd
}

func showSimulation(w *cli.Columns, r *simulate.Report) {
	w.Text("%d of %d expected links verified (%v), %d missing; it has %v of the %d links that are up", r.Verified, r.Expected, r.Score, r.Missing, r.Covered, r.Live)
	w.Text("%d ports would change, the limit is %d; %d would be acted on, %s", r.Flips, r.Limit, len(r.Hits), cli.Count(r.Hosts, "host"))
	w.Gap()
	if len(r.Hits) > 0 {
		w.Row("PORT", "ACTION", "VERDICT", "EXPECTED", "THERE IS", "HOST")
		for _, h := range r.Hits {
			action := h.Action.String()
			if h.Action == verify.Keep {
				action = "keep, page"
			}
			w.Row(h.Where, action, h.Verdict.String(), h.Expected, h.Seen, h.Host)
		}
	}
	w.Gap()
	for _, x := range r.Refused {
		w.Text("refused by %s: %s; %s", x.Guard, x.Text, x.Do)
	}
	if len(r.Refused) == 0 {
		w.Text("no guard refuses it")
	}
}

package movein

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/opensmconf/movein"
	"portcullis/fabricsm/opensmconf/verdict"
)

func importCommand(env *cli.Env) *cobra.Command {
	c := cli.Group("import", "Plan the move of a site that runs OpenSM or UFM", importOpenSM(env), importUFM(env))
	c.Long = `Plan the move of a site that runs another Subnet Manager. No service is needed, nothing of the
site is changed, and no key is shown.`
	return c
}

// importing holds the options of a verb.
type importing struct {
	cache, out, port string
	accept           []string
}

func importOpenSM(env *cli.Env) *cobra.Command {
	var in importing
	cmd := &cobra.Command{
		Use: "opensm DIR", Short: "Say what becomes of each setting of OpenSM, and write the configuration", Args: cli.Operands("DIR"),
		Long: `Say what becomes of each setting of OpenSM, and write the configuration.

DIR has opensm.conf and the files that it names: partitions.conf, lists of GUIDs, qos-policy.conf
and others. Folders of their names do not count: copy files from elsewhere into DIR. --cache names
the directory with guid2lid, guid2mkey and neighbors, if that is another one.

Each setting is taken, changed, not-needed, unsupported, unsafe or unknown. Exit status: 0 if the
fabric behaves as before, and 8 if some setting is lost or unknown and was not acknowledged with
--accept SETTING or --accept FILE:LINE.

--write makes a new directory with portcullisd.yaml, the partitions, LIDs, keys and other files,
and report.md. Keys are in files of mode 0600 only.`,
		Example: `  portcullis import opensm /etc/opensm --cache /var/cache/opensm
  portcullis import opensm /etc/opensm --port umad:mlx5_0 --accept perfmgr --write moved
  portcullisd sm --config moved/portcullisd.yaml --partitions moved/partitions.conf`,
		RunE: func(_ *cobra.Command, args []string) error { return run(env, movein.OpenSM, args[0], &in) },
	}
	in.flags(cmd)
	return cmd
}

func importUFM(env *cli.Env) *cobra.Command {
	var in importing
	cmd := &cobra.Command{
		Use: "ufm DIR", Short: "Say what becomes of each setting of UFM, and write the configuration", Args: cli.Operands("DIR"),
		Long: `Say what becomes of each setting of UFM, and write the configuration.

DIR is /opt/ufm/files/conf or a copy: it has gv.cfg, and in its folder opensm the files of UFM's
OpenSM. --cache names the directory with guid2lid, guid2mkey and other key files. Of gv.cfg only
what concerns the fabric is taken. All else is as for "portcullis import opensm".`,
		Example: `  portcullis import ufm /opt/ufm/files/conf --cache /var/cache/opensm --write moved`,
		RunE:    func(_ *cobra.Command, args []string) error { return run(env, movein.UFM, args[0], &in) },
	}
	in.flags(cmd)
	return cmd
}

func (in *importing) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&in.cache, "cache", "", "directory with the files that the manager keeps, such as /var/cache/opensm")
	f.StringVar(&in.out, "write", "", "new directory to write the configuration into")
	f.StringVar(&in.port, "port", "", "port that the manager runs on, umad:DEVICE[:PORT]")
	f.StringArrayVar(&in.accept, "accept", nil, "acknowledge a setting by which the fabric behaves otherwise; may be repeated")
}

func run(env *cli.Env, kind movein.Kind, dir string, in *importing) error {
	site, err := readSite(env, kind, dir, in.cache)
	if err != nil {
		return err
	}
	if kind, _, ok := strings.Cut(in.port, ":"); in.port != "" && (!ok || kind != "umad" && kind != "ibsim" && kind != "sim") {
		return &cli.UsageError{Msg: fmt.Sprintf("--port %q: want umad:DEVICE[:PORT]", in.port), Hint: "ibstat lists devices and ports"}
	}
	site.Port = in.port
	plan, err := movein.Make(site)
	if err != nil {
		return err
	}
	if strange := plan.Accept(in.accept); len(strange) > 0 {
		return &cli.UsageError{
			Msg:  fmt.Sprintf("--accept %s: there is no such setting", strings.Join(strange, ", ")),
			Hint: "name a setting, or FILE:LINE, as the first columns show them",
		}
	}
	if in.out != "" {
		if err := write(in.out, plan); err != nil {
			return err
		}
	}
	if err := env.Print(resultOf(plan), func(w *cli.Columns) { show(w, plan, in.out) }); err != nil {
		return err
	}
	if plan.Open() > 0 {
		return cli.ExitWith(cli.ExitOtherwise)
	}
	return nil
}

// result is what is printed as JSON and YAML.
type result struct {
	Kind    movein.Kind           `json:"kind"`
	Summary map[verdict.Class]int `json:"summary"`
	Open    int                   `json:"open"` // settings by which the fabric behaves otherwise, not accepted
	Items   []movein.Item         `json:"items"`
	Files   []string              `json:"files"`
}

func resultOf(p *movein.Plan) result {
	r := result{Kind: p.Kind, Summary: make(map[verdict.Class]int), Open: p.Open(), Items: p.Items}
	for _, c := range verdict.Classes() {
		r.Summary[c] = p.Count(c)
	}
	for _, f := range p.Files {
		r.Files = append(r.Files, f.Name)
	}
	if p.Root {
		r.Files = append(r.Files, movein.RootName)
	}
	return r
}

// show prints the items by class, those that need an operator last, where a terminal shows them.
func show(w *cli.Columns, p *movein.Plan, out string) {
	classes := verdict.Classes()
	w.Row("VERDICT", "WHERE", "SETTING", "HERE", "")
	for i := len(classes) - 1; i >= 0; i-- {
		for j := range p.Items {
			if it := &p.Items[j]; it.Verdict == classes[i] {
				w.Row(string(it.Verdict), it.Place(), it.What(), it.Here(), it.Note())
			}
		}
	}
	w.Gap()
	var counts []string
	for _, c := range classes {
		if n := p.Count(c); n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, c))
		}
	}
	w.Text("%s: %s", cli.Count(len(p.Items), "setting"), strings.Join(counts, ", "))
	if out != "" {
		w.Text("written: %s, with report.md", out)
	}
	if n := p.Open(); n > 0 {
		w.Text("by %s marked (other behaviour) the fabric behaves otherwise: --accept acknowledges each", cli.Count(n, "setting"))
	}
}

package topology

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/discovered"
	"portcullis/fabricsm/topospec/format"
	"portcullis/fabricsm/topospec/generate"
	"portcullis/fabricsm/topospec/ndt"
)

// topospecInputs are what a draft can be made of.
var topospecInputs = []string{"observed", "ndt"}

// importing holds the options of "topospec import".
type importing struct {
	fabric, from, manifest string
}

func topospecImport(env *cli.Env) *cobra.Command {
	in, form, file := importing{from: topospecInputs[0]}, "yaml", ""
	cmd := &cobra.Command{
		Use: "import FILE...", Short: "Make a draft from an observed fabric or from cabling plans", Args: cli.Operands("FILE..."),
		Long: `Make a draft from an observed fabric or from cabling plans.

--format observed, the default, takes one FILE: what ibnetdiscover printed or ibsim reads. Such a
draft contains the faults of the running fabric: compare it with the design before you activate
it.

--format ndt takes the CSV plans of UFM's NDT plugin, all plans of a fabric together. Plans have
names and no GUIDs: --manifest names the CSV of "topospec generate", with a line for each device
of the plans. Lines of other networks are left out, and counted.`,
		Example: `  ibnetdiscover | portcullis topospec import --fabric rail-a - --out draft.yaml
  portcullis topospec import --format ndt --manifest guids.csv switches.csv hosts.csv --out draft.yaml`,
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := imported(env, &in, args)
			if err != nil {
				return err
			}
			s, err := topospec.Compile(args[0], r)
			if err != nil {
				return err
			}
			return writeSpec(env, s, form, file)
		},
	}
	cmd.Flags().StringVar(&in.fabric, "fabric", "", "name of the fabric")
	cmd.Flags().Var(cli.OneOf(&in.from, topospecInputs), "format", "what FILE is: observed or ndt")
	cmd.Flags().StringVar(&in.manifest, "manifest", "", "CSV with the GUIDs of the devices that plans name")
	cmd.Flags().Var(cli.OneOf(&form, format.Names()), "to", "output format")
	outFlag(cmd, &file)
	return cmd
}

func imported(env *cli.Env, in *importing, files []string) (*topospec.Revision, error) {
	if in.from == "ndt" {
		return importPlans(env, in, files)
	}
	switch {
	case len(files) > 1:
		return nil, &cli.UsageError{Msg: "an observed fabric is one file", Hint: "several files are plans: --format ndt"}
	case in.manifest != "":
		return nil, &cli.UsageError{Msg: "an observed fabric has its own GUIDs", Hint: "--manifest is for plans: --format ndt"}
	}
	data, err := readInput(env, files[0])
	if err != nil {
		return nil, err
	}
	return discovered.Parse(files[0], in.fabric, data)
}

// importPlans makes a draft of NDT files and a manifest.
func importPlans(env *cli.Env, in *importing, files []string) (*topospec.Revision, error) {
	if in.manifest == "" {
		return nil, &cli.UsageError{Msg: "--manifest is missing", Hint: "plans have names and no GUIDs; --manifest names the CSV that has both"}
	}
	text, err := readInput(env, in.manifest)
	if err != nil {
		return nil, err
	}
	m, err := generate.ParseManifest(in.manifest, string(text))
	if err != nil {
		return nil, err
	}
	plans := make([]*ndt.File, 0, len(files))
	for _, name := range files {
		data, err := readInput(env, name)
		if err != nil {
			return nil, err
		}
		f, err := ndt.Parse(name, data)
		if err != nil {
			return nil, err
		}
		plans = append(plans, f)
	}
	r, out, err := ndt.Revision(in.fabric, &m, plans...)
	for _, what := range slices.Sorted(maps.Keys(out)) {
		fmt.Fprintf(env.Err, "portcullis: left out: %s, %s\n", cli.Count(out[what], "line"), cli.Plain(what))
	}
	return r, err
}

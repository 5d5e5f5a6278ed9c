package topology

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"portcullis/cmd/internal/input"
	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/discovered"
	"portcullis/fabricsm/topospec/format"
	"portcullis/fabricsm/topospec/generate"
)

func topospecCommand(env *cli.Env) *cobra.Command {
	c := cli.Group("topospec", "Check, convert, generate and compare declared topologies",
		topospecCheck(env), topospecConvert(env), topospecGenerate(env), topospecImport(env), topospecDiff(env), topospecSimulate(env),
		topospecStatus(env), topospecRevisions(env), topospecShow(env), topospecDraft(env), topospecApprove(env), topospecReject(env),
		topospecActivate(env), topospecRollback(env), topospecRMA(env))
	c.Short = "Manage declared topologies: draft, check, simulate, approve, activate, roll back"
	c.Long = `Check, convert, generate and compare declared topologies. A topology says which device belongs
behind which switch port. The service keeps topologies as revisions: draft, check, simulate,
approve, activate and rollback manage them.

A FILE is a native revision (JSON or YAML), a topoconfig.conf, or what ibnetdiscover printed or
ibsim reads; its first line shows which one it is. - is standard input. Where a FILE is wanted,
a number is a revision of the service; a file with such a name is ./NAME. With files alone no
service is needed, and nothing is changed except the file of --out.`
	return c
}

// draftFlag lets files be read that are still being worked on.
func draftFlag(cmd *cobra.Command, draft *bool) {
	cmd.Flags().BoolVar(draft, "draft", false, "accept native files whose end is missing or has another digest")
}

// readInput reads a whole file, or standard input.
func readInput(env *cli.Env, name string) ([]byte, error) {
	if name == "-" {
		return input.Read(env.In, "standard input", input.Large)
	}
	return input.ReadFile(name, input.Large)
}

// readRevision reads a file of any form, or a revision of the service.
func readRevision(ctx context.Context, env *cli.Env, name string, draft bool) (*topospec.Revision, error) {
	if number, ok := revisionNumber(name); ok {
		return fetchRevision(ctx, env, number)
	}
	data, err := readInput(env, name)
	if err != nil {
		return nil, err
	}
	return format.Any(name, data, format.Seal(!draft))
}

func readSpec(ctx context.Context, env *cli.Env, name string, draft bool) (*topospec.Spec, error) {
	r, err := readRevision(ctx, env, name, draft)
	if err != nil {
		return nil, err
	}
	return topospec.Compile(name, r)
}

// writeSpec writes a revision to the file that --out names.
func writeSpec(env *cli.Env, s *topospec.Spec, form, file string) error {
	text, err := format.Text(s, form)
	if err != nil {
		return err
	}
	return env.ToFile(file, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

func topospecConvert(env *cli.Env) *cobra.Command {
	form, file, draft := format.Names()[0], "", false
	cmd := &cobra.Command{
		Use: "convert FILE", Short: "Convert a topology to another format", Args: cli.Operands("FILE"),
		Long: `Convert a topology to another format:

  json, yaml        native format, sealed with counts and digest
  topoconfig        topoconfig.conf of OpenSM and UFM
  topoconfig-types  the same with our neighbour types Ca, Switch, Router, An
  ibnetdiscover     what ibnetdiscover would print
  slurm             topology.conf of Slurm's tree plugin
  ndt               a cabling plan as UFM's NDT plugin reads it, with State and Domain
  root-guids, cn-guids, io-guids, allowed-guids
                    lists for OpenSM, one GUID on each line

To seal an edited native file again: --draft --to json (or yaml).`,
		Example: `  portcullis topospec convert --to topoconfig rail-a.yaml --out topoconfig.conf
  portcullis topospec convert --draft --to yaml edited.yaml --out sealed.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := readSpec(cmd.Context(), env, args[0], draft)
			if err != nil {
				return err
			}
			return writeSpec(env, s, form, file)
		},
	}
	draftFlag(cmd, &draft)
	cmd.Flags().Var(cli.OneOf(&form, format.Names()), "to", "output format")
	outFlag(cmd, &file)
	return cmd
}

func outFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "out", "", "file to write; it appears when it is complete (default: standard output)")
}

// observed reads a file as a fabric that is looked at, and finds the Subnet
// Manager's port in it.
func observed(ctx context.Context, env *cli.Env, name string, s *topospec.Spec, sm string) (*topo.Fabric, topo.PortID, error) {
	r, err := readRevision(ctx, env, name, true)
	if err != nil {
		return nil, topo.None, err
	}
	f, err := discovered.Fabric(r)
	if err != nil {
		return nil, topo.None, err
	}
	var guid ib.GUID
	if sm != "" {
		if guid, err = ib.ParseGUID(sm); err != nil {
			return nil, topo.None, &cli.UsageError{Msg: err.Error(), Hint: "--sm takes a node GUID"}
		}
	}
	for i := range s.Revision().Devices {
		if d := &s.Revision().Devices[i]; guid == 0 && d.Role == topospec.RoleSM && f.NodeByGUID(d.GUID) != topo.None {
			guid = d.GUID
		}
	}
	id := f.NodeByGUID(guid)
	if id == topo.None {
		return nil, topo.None, cli.Hint(fmt.Errorf("%s: the Subnet Manager's node %v is not in it", name, guid), "name the node that the Subnet Manager runs on: --sm GUID")
	}
	n := f.Node(id)
	if n.Type == ib.NodeSwitch {
		return f, n.FirstPort, nil
	}
	for i := 1; i <= int(n.NumPorts); i++ {
		if p := n.FirstPort + topo.PortID(i); f.LinkUp(p) != topo.None {
			return f, p, nil
		}
	}
	return nil, topo.None, fmt.Errorf("%s: the Subnet Manager's node %v has no link", name, guid)
}

func topospecGenerate(env *cli.Env) *cobra.Command {
	form, file, slots := "yaml", "", false
	cmd := &cobra.Command{
		Use: "generate DESIGN [MANIFEST]", Short: "Generate a topology from a design and a manifest of GUIDs", Args: cli.OneOrTwo("DESIGN", "MANIFEST"),
		Long: `Generate a topology from a design and a manifest of the GUIDs that were delivered.

DESIGN is YAML: template (rail_pod, fat_tree or racks), units, hosts_per_unit, rails, switch_model
and more; docs/understand/topospec.md has all fields. MANIFEST is CSV with a header; the columns name and
guid are required. --slots prints a manifest to fill in.`,
		Example: `  portcullis topospec generate --slots pod.yaml > manifest.csv
  portcullis topospec generate pod.yaml manifest.csv --out rail-a.yaml`,
		RunE: func(_ *cobra.Command, args []string) error {
			data, err := readInput(env, args[0])
			if err != nil {
				return err
			}
			d, err := parseDesign(args[0], data)
			if err != nil {
				return err
			}
			if slots {
				return printSlots(env, d)
			}
			if len(args) < 2 {
				return &cli.UsageError{Msg: "MANIFEST is missing", Hint: "--slots prints one to fill in"}
			}
			text, err := readInput(env, args[1])
			if err != nil {
				return err
			}
			m, err := generate.ParseManifest(args[1], string(text))
			if err != nil {
				return err
			}
			r, err := d.Revision(m)
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
	cmd.Flags().Var(cli.OneOf(&form, format.Names()), "to", "output format")
	cmd.Flags().BoolVar(&slots, "slots", false, "print the manifest that the design needs, without GUIDs")
	outFlag(cmd, &file)
	return cmd
}

func printSlots(env *cli.Env, d generate.Design) error {
	slots, err := d.Slots()
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("name,guid,model,serial,rack,u\n")
	for _, s := range slots {
		fmt.Fprintf(&b, "%s,,%s,,,\n", s.Name, s.Model)
	}
	_, err = io.WriteString(env.Out, b.String())
	return err
}

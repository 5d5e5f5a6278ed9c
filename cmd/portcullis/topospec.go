package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/discovered"
	"portcullis/fabricsm/topospec/export"
	"portcullis/fabricsm/topospec/generate"
	"portcullis/fabricsm/topospec/native"
	"portcullis/fabricsm/topospec/ndt"
	"portcullis/fabricsm/topospec/topoconf"
)

func (a *app) topospecCommand() *cobra.Command {
	c := group("topospec", "Check, convert, generate and compare declared topologies",
		a.topospecCheck(), a.topospecConvert(), a.topospecGenerate(), a.topospecImport(), a.topospecDiff(), a.topospecSimulate())
	c.Long = `Check, convert, generate and compare declared topologies: which device belongs
behind which switch port. These commands need no service and change nothing but the
file that --out names.

A FILE is a native revision (JSON or YAML), a topoconfig.conf, or what
ibnetdiscover printed or ibsim reads; which one it is shows by its first line.
- is standard input.`
	return c
}

// draftFlag lets files be read that are still being worked on.
func draftFlag(cmd *cobra.Command, draft *bool) {
	cmd.Flags().BoolVar(draft, "draft", false, "take native files whose end is missing or has another digest")
}

// readInput reads a whole file, or standard input.
func (a *app) readInput(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(a.stdin)
	}
	return os.ReadFile(name)
}

// readRevision reads a file of any form.
func (a *app) readRevision(name string, draft bool) (*topospec.Revision, error) {
	data, err := a.readInput(name)
	if err != nil {
		return nil, err
	}
	fabric := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	switch start := bytes.TrimLeft(data[:min(64, len(data))], " \t\r\n"); {
	case bytes.HasPrefix(start, []byte("{")), bytes.HasPrefix(start, []byte("format")):
		if draft {
			return native.ParseDraft(name, data)
		}
		return native.Parse(name, data)
	case len(start) == 0, bytes.HasPrefix(start, []byte("0x")), bytes.HasPrefix(start, []byte("\uFEFF")):
		f, err := topoconf.Parse(name, data)
		if err != nil {
			return nil, err
		}
		return f.Revision(name, fabric)
	default:
		return discovered.Parse(name, fabric, data)
	}
}

func (a *app) readSpec(name string, draft bool) (*topospec.Spec, error) {
	r, err := a.readRevision(name, draft)
	if err != nil {
		return nil, err
	}
	return topospec.Compile(name, r)
}

// topospecForms are what a revision can be written as.
var topospecForms = slices.Concat([]string{"json", "yaml", "topoconfig", "topoconfig-types", "ibnetdiscover", "slurm", "ndt"}, listNames())

func listNames() (names []string) {
	for _, l := range export.Lists() {
		names = append(names, string(l))
	}
	return names
}

func topospecText(s *topospec.Spec, form string) (string, error) {
	switch form {
	case "json":
		return string(native.AppendTo(nil, s.Revision(), native.JSON)), nil
	case "yaml":
		return string(native.AppendTo(nil, s.Revision(), native.YAML)), nil
	case "topoconfig":
		return string(topoconf.FromRevision(s.Revision(), topoconf.TypesAny).AppendTo(nil)), nil
	case "topoconfig-types":
		return string(topoconf.FromRevision(s.Revision(), topoconf.TypesKnown).AppendTo(nil)), nil
	case "ibnetdiscover":
		return export.Ibnetdiscover(s), nil
	case "slurm":
		return export.Slurm(s)
	case "ndt":
		return ndt.Write(s)
	default:
		return export.GUIDs(s, export.List(form))
	}
}

// writeSpec writes a revision to the file that --out names.
func (a *app) writeSpec(s *topospec.Spec, form, file string) error {
	text, err := topospecText(s, form)
	if err != nil {
		return err
	}
	return a.toFile(file, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

func (a *app) topospecConvert() *cobra.Command {
	form, file, draft := topospecForms[0], "", false
	cmd := &cobra.Command{
		Use: "convert FILE", Short: "Write a topology in another form", Args: operands("FILE"),
		Long: `Write a topology in another form:

  json, yaml        our native form, sealed with counts and digest
  topoconfig        topoconfig.conf of OpenSM and UFM
  topoconfig-types  the same with our neighbour types Ca, Switch, Router, An
  ibnetdiscover     what ibnetdiscover would print of it
  slurm             topology.conf of Slurm's tree plugin
  ndt               a cabling plan as UFM's NDT plugin reads it, with State and Domain
  root-guids, cn-guids, io-guids, allowed-guids
                    lists for OpenSM, one GUID a line

A native file that was edited is sealed again with --draft --to json (or yaml).`,
		Example: `  portcullis topospec convert --to topoconfig rail-a.yaml --out topoconfig.conf
  portcullis topospec convert --draft --to yaml edited.yaml --out sealed.yaml`,
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := a.readSpec(args[0], draft)
			if err != nil {
				return err
			}
			return a.writeSpec(s, form, file)
		},
	}
	draftFlag(cmd, &draft)
	cmd.Flags().Var(&choice{&form, topospecForms}, "to", "which form")
	outFlag(cmd, &file)
	return cmd
}

func outFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "out", "", "file to write; it appears when it is complete (default: standard output)")
}

// observed reads a file as a fabric that is looked at, and finds the Subnet
// Manager's port in it.
func (a *app) observed(name string, s *topospec.Spec, sm string) (*topo.Fabric, topo.PortID, error) {
	r, err := a.readRevision(name, true)
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
			return nil, topo.None, &usageError{msg: err.Error(), hint: "--sm takes a node GUID"}
		}
	}
	for i := range s.Revision().Devices {
		if d := &s.Revision().Devices[i]; guid == 0 && d.Role == topospec.RoleSM && f.NodeByGUID(d.GUID) != topo.None {
			guid = d.GUID
		}
	}
	id := f.NodeByGUID(guid)
	if id == topo.None {
		return nil, topo.None, hint(fmt.Errorf("%s: the Subnet Manager's node %v is not in it", name, guid), "name the node that the Subnet Manager runs on: --sm GUID")
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

func (a *app) topospecGenerate() *cobra.Command {
	form, file, slots := "yaml", "", false
	cmd := &cobra.Command{
		Use: "generate DESIGN [MANIFEST]", Short: "Make a topology of a design and a manifest of GUIDs", Args: oneOrTwo("DESIGN", "MANIFEST"),
		Long: `Make a topology of a design and a manifest of the GUIDs that were delivered.

DESIGN is YAML: template (rail_pod, fat_tree or racks), units, hosts_per_unit,
rails, switch_model and more; docs/topospec.md has all. MANIFEST is CSV with a header;
the columns name and guid must be there. --slots prints a manifest to be filled in.`,
		Example: `  portcullis topospec generate --slots pod.yaml > manifest.csv
  portcullis topospec generate pod.yaml manifest.csv --out rail-a.yaml`,
		RunE: func(_ *cobra.Command, args []string) error {
			data, err := a.readInput(args[0])
			if err != nil {
				return err
			}
			d, err := parseDesign(args[0], data)
			if err != nil {
				return err
			}
			if slots {
				return a.printSlots(d)
			}
			if len(args) < 2 {
				return &usageError{msg: "MANIFEST is missing", hint: "--slots prints one to be filled in"}
			}
			text, err := a.readInput(args[1])
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
			return a.writeSpec(s, form, file)
		},
	}
	cmd.Flags().Var(&choice{&form, topospecForms}, "to", "which form")
	cmd.Flags().BoolVar(&slots, "slots", false, "print the manifest that the design needs, without GUIDs")
	outFlag(cmd, &file)
	return cmd
}

func (a *app) printSlots(d generate.Design) error {
	slots, err := d.Slots()
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("name,guid,model,serial,rack,u\n")
	for _, s := range slots {
		fmt.Fprintf(&b, "%s,,%s,,,\n", s.Name, s.Model)
	}
	_, err = io.WriteString(a.stdout, b.String())
	return err
}

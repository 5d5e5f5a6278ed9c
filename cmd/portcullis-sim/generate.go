package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"portcullis/fabricsm/sim/netlist"
)

// kinds are the fabrics that can be generated.
var kinds = []struct {
	name, about string
	generate    func(netlist.Shape) (*netlist.Netlist, error)
}{
	{"single", "hosts on one switch", netlist.Single},
	{"ft2", "two-level fat tree: leaves and spines", netlist.FatTree2},
	{"ft3", "three-level fat tree: leaves, aggregation, cores", netlist.FatTree3},
	{"chain", "a row of switches with hosts on each", netlist.Chain},
	{"islands", "switches with hosts and no cable between them", netlist.Islands},
	{"torus", "switches with hosts in closed rows of up to three dimensions", netlist.Torus},
	{"mesh", "switches with hosts in open rows of up to three dimensions", netlist.Mesh},
	{"hypercube", "switches with hosts, a power of two of them", netlist.Hypercube},
	{"dfplus", "dragonfly+: groups of leaves and spines", netlist.DragonflyPlus},
	{"rail", "rail-optimised pods: a leaf for each HCA of 32 hosts", netlist.RailPods},
	{"dualport", "two switches and hosts with a port on each", netlist.DualPort},
}

func generateCommand() *cobra.Command {
	var shape netlist.Shape
	var names, lines []string
	for _, k := range kinds {
		names = append(names, k.name)
		lines = append(lines, fmt.Sprintf("  %-9s %s", k.name, k.about))
	}
	c := &cobra.Command{
		Use:   "generate KIND",
		Short: "Print the netlist of a regular fabric",
		Long:  "Print the netlist of a regular fabric. KIND is one of\n\n" + strings.Join(lines, "\n") + "\n\nThe first host is called sm, the others h1, h2, ...; further HCAs of a host h1-2,\nh1-3, ... The same call produces the same file.",
		Example: "  portcullis-sim generate ft2 --hosts 36 > fabric.net\n" +
			"  portcullis-sim generate ft3 --hosts 10000 --link 4xNDR > large.net\n" +
			"  portcullis-sim generate rail --hosts 128 --link 4xNDR > pod.net\n" +
			"  portcullis-sim generate dfplus --groups 4 --leaves 3 --spines 3 --links 2 --hosts 24 > dfplus.net\n" +
			"  portcullis-sim generate torus --size 5x4x3 --hosts 60 --routers 1 > torus.net",
		Args: one("one kind"),
		RunE: func(c *cobra.Command, args []string) error {
			for _, k := range kinds {
				if k.name != args[0] {
					continue
				}
				l, err := k.generate(shape)
				if err != nil {
					return err
				}
				if _, err := l.WriteTo(c.OutOrStdout()); err != nil {
					return fmt.Errorf("write netlist: %w", err)
				}
				return nil
			}
			return usageError{fmt.Errorf("unknown kind %q: want %s", args[0], strings.Join(names, ", "))}
		},
	}
	f := c.Flags()
	f.IntVar(&shape.Hosts, "hosts", 0, "number of hosts, including sm (default 8, for rail 32)")
	f.IntVar(&shape.HCAs, "hcas", 0, "HCAs of each host except sm (default 1, for rail 8)")
	f.IntVar(&shape.Radix, "radix", 0, "ports of a switch (default 36, for rail 64)")
	f.IntVar(&shape.Leaves, "leaves", 0, "leaf switches of ft2, 0 means as few as fit; for dfplus of each group")
	f.IntVar(&shape.Spines, "spines", 0, "spine switches of ft2, 0 means as few as fit; for dfplus of each group")
	f.IntVar(&shape.Switches, "switches", 2, "switches of chain, islands and hypercube")
	f.StringVar(&shape.Size, "size", "", "switches of torus and mesh along each dimension, such as 5x4x3 (default 4x4)")
	f.IntVar(&shape.Groups, "groups", 0, "groups of dfplus (default 3)")
	f.IntVar(&shape.Links, "links", 0, "cables between each two groups of dfplus (default 1)")
	f.IntVar(&shape.Routers, "routers", 0, "routers, each on a free port of a switch, leaves first")
	f.StringVar(&shape.Link, "link", "4xEDR", "width and speed of the cables")
	return c
}

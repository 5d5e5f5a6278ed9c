package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"portcullis/fabricsm/sim/hosttree"
	"portcullis/fabricsm/sim/netlist"
)

func sysfsCommand() *cobra.Command {
	var (
		host hosttree.Host
		hcas []string
		out  string
	)
	c := &cobra.Command{
		Use:   "sysfs NETLIST --hca NODE... --out DIR",
		Short: "Write the kernel's files about the adapters of a simulated host",
		Long: "Write the kernel's files about the adapters of a simulated host: sysfs into\n" +
			"DIR/sys, procfs into DIR/proc. Each --hca names an HCA of the netlist; the first\n" +
			"is mlx5_0, the next mlx5_1, and so on.",
		Example: "  portcullis-sim sysfs fabric.net --hca h1 --hca h1-2 --out host-1",
		Args:    one("one netlist"),
		RunE: func(c *cobra.Command, args []string) error {
			if len(hcas) == 0 || out == "" {
				return usageError{errors.New("want at least one --hca, and --out")}
			}
			l, err := readNetlist(args[0], c.InOrStdin())
			if err != nil {
				return err
			}
			if host.HCAs, err = findAll(l, args[0], hcas); err != nil {
				return err
			}
			if host.Name == "" {
				host.Name = hcas[0]
			}
			return hosttree.Write(out, host)
		},
	}
	f := c.Flags()
	f.StringArrayVar(&hcas, "hca", nil, "HCA of the host, a node of the netlist (repeat for more)")
	f.StringVar(&out, "out", "", "directory to write to")
	f.StringVar(&host.Name, "name", "", "name of the host (default: the first HCA)")
	f.StringVar(&host.Firmware, "firmware", hosttree.DefaultFirmware, "firmware version of the HCAs")
	f.StringVar(&host.PSID, "psid", hosttree.DefaultPSID, "board id of the HCAs")
	f.StringVar(&host.BootID, "boot-id", "", "boot id (default: a new random one)")
	return c
}

func findAll(l *netlist.Netlist, file string, names []string) (nodes []*netlist.Node, err error) {
	var problems []error
	for _, name := range names {
		n := l.Find(name)
		if n == nil {
			problems = append(problems, fmt.Errorf("%s has no node %q", file, name))
		}
		nodes = append(nodes, n)
	}
	return nodes, errors.Join(problems...)
}

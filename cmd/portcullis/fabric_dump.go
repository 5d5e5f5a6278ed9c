package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
)

func (a *app) fabricLFTs() *cobra.Command {
	opensm := false
	cmd := &cobra.Command{
		Use: "lfts [SWITCH]", Short: "Show forwarding tables", Args: atMost("SWITCH"),
		Long: `Show forwarding tables: a summary of all switches, or every entry of one switch.

--opensm writes them in the format of OpenSM's opensm-lfts.dump.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			node := strings.Join(args, "")
			switch {
			case opensm:
				return c.Dump(cmd.Context(), a.stdout, "opensm-lfts", node)
			case node == "":
				page, err := gather(c.Tables(cmd.Context(), v1.PageQuery{Limit: v1.MaxPage}))
				if err != nil {
					return err
				}
				return list(a, page, "no switch is seen", []string{"SWITCH GUID", "NAME", "LID", "ROUTES", "BLOCKS", "PORTS IN USE", "LIDS PER TRUNK"},
					func(t *v1.FabricTable) []string {
						return []string{t.GUID.String(), t.Name, lidText(t.LID), strconv.Itoa(t.Routed), strconv.Itoa(t.Blocks), strconv.Itoa(t.Ports), spread(t)}
					})
			}
			page, err := gather(c.Table(cmd.Context(), node, v1.PageQuery{Limit: v1.MaxPage}))
			if err != nil {
				return err
			}
			return list(a, page, "the switch has no routes", []string{"LID", "PORT", "TO", "OWNER"}, func(e *v1.FabricEntry) []string {
				return []string{lidText(e.LID), strconv.Itoa(int(e.Out)), peerOf(e.Via), peerOf(e.Owner)}
			})
		},
	}
	cmd.Flags().BoolVar(&opensm, "opensm", false, "write the format of opensm-lfts.dump")
	return cmd
}

func spread(t *v1.FabricTable) string {
	switch {
	case t.Most == 0:
		return ""
	case t.Least == t.Most:
		return strconv.Itoa(t.Most)
	default:
		return fmt.Sprintf("%d to %d", t.Least, t.Most)
	}
}

// atMost demands no more operands than are named.
func atMost(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= len(names) {
			return nil
		}
		return operands(names...)(cmd, args)
	}
}

// dumpFormats are the formats of "fabric dump".
var dumpFormats = []string{"ibnetdiscover", "opensm-subnet-lst", "opensm-lfts", "opensm-fdbs", "opensm-mcfdbs", "guid2lid", "ibdmchk-path-sl", "ibdmchk-sl2vl"}

func (a *app) fabricDump() *cobra.Command {
	format, node, file := dumpFormats[0], "", ""
	cmd := &cobra.Command{
		Use: "dump", Short: "Write the fabric as a file for other tools", Args: operands(),
		Long: `Write the fabric as a file for other tools. The formats:

  ibnetdiscover      what ibnetdiscover prints; fabric diff and simulators read it
  opensm-subnet-lst  opensm-subnet.lst
  opensm-lfts        opensm-lfts.dump, which OpenSM's file engine reads
  opensm-fdbs        opensm.fdbs
  opensm-mcfdbs      opensm.mcfdbs: multicast
  guid2lid           guid2lid of OpenSM's cache
  ibdmchk-path-sl    service levels, for ibdmchk -c
  ibdmchk-sl2vl      virtual lanes, for ibdmchk -d`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			return a.toFile(file, func(w io.Writer) error { return c.Dump(cmd.Context(), w, format, node) })
		},
	}
	f := cmd.Flags()
	f.Var(&choice{&format, dumpFormats}, "format", "which format")
	f.StringVar(&node, "switch", "", "opensm-lfts of this switch only")
	f.StringVar(&file, "out", "", "file to write; it appears when it is complete (default: standard output)")
	return cmd
}

// toFile runs write for a file, or standard output for "". A file is there as a
// whole or not at all.
func (a *app) toFile(name string, write func(io.Writer) error) error {
	if name == "" {
		return write(a.stdout)
	}
	f, err := os.CreateTemp(dirOf(name), ".portcullis-")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer os.Remove(f.Name())
	err = write(f)
	if e := f.Close(); err == nil && e != nil {
		err = fmt.Errorf("write %s: %w", name, e)
	}
	if err != nil {
		return err
	}
	if err := os.Chmod(f.Name(), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func dirOf(name string) string {
	if i := strings.LastIndexByte(name, os.PathSeparator); i >= 0 {
		return name[:i+1]
	}
	return "."
}

package fabric

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

func fabricLFTs(env *cli.Env) *cobra.Command {
	opensm := false
	cmd := &cobra.Command{
		Use: "lfts [SWITCH]", Short: "Show forwarding tables", Args: atMost("SWITCH"),
		Long: `Show forwarding tables: a summary of all switches, or every entry of one switch.

--opensm writes them in the format of OpenSM's opensm-lfts.dump.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			node := strings.Join(args, "")
			switch {
			case opensm:
				return c.Fabric().Dump(cmd.Context(), env.Out, "opensm-lfts", node)
			case node == "":
				page, err := gather(c.Fabric().Tables(cmd.Context(), v1.PageQuery{Limit: v1.MaxPage}))
				if err != nil {
					return err
				}
				return list(env, page, "no switch is seen", []string{"SWITCH GUID", "NAME", "LID", "ROUTES", "BLOCKS", "PORTS IN USE", "LIDS PER TRUNK"},
					func(t *v1.FabricTable) []string {
						return []string{t.GUID.String(), t.Name, cli.LID(t.LID), strconv.Itoa(t.Routed), strconv.Itoa(t.Blocks), strconv.Itoa(t.Ports), spread(t)}
					})
			}
			page, err := gather(c.Fabric().Table(cmd.Context(), node, v1.PageQuery{Limit: v1.MaxPage}))
			if err != nil {
				return err
			}
			return list(env, page, "the switch has no routes", []string{"LID", "PORT", "TO", "OWNER"}, func(e *v1.FabricEntry) []string {
				return []string{cli.LID(e.LID), strconv.Itoa(int(e.Out)), peerOf(e.Via), peerOf(e.Owner)}
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
		return cli.Operands(names...)(cmd, args)
	}
}

// dumpFormats are the formats of "fabric dump".
var dumpFormats = []string{"ibnetdiscover", "opensm-subnet-lst", "opensm-lfts", "opensm-fdbs", "opensm-mcfdbs", "guid2lid", "ibdmchk-path-sl", "ibdmchk-sl2vl"}

func fabricDump(env *cli.Env) *cobra.Command {
	format, node, file := dumpFormats[0], "", ""
	cmd := &cobra.Command{
		Use: "dump", Short: "Write the fabric as a file for other tools", Args: cli.Operands(),
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
			c, err := env.Connect()
			if err != nil {
				return err
			}
			return env.ToFile(file, func(w io.Writer) error { return c.Fabric().Dump(cmd.Context(), w, format, node) })
		},
	}
	f := cmd.Flags()
	f.Var(cli.OneOf(&format, dumpFormats), "format", "which format")
	f.StringVar(&node, "switch", "", "opensm-lfts of this switch only")
	f.StringVar(&file, "out", "", "file to write; it appears when it is complete (default: standard output)")
	return cmd
}

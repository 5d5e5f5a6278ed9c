package fabric

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"portcullis/cmd/internal/input"
	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/netlist/netdiff"

	v1 "portcullis/api/v1"
)

func fabricDiff(env *cli.Env) *cobra.Command {
	var (
		o      netdiff.Options
		wanted bool
		host   string
	)
	cmd := &cobra.Command{
		Use: "diff {OLD [NEW] | --wanted}", Short: "Show what changed since a dump, or what differs from a plan or from what is wanted",
		Args: func(cmd *cobra.Command, args []string) error {
			if wanted {
				return cli.Operands()(cmd, args)
			}
			return cli.OneOrTwo("OLD", "NEW")(cmd, args)
		},
		Long: `Show what is missing, new, moved or slower now, compared with OLD. OLD is a file that
"portcullis fabric dump" or ibnetdiscover wrote, or a netlist of a simulator. With
NEW the two files are compared, and no service is asked.

With --wanted the P_Key tables of hosts and of the switch ports in front of them, and
the enforcement of these, are compared with memberships. They are what the service
read last from the devices, past its Subnet Manager; nothing is read now. Kinds are
  absent        a port with memberships was not found where it is declared
  missing       the table lacks a P_Key
  membership    the table has it with the other membership
  leaving       the table still has a P_Key whose membership is being withdrawn
  stray         the table has a P_Key that no membership explains
  not-enforced  the switch port does not check packets that come in, or go out
  unread        the table or the setting was not read

Exit status: 0 if there is no difference, 1 if there is one, and 2 if the two could
not be compared.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if wanted {
				return showDrift(cmd.Context(), env, v1.DriftQuery{Host: host, PageQuery: v1.PageQuery{Limit: v1.MaxPage}})
			}
			if host != "" {
				return cli.NotCompared(errors.New("--host is for --wanted alone"))
			}
			changes, err := compare(cmd.Context(), env, args, o)
			if err != nil {
				return cli.NotCompared(err)
			}
			if err := env.Print(changes, func(w *cli.Columns) { showChanges(w, changes) }); err != nil {
				return cli.NotCompared(err)
			}
			if len(changes) > 0 {
				return cli.ErrNo
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&wanted, "wanted", false, "compare with memberships what devices were read to hold")
	f.StringVar(&host, "host", "", "with --wanted: only ports of this host")
	f.BoolVar(&o.Names, "names", false, "compare descriptions, too")
	f.BoolVar(&o.LIDs, "lids", false, "compare LIDs, too")
	f.BoolVar(&o.Faster, "faster", false, "list links that are faster, too")
	return cmd
}

func compare(ctx context.Context, env *cli.Env, args []string, o netdiff.Options) ([]netdiff.Change, error) {
	old, err := readNetlist(args[0])
	if err != nil {
		return nil, err
	}
	var now *netlist.Netlist
	if len(args) == 2 {
		now, err = readNetlist(args[1])
	} else {
		now, err = presentNetlist(ctx, env)
	}
	if err != nil {
		return nil, err
	}
	changes := netdiff.Compare(old, now, o)
	if changes == nil {
		changes = []netdiff.Change{}
	}
	return changes, nil
}

func readNetlist(file string) (*netlist.Netlist, error) {
	data, err := input.ReadFile(file, input.Large)
	if err != nil {
		return nil, fmt.Errorf("read the fabric to compare with: %w", err)
	}
	l, err := netlist.Parse(file, data)
	if err != nil {
		return nil, cli.Hint(err, "want a file that portcullis fabric dump or ibnetdiscover wrote, or a netlist")
	}
	return l, nil
}

func presentNetlist(ctx context.Context, env *cli.Env) (*netlist.Netlist, error) {
	c, err := env.Connect()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := c.Fabric().Dump(ctx, &text, dumpFormats[0], ""); err != nil {
		return nil, err
	}
	return netlist.Parse("of the service", text.Bytes())
}

func showChanges(w *cli.Columns, changes []netdiff.Change) {
	if len(changes) == 0 {
		w.Text("no difference")
		return
	}
	w.Row("CHANGE", "WHAT", "NAME", "GUID", "DETAIL")
	kinds := map[netdiff.Kind]int{}
	for _, c := range changes {
		kinds[c.Kind]++
		w.Row(c.Kind.String(), c.What, c.Name, c.GUID, c.Detail)
	}
	var parts []string
	for k := netdiff.Gone; k <= netdiff.Readdressed; k++ {
		if kinds[k] > 0 {
			parts = append(parts, fmt.Sprintf("%d %v", kinds[k], k))
		}
	}
	w.Gap()
	w.Text("%s: %s", cli.Count(len(changes), "difference"), strings.Join(parts, ", "))
}

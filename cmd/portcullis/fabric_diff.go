package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"portcullis/cmd/internal/input"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/netlist/netdiff"
)

func (a *app) fabricDiff() *cobra.Command {
	var o netdiff.Options
	cmd := &cobra.Command{
		Use: "diff OLD [NEW]", Short: "Show what changed since a dump, or what differs from a plan", Args: oneOrTwo("OLD", "NEW"),
		Long: `Show what is missing, new, moved or slower now, compared with OLD. OLD is a file that
"portcullis fabric dump" or ibnetdiscover wrote, or a netlist of a simulator. With
NEW the two files are compared, and no service is asked.

Exit status: 0 if there is no difference, 1 if there is one, and 2 if the two could
not be compared.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			changes, err := a.compare(cmd.Context(), args, o)
			if err != nil {
				return &troubled{err}
			}
			if err := a.print(changes, func(w *columns) { showChanges(w, changes) }); err != nil {
				return &troubled{err}
			}
			if len(changes) > 0 {
				return errNo
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.Names, "names", false, "compare descriptions, too")
	f.BoolVar(&o.LIDs, "lids", false, "compare LIDs, too")
	f.BoolVar(&o.Faster, "faster", false, "list links that are faster, too")
	return cmd
}

func oneOrTwo(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			names = names[:1]
		}
		return operands(names...)(cmd, args)
	}
}

func (a *app) compare(ctx context.Context, args []string, o netdiff.Options) ([]netdiff.Change, error) {
	old, err := readNetlist(args[0])
	if err != nil {
		return nil, err
	}
	var now *netlist.Netlist
	if len(args) == 2 {
		now, err = readNetlist(args[1])
	} else {
		now, err = a.presentNetlist(ctx)
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
		return nil, hint(err, "want a file that portcullis fabric dump or ibnetdiscover wrote, or a netlist")
	}
	return l, nil
}

func (a *app) presentNetlist(ctx context.Context) (*netlist.Netlist, error) {
	c, err := a.connect()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := c.Dump(ctx, &text, dumpFormats[0], ""); err != nil {
		return nil, err
	}
	return netlist.Parse("of the service", text.Bytes())
}

func showChanges(w *columns, changes []netdiff.Change) {
	if len(changes) == 0 {
		w.text("no difference")
		return
	}
	w.row("CHANGE", "WHAT", "NAME", "GUID", "DETAIL")
	kinds := map[netdiff.Kind]int{}
	for _, c := range changes {
		kinds[c.Kind]++
		w.row(c.Kind.String(), c.What, c.Name, c.GUID, c.Detail)
	}
	var parts []string
	for k := netdiff.Gone; k <= netdiff.Readdressed; k++ {
		if kinds[k] > 0 {
			parts = append(parts, fmt.Sprintf("%d %v", kinds[k], k))
		}
	}
	w.gap()
	w.text("%s: %s", count(len(changes), "difference"), strings.Join(parts, ", "))
}

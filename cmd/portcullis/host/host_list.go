package host

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/ib"
)

func hostList(env *cli.Env) *cobra.Command {
	var q v1.HostQuery
	var labels cli.LabelColumn
	view := ""
	cmd := &cobra.Command{
		Use: "list", Short: "List hosts and why they are not admitted", Args: cli.Operands(),
		Long: `List hosts and why they are not admitted.

The options select hosts; a host is listed if it meets all of them. A host that is released
belongs to no tenant and no cluster.

JSON, YAML and wide tables are made of all of each host, about 2 kB for a host of 8 adapters.
--view shows less.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if view == "" && (env.Wide() || !env.Tabular()) {
				view = v1.ViewFull
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			switch view {
			case v1.ViewFull:
				hosts, err := c.Hosts().List(cmd.Context(), q)
				if err != nil {
					return err
				}
				return env.Print(v1.List[v1.Host]{Items: hosts}, func(w *cli.Columns) {
					if w.Wide {
						wideTable(w, &labels, hosts)
						return
					}
					lines := make([]v1.HostSummary, len(hosts))
					for i := range hosts {
						lines[i] = hosts[i].Summary()
					}
					hostTable(w, &labels, lines)
				})
			case v1.ViewID:
				q.Limit = v1.MaxPage
				ids, err := c.Hosts().IDs(cmd.Context(), q)
				if err != nil {
					return err
				}
				return env.Print(v1.List[v1.HostID]{Items: ids}, func(w *cli.Columns) {
					for _, h := range ids {
						w.Text("%s", h.ID)
					}
				})
			default:
				hosts, err := c.Hosts().Summaries(cmd.Context(), q)
				if err != nil {
					return err
				}
				return env.Print(v1.List[v1.HostSummary]{Items: hosts}, func(w *cli.Columns) { hostTable(w, &labels, hosts) })
			}
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.Tenant, "tenant", "", "only hosts of clusters of this tenant")
	f.StringVar(&q.Cluster, "cluster", "", "only hosts of this cluster")
	f.Var(cli.OneOf((*string)(&q.Phase), phases()), "phase", "only hosts in this phase")
	f.StringVar(&q.Rack, "rack", "", "only hosts of this rack, as inventory has it")
	f.StringVar(&q.Prefix, "prefix", "", "only hosts whose ids begin with this text")
	cli.SelectorFlag(cmd, &q.Selector, "only hosts whose labels meet this")
	labels.Register(cmd)
	f.Var(cli.OneOf(&view, []string{v1.ViewFull, v1.ViewSummary, v1.ViewID}), "view", "how much to show of each host; JSON and YAML show full without it")
	return cmd
}

func phases() []string {
	all := []v1.Phase{
		v1.PhaseQuarantined, v1.PhaseAwaiting, v1.PhaseVerified, v1.PhaseGranting, v1.PhaseAdmitted, v1.PhaseReleasing,
	}
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = string(p)
	}
	return names
}

func hostTable(w *cli.Columns, labels *cli.LabelColumn, hosts []v1.HostSummary) {
	w.Row(labels.Head("HOST", "TENANT", "CLUSTER", "PHASE", "P_KEY", "WHY NOT")...)
	for i := range hosts {
		h := &hosts[i]
		w.Row(labels.Cells(h.Labels, h.ID, h.Tenant, h.Cluster, string(h.Phase), cli.PKey(h.PKey), h.Why)...)
	}
}

// wideTable is hostTable with what a full view has.
func wideTable(w *cli.Columns, labels *cli.LabelColumn, hosts []v1.Host) {
	w.Row(labels.Head("HOST", "TENANT", "CLUSTER", "PHASE", "P_KEY", "EPOCH", "SINCE", "ATTESTED", "CLASS", "RACK", "ADAPTERS", "PORTS SEEN", "WHY NOT")...)
	for i := range hosts {
		h, s := &hosts[i], hosts[i].Summary()
		ports, seen := 0, 0
		for k := range h.HCAs {
			for j := range h.HCAs[k].Ports {
				if ports++; h.HCAs[k].Ports[j].Seen != (ib.Place{}) {
					seen++
				}
			}
		}
		w.Row(labels.Cells(h.Labels, h.ID, h.Tenant, h.Cluster, string(s.Phase), cli.PKey(s.PKey), strconv.FormatInt(h.Epoch, 10), cli.Stamp(s.Since),
			cli.Stamp(h.Status.Attested), h.Class, h.Rack, strconv.Itoa(len(h.HCAs)), fmt.Sprintf("%d of %d", seen, ports), s.Why)...)
	}
}

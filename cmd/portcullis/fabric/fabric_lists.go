package fabric

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/ib"
)

func fabricNodes(env *cli.Env) *cobra.Command {
	var q v1.NodeQuery
	cmd := &cobra.Command{
		Use: "nodes", Short: "List switches, CAs and routers", Args: cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			q.Limit = v1.MaxPage
			page, err := gather(c.Fabric().Nodes(cmd.Context(), q))
			if err != nil {
				return err
			}
			return list(env, page, "no such node is seen", []string{"NODE GUID", "TYPE", "NAME", "HOST", "LID", "PORTS", "ACTIVE", "PROBLEM"},
				func(n *v1.FabricNode) []string {
					name := n.Description
					if name == "" {
						name = n.Name
					}
					return []string{n.GUID.String(), n.Type, name, n.Host, cli.LID(n.LID), strconv.Itoa(n.Ports), strconv.Itoa(n.Active), n.Problem}
				})
		},
	}
	f := cmd.Flags()
	f.Var(cli.OneOf(&q.Type, []string{"switch", "CA", "router"}), "type", "only nodes of this type")
	f.StringVar(&q.Host, "host", "", "only nodes of this host of the inventory")
	f.BoolVar(&q.Problem, "problem", false, "only nodes with a problem")
	return cmd
}

func fabricPorts(env *cli.Env) *cobra.Command {
	var q v1.PortQuery
	cmd := &cobra.Command{
		Use: "ports", Short: "List ports with place, state, link and partitions", Args: cli.Operands(),
		Long: `List ports with place, state, link and partitions.

A port without a cable is listed only if its switch, its node or its state is
selected.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.Host != "" && q.Switch != "" || q.Host != "" && q.Node != "" || q.Switch != "" && q.Node != "" {
				return &cli.UsageError{Msg: "--host, --switch and --node exclude each other", Hint: "use one of them"}
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			q.Limit = v1.MaxPage
			page, err := gather(c.Fabric().Ports(cmd.Context(), q))
			if err != nil {
				return err
			}
			return list(env, page, "no such port is seen", portHeader, portRow)
		},
	}
	f := cmd.Flags()
	f.Var(cli.OneOf(&q.State, []string{"Down", "Init", "Armed", "Active"}), "state", "only ports in this state")
	f.StringVar(&q.Host, "host", "", "only ports of this host, as inventory or its adapter names it")
	f.StringVar(&q.Switch, "switch", "", "all ports of this switch")
	f.StringVar(&q.Node, "node", "", "all ports of this node")
	f.Var(cli.OneOf(&q.Type, []string{"switch", "CA", "router"}), "type", "only ports of nodes of this type")
	f.BoolVar(&q.Problem, "problem", false, "only ports with a problem")
	return cmd
}

var portHeader = []string{"PORT", "GUID", "LID", "STATE", "WIDTH", "SPEED", "MTU", "CABLED TO", "HOST", "P_KEYS", "PROBLEM"}

func portRow(p *v1.FabricPort) []string {
	mtu := ""
	if p.MTU > 0 {
		mtu = strconv.Itoa(p.MTU)
	}
	return []string{
		portOf(p.Name, p.Num), cli.GUID(p.GUID), cli.LID(p.LID), p.State, p.Width, p.Speed, mtu,
		peerOf(p.Peer), p.Host, someKeys(p.PKeys), trouble(p.Problem, p.Degraded),
	}
}

// shownKeys is how many P_Keys a table lists of a port.
const shownKeys = 4

func someKeys(keys []ib.PKey) string {
	if len(keys) <= shownKeys {
		return cli.PKeys(keys)
	}
	return fmt.Sprintf("%s +%d", cli.PKeys(keys[:shownKeys]), len(keys)-shownKeys)
}

func fabricLinks(env *cli.Env) *cobra.Command {
	var q v1.LinkQuery
	cmd := &cobra.Command{
		Use: "links", Short: "List cables with both ends, width, speed and problems", Args: cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			q.Limit = v1.MaxPage
			page, err := gather(c.Fabric().Links(cmd.Context(), q))
			if err != nil {
				return err
			}
			return list(env, page, "no such link is seen", []string{"A", "B", "STATE", "WIDTH", "SPEED", "GB/S", "MTU", "PROBLEM"},
				func(l *v1.FabricLink) []string {
					return []string{
						peerOf(&l.A), peerOf(&l.B), l.State, l.Width, l.Speed, gigabits(l.Rate), strconv.Itoa(l.MTU),
						trouble(l.Problem, l.Degraded),
					}
				})
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.Node, "node", "", "only links of this node")
	f.BoolVar(&q.Trunks, "trunks", false, "only links between switches")
	f.BoolVar(&q.Degraded, "degraded", false, "only links below what both ends offer")
	f.BoolVar(&q.Problem, "problem", false, "only links with a problem")
	return cmd
}

func gigabits(rate int) string {
	if rate == 0 {
		return ""
	}
	return fmt.Sprint(float64(rate) / 1000)
}

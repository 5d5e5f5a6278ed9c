package fabric

import (
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/ib"
)

func fabricCommand(env *cli.Env) *cobra.Command {
	c := cli.Group("fabric", "Show the fabric as the subnet manager sees it", fabricShow(env), fabricNodes(env), fabricPorts(env),
		fabricLinks(env), fabricLoad(env), fabricHistory(env), fabricRoute(env), fabricLFTs(env), fabricDump(env), fabricDiff(env), fabricHealth(env), fabricViolations(env), fabricTopology(env),
		fabricSA(env), fabricGroups(env), fabricMembers(env), fabricServices(env), fabricSubscriptions(env), fabricAliases(env),
		fabricKeys(env), fabricReleaseKeys(env))
	c.Long = `Show the fabric as the subnet manager sees it.

A node is named by GUID, by the host of the inventory that owns it, by the
description that it reports, or by LID. Tables show the description of a node if
no other node has the same one, and its GUID otherwise.`
	return c
}

func fabricShow(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Count nodes, ports and links, and list what is wrong", Args: cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			o, err := c.Fabric().Overview(cmd.Context())
			if err != nil {
				return err
			}
			return env.Print(o, func(w *cli.Columns) { showOverview(w, o) })
		},
	}
}

func showOverview(w *cli.Columns, o *v1.Overview) {
	w.Row("Fabric", cli.NodeCounts(o.Nodes))
	w.Row("Settled", settledText(o.Settled, o.Phase)+"; seen "+cli.Stamp(o.Observed))
	w.Row("Subnet manager", fmt.Sprintf("%s at %v, LID %v, priority %d", o.State, o.GUID, o.LID, o.Priority))
	w.Row("Routing", routingText(&o.Routing))
	w.Row("Ports", cli.PortCounts(&o.Ports))
	for i, k := range o.Links {
		w.Row(first(i, "Links"), fmt.Sprintf("%d of %s", k.Count, linkText(k.Width, k.Speed, k.Rate)))
	}
	if o.Degraded > 0 {
		w.Row("Degraded", cli.Count(o.Degraded, "link")+" below what both ends offer: portcullis fabric links --degraded")
	}
	w.Row("Partitions", strconv.Itoa(o.PKeys)+" besides the default one")
	if len(o.Faults) == 0 {
		w.Row("Problems", "none")
		return
	}
	w.Row("Problems", strconv.Itoa(len(o.Faults)))
	w.Gap()
	w.Row("KIND", "AT", "PROBLEM")
	for i, f := range o.Faults {
		if i == maxFaultRows {
			w.Gap()
			w.Text("and %d more: -o json has all", len(o.Faults)-i)
			break
		}
		w.Row(f.Kind, f.At, f.Text)
	}
}

// maxFaultRows is how many faults a table lists.
const maxFaultRows = 50

func first(i int, text string) string {
	if i == 0 {
		return text
	}
	return " "
}

func settledText(settled bool, phase string) string {
	if settled {
		return "yes"
	}
	return "no, busy with " + phase
}

func routingText(r *v1.RoutingInfo) string {
	if r.Engine == "" {
		return "no tables yet"
	}
	text := fmt.Sprintf("%s, %s up to %v", r.Engine, cli.Count(r.LIDs, "LID"), r.MaxLID)
	if r.Lanes > 1 {
		text += fmt.Sprintf(", %d lanes", r.Lanes)
	}
	return text + ", computed in " + cli.Seconds(r.Seconds)
}

// linkText returns width, speed and rate of a link: "4x EDR (100 Gb/s)".
func linkText(width, speed string, rate int) string {
	text := strings.TrimSpace(width + " " + speed)
	if text == "" {
		return "of unknown width"
	}
	if rate > 0 {
		text += fmt.Sprintf(" (%v Gb/s)", float64(rate)/1000)
	}
	return text
}

// portOf names a port as NODE/PORT.
func portOf(name string, num ib.PortNum) string { return fmt.Sprintf("%s/%d", name, num) }

func peerOf(p *v1.PortName) string {
	if p == nil {
		return ""
	}
	return portOf(p.Name, p.Num)
}

// trouble says what is wrong with a port or link, its rate included.
func trouble(problem, degraded string) string {
	switch {
	case degraded == "":
		return problem
	case problem == "":
		return "both ends offer " + degraded
	default:
		return problem + "; both ends offer " + degraded
	}
}

// gather joins all pages of a list.
func gather[T any](pages iter.Seq2[*v1.Page[T], error]) (*v1.Page[T], error) {
	all := &v1.Page[T]{Items: []T{}}
	for page, err := range pages {
		if err != nil {
			return nil, err
		}
		all.Observed, all.Settled = page.Observed, page.Settled
		all.Items = append(all.Items, page.Items...)
	}
	return all, nil
}

// unsettledNote says below a table that it may change.
func unsettledNote(w *cli.Columns, settled bool) {
	if !settled {
		w.Gap()
		w.Text("the fabric is not settled: this may change")
	}
}

// list prints a list with a note when it is empty.
func list[T any](env *cli.Env, page *v1.Page[T], none string, header []string, row func(*T) []string) error {
	return env.Print(page, func(w *cli.Columns) {
		if len(page.Items) == 0 {
			w.Text("%s", none)
		} else {
			w.Row(header...)
			for i := range page.Items {
				w.Row(row(&page.Items[i])...)
			}
		}
		unsettledNote(w, page.Settled)
	})
}

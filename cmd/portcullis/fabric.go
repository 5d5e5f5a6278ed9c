package main

import (
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

func (a *app) fabricCommand() *cobra.Command {
	c := group("fabric", "Show the fabric as the subnet manager sees it", a.fabricShow(), a.fabricNodes(), a.fabricPorts(),
		a.fabricLinks(), a.fabricRoute(), a.fabricLFTs(), a.fabricDump(), a.fabricDiff(), a.fabricHealth(), a.fabricViolations(), a.fabricTopology(),
		a.fabricSA(), a.fabricGroups(), a.fabricMembers(), a.fabricServices(), a.fabricSubscriptions(), a.fabricAliases(),
		a.fabricKeys(), a.fabricReleaseKeys())
	c.Long = `Show the fabric as the subnet manager sees it.

A node is named by GUID, by the host of the inventory that owns it, by the
description that it reports, or by LID. Tables show the description of a node if
no other node has the same one, and its GUID otherwise.`
	return c
}

func (a *app) fabricShow() *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Count nodes, ports and links, and list what is wrong", Args: operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			o, err := c.Overview(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(o, func(w *columns) { showOverview(w, o) })
		},
	}
}

func showOverview(w *columns, o *v1.Overview) {
	w.row("Fabric", nodeCounts(o.Nodes))
	w.row("Settled", settledText(o.Settled, o.Phase)+"; seen "+stamp(o.Observed))
	w.row("Subnet manager", fmt.Sprintf("%s at %v, LID %v, priority %d", o.State, o.GUID, o.LID, o.Priority))
	w.row("Routing", routingText(&o.Routing))
	w.row("Ports", portCounts(&o.Ports))
	for i, k := range o.Links {
		w.row(first(i, "Links"), fmt.Sprintf("%d of %s", k.Count, linkText(k.Width, k.Speed, k.Rate)))
	}
	if o.Degraded > 0 {
		w.row("Degraded", count(o.Degraded, "link")+" below what both ends offer: portcullis fabric links --degraded")
	}
	w.row("Partitions", strconv.Itoa(o.PKeys)+" besides the default one")
	if len(o.Faults) == 0 {
		w.row("Problems", "none")
		return
	}
	w.row("Problems", strconv.Itoa(len(o.Faults)))
	w.gap()
	w.row("KIND", "AT", "PROBLEM")
	for i, f := range o.Faults {
		if i == maxFaultRows {
			w.gap()
			w.text("and %d more: -o json has all", len(o.Faults)-i)
			break
		}
		w.row(f.Kind, f.At, f.Text)
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

// count returns a number and the name of the counted things: "1 switch", "3 switches".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if strings.HasSuffix(what, "h") {
		return strconv.Itoa(n) + " " + what + "es"
	}
	return strconv.Itoa(n) + " " + what + "s"
}

func nodeCounts(n v1.NodeCounts) string {
	text := count(n.Switches, "switch") + ", " + count(n.CAs, "CA")
	if n.Routers > 0 {
		text += ", " + count(n.Routers, "router")
	}
	return text
}

func portCounts(p *v1.PortCounts) string {
	text := strconv.Itoa(p.Cabled) + " with a cable"
	for _, s := range []struct {
		n    int
		name string
	}{{p.Active, "Active"}, {p.Armed, "Armed"}, {p.Init, "Init"}, {p.Down, "Down"}, {p.Unread, "not read yet"}} {
		if s.n > 0 {
			text += fmt.Sprintf(", %d %s", s.n, s.name)
		}
	}
	return text
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
	text := fmt.Sprintf("%s, %s up to %v", r.Engine, count(r.LIDs, "LID"), r.MaxLID)
	if r.Lanes > 1 {
		text += fmt.Sprintf(", %d lanes", r.Lanes)
	}
	return text + ", computed in " + seconds(r.Seconds)
}

// seconds returns a duration with a suitable unit.
func seconds(s float64) string {
	switch {
	case s < 0.001:
		return fmt.Sprintf("%.0f us", s*1e6)
	case s < 1:
		return fmt.Sprintf("%.1f ms", s*1e3)
	default:
		return fmt.Sprintf("%.2f s", s)
	}
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
func unsettledNote(w *columns, settled bool) {
	if !settled {
		w.gap()
		w.text("the fabric is not settled: this may change")
	}
}

// list prints a list with a note when it is empty.
func list[T any](a *app, page *v1.Page[T], none string, header []string, row func(*T) []string) error {
	return a.print(page, func(w *columns) {
		if len(page.Items) == 0 {
			w.text("%s", none)
		} else {
			w.row(header...)
			for i := range page.Items {
				w.row(row(&page.Items[i])...)
			}
		}
		unsettledNote(w, page.Settled)
	})
}

package fabric

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/ib"
)

func fabricRoute(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "route A B", Short: "Show how packets get from A to B and back", Args: cli.Operands("A", "B"),
		Long: `Show how packets get from A to B and back, and what prevents the two from talking.

A and B are end ports: a port GUID, a LID, a node, or NODE/PORT. LOAD is the number of
routes between hosts that use a link between switches in this direction, if all hosts talk
to all. Exit status 1 means that packets do not arrive, or that A and B share no
partition.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			r, err := c.Fabric().Routes(cmd.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			if err := env.Print(r, func(w *cli.Columns) { showRoutes(w, r) }); err != nil {
				return err
			}
			if r.There.Error != "" || r.Back.Error != "" || len(r.Shared) == 0 {
				return cli.ErrNo
			}
			return nil
		},
	}
}

func showRoutes(w *cli.Columns, r *v1.FabricRoutes) {
	w.Row(" ", "A", "B")
	ends := []*v1.FabricPort{&r.From, &r.To}
	pair := func(title string, f func(*v1.FabricPort) string) { w.Row(title, f(ends[0]), f(ends[1])) }
	pair("Port", func(p *v1.FabricPort) string { return portOf(p.Name, p.Num) })
	if r.From.Host != "" || r.To.Host != "" {
		pair("Host", func(p *v1.FabricPort) string { return p.Host })
	}
	pair("GUID", func(p *v1.FabricPort) string { return cli.GUID(p.GUID) })
	pair("LID", func(p *v1.FabricPort) string { return cli.LID(p.LID) })
	pair("State", func(p *v1.FabricPort) string { return p.State })
	pair("At", func(p *v1.FabricPort) string { return peerOf(p.Peer) })
	pair("P_Keys", func(p *v1.FabricPort) string { return someKeys(p.PKeys) })
	w.Gap()
	if len(r.Shared) > 0 {
		w.Text("shared partitions: %s", cli.PKeys(r.Shared))
	}
	for _, p := range r.Problems {
		w.Text("problem: %s", p)
	}
	w.Gap()
	showRoute(w, "There", &r.There)
	w.Gap()
	showRoute(w, "Back", &r.Back)
}

func showRoute(w *cli.Columns, title string, r *v1.FabricRoute) {
	if len(r.Hops) == 0 {
		w.Text("%s: %s", title, r.Error)
		return
	}
	text := fmt.Sprintf("%s: SL %d, %s", title, r.SL, cli.Count(r.Links, "link"))
	if r.Rate > 0 {
		text += fmt.Sprintf(", %v Gb/s", float64(r.Rate)/1000)
	}
	if r.Error != "" {
		text += ", and then: " + r.Error
	}
	w.Text("%s", text)
	w.Row("HOP", "NODE", "LID", "IN", "OUT", "LINK", "VL", "LOAD")
	for i, h := range r.Hops {
		vl, load := "", ""
		if h.Out != 0 {
			vl = strconv.Itoa(int(h.VL))
		}
		if h.Load > 0 {
			load = strconv.Itoa(h.Load)
		}
		link := ""
		if h.Width != "" {
			link = h.Width + " " + h.Speed
		}
		w.Row(strconv.Itoa(i), h.Name, cli.LID(h.LID), portNum(h.In), portNum(h.Out), link, vl, load)
	}
}

func portNum(p ib.PortNum) string {
	if p == 0 {
		return ""
	}
	return strconv.Itoa(int(p))
}

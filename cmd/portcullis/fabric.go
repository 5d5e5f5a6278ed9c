package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
)

func (a *app) fabricCommand() *cobra.Command {
	return group("fabric", "See the fabric as the subnet manager sees it", a.fabricShow())
}

func (a *app) fabricShow() *cobra.Command {
	var ports bool
	cmd := &cobra.Command{
		Use: "show [--ports]", Short: "Show nodes and links", Args: operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			f, err := c.Fabric(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(f, func(w *columns) {
				fabricSummary(w, f)
				switch {
				case len(f.Nodes) == 0:
				case ports:
					portTable(w, f)
				default:
					nodeTable(w, f)
				}
			})
		},
	}
	cmd.Flags().BoolVar(&ports, "ports", false, "a line for each port instead of each node")
	return cmd
}

func fabricSummary(w *columns, f *v1.Fabric) {
	if len(f.Nodes) == 0 {
		w.text("the subnet manager has not seen the fabric yet; portcullis sm status tells why")
		return
	}
	s := f.Summary
	text := fmt.Sprintf("%d switches, %d CAs, %d links, %d ports active", s.Switches, s.CAs, s.Links, s.ActivePorts)
	if s.Routers > 0 {
		text += fmt.Sprintf(", %d routers", s.Routers)
	}
	w.text("%s; seen %s", text, stamp(f.Observed))
	w.gap()
}

func nodeTable(w *columns, f *v1.Fabric) {
	w.row("NODE GUID", "TYPE", "PORTS", "HOST", "DESCRIPTION")
	for _, n := range f.Nodes {
		w.row(n.GUID.String(), n.Type, strconv.Itoa(len(n.Ports)), n.Host, n.Description)
	}
}

func portTable(w *columns, f *v1.Fabric) {
	w.row("NODE GUID/PORT", "LID", "STATE", "PEER", "HOST", "P_KEYS")
	for _, n := range f.Nodes {
		for _, p := range n.Ports {
			lid := ""
			if p.LID != 0 {
				lid = fmt.Sprint(p.LID)
			}
			w.row(fmt.Sprintf("%v/%d", n.GUID, p.Num), lid, p.State, p.Peer, n.Host, shownPKeys(&p))
		}
	}
}

// shownPKeys lists the P_Keys of a port, and how many its record leaves out.
func shownPKeys(p *v1.Port) string {
	s := pkeys(p.PKeys)
	if p.PKeysOmitted > 0 {
		s += fmt.Sprintf(" and %d more", p.PKeysOmitted)
	}
	return s
}

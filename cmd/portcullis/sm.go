package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

func (a *app) smCommand() *cobra.Command {
	return group("sm", "See the subnet manager", a.smStatus(), a.smTop())
}

func (a *app) smStatus() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show the state of the subnet manager", Args: operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			s, err := c.SM(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(s, func(w *columns) { showSM(w, s) })
		},
	}
}

func showSM(w *columns, s *v1.SM) {
	w.row("State", s.State)
	w.row("Settled", yesNo(s.Settled))
	w.row("Port GUID", guid(s.GUID))
	w.row("LID", lidText(s.LID))
	w.row("Priority", strconv.Itoa(int(s.Priority)))
	w.row("Requests pending", strconv.Itoa(s.Pending))
	w.row("Intent revision", strconv.FormatInt(s.Revision, 10))
	w.row("Updated", stamp(s.Updated))
	if len(s.Problems) > 0 {
		w.gap()
		for _, p := range s.Problems {
			w.text("problem: %s", p)
		}
	}
	if len(s.SMPs) > 0 {
		w.gap()
		w.row("SMP SENT", "COUNT")
		for _, name := range slices.SortedFunc(maps.Keys(s.SMPs), strings.Compare) {
			w.row(name, strconv.Itoa(s.SMPs[name]))
		}
	}
}

func guid(g ib.GUID) string {
	if g == 0 {
		return ""
	}
	return g.String()
}

func lidText(l ib.LID) string {
	if l == 0 {
		return ""
	}
	return fmt.Sprint(l)
}

func (a *app) pkeyCommand() *cobra.Command {
	return group("pkey", "See P_Keys that wait to be given out again", a.pkeyList())
}

func (a *app) pkeyList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List quarantined P_Keys and what they wait for", Args: operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			keys, err := c.QuarantinedPKeys(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(v1.List[v1.QuarantinedPKey]{Items: keys}, func(w *columns) {
				w.row("P_KEY", "QUARANTINED SINCE", "WAITING FOR")
				for _, k := range keys {
					w.row(k.PKey.String(), stamp(k.Since), strings.Join(k.Waiting, "; "))
				}
			})
		},
	}
}

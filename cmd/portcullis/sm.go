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
	return group("sm", "Show and control the subnet manager", a.smStatus(), a.smTop(), a.smForget(), a.smStepDown())
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

func (a *app) smForget() *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "forget --reason WHY", Short: "Treat the nodes that are out of sight as removed", Args: operands(),
		Long: `Treat the nodes that are out of sight as removed, for example those of a hall that was taken out of
service. They no longer make the subnet manager partly blind, and stopped work continues.
"portcullis sm status" lists them.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if reason == "" {
				return &usageError{msg: "--reason is missing", hint: "usage: " + cmd.UseLine()}
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			was, err := c.ForgetUnseen(cmd.Context(), v1.SightAccept{Reason: reason})
			if err != nil {
				return err
			}
			return a.print(was, func(w *columns) {
				w.text("%d nodes, %d ports and %d hosts that were out of sight are treated as removed", was.Nodes, was.Ports, was.Hosts)
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "reason why they do not come back, for the audit log")
	return c
}

func (a *app) smStepDown() *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "step-down --reason WHY", Short: "Let another instance lead as Subnet Manager", Args: operands(),
		Long: `End the term of the leading instance, so that another one leads, for example before its machine
is repaired. No LID, route or P_Key is written, and no packet is lost. "portcullis sm status"
shows which instance leads.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if reason == "" {
				return &usageError{msg: "--reason is missing", hint: "usage: " + cmd.UseLine()}
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			was, err := c.SM(cmd.Context())
			if err != nil {
				return err
			}
			if err := c.StepDown(cmd.Context(), v1.StepDown{Reason: reason}); err != nil {
				return err
			}
			return a.print(was.Leadership, func(w *columns) { w.text("%s steps down; portcullis sm status shows its successor", was.Leader) })
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "reason, for the audit log")
	return c
}

func showSM(w *columns, s *v1.SM) {
	showLeadership(w, &s.Leadership)
	w.row("State", s.State)
	w.row("Settled", yesNo(s.Settled))
	w.row("Port GUID", guid(s.GUID))
	w.row("LID", lidText(s.LID))
	w.row("Priority", strconv.Itoa(int(s.Priority)))
	w.row("Requests pending", strconv.Itoa(s.Pending))
	w.row("Intent revision", strconv.FormatInt(s.Revision, 10))
	w.row("Updated", stamp(s.Updated))
	showSight(w, &s.Sight)
	if len(s.Mute) > 0 {
		w.row("Mute switches", strconv.Itoa(len(s.Mute)))
		for _, g := range s.Mute {
			w.text("mute: switch %s sends no trap 259 for a wrong P_Key", guid(g))
		}
	}
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

// showLeadership says which of several instances leads.
func showLeadership(w *columns, l *v1.Leadership) {
	if len(l.Instances) == 0 {
		return
	}
	leader := l.Leader
	if leader == "" {
		leader = "none at this moment"
	}
	w.row("Leader", leader)
	w.row("Epoch", strconv.FormatUint(l.Epoch, 10))
	w.row("Leads since", stamp(l.Since))
	for _, i := range l.Instances {
		role := "standby"
		switch {
		case i.Name == l.Leader:
			role = "leads"
		case !i.Manages:
			role = "API only"
		}
		w.row("Instance", fmt.Sprintf("%s (%s) %s", i.Name, role, i.API))
	}
}

// showSight says whether the subnet manager sees what it knows, once that was judged.
func showSight(w *columns, s *v1.Sight) {
	if s.State == "" {
		return
	}
	w.row("Sight", s.State)
	if !s.Frozen() {
		return
	}
	w.row("Since", stamp(s.Since))
	w.row("Out of sight", fmt.Sprintf("%d of %d nodes, %d ports, %d hosts", s.Nodes, s.Known, s.Ports, s.Hosts))
	if len(s.Names) > 0 {
		names := strings.Join(s.Names, ", ")
		if s.More > 0 {
			names += fmt.Sprintf(" and %d more", s.More)
		}
		w.row("", names)
	}
	w.gap()
	w.text("%s: %s", s.State, s.Reason)
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
	return group("pkey", "Show P_Keys that wait to be used again", a.pkeyList())
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

package sm

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

func smCommand(env *cli.Env) *cobra.Command {
	return cli.Group("sm", "Show and control the subnet manager", smStatus(env), smTop(env), smForget(env), smStepDown(env))
}

func smStatus(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show the state of the subnet manager", Args: cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			s, err := c.SM().Get(cmd.Context())
			if err != nil {
				return err
			}
			return env.Print(s, func(w *cli.Columns) { showSM(w, s) })
		},
	}
}

func smForget(env *cli.Env) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "forget --reason WHY", Short: "Treat the nodes that are out of sight as removed", Args: cli.Operands(),
		Long: `Treat the nodes that are out of sight as removed, for example those of a hall that was taken out of
service. They no longer make the subnet manager partly blind, and stopped work continues.
"portcullis sm status" lists them.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if reason == "" {
				return &cli.UsageError{Msg: "--reason is missing", Hint: "usage: " + cmd.UseLine()}
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			was, err := c.SM().ForgetUnseen(cmd.Context(), v1.SightAccept{Reason: reason})
			if err != nil {
				return err
			}
			return env.Print(was, func(w *cli.Columns) {
				w.Text("%d nodes, %d ports and %d hosts that were out of sight are treated as removed", was.Nodes, was.Ports, was.Hosts)
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "reason why they do not come back, for the audit log")
	return c
}

func smStepDown(env *cli.Env) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "step-down --reason WHY", Short: "Let another instance lead as Subnet Manager", Args: cli.Operands(),
		Long: `End the term of the leading instance, so that another one leads, for example before its machine
is repaired. No LID, route or P_Key is written, and no packet is lost. "portcullis sm status"
shows which instance leads.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if reason == "" {
				return &cli.UsageError{Msg: "--reason is missing", Hint: "usage: " + cmd.UseLine()}
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			was, err := c.SM().Get(cmd.Context())
			if err != nil {
				return err
			}
			if err := c.SM().StepDown(cmd.Context(), v1.StepDown{Reason: reason}); err != nil {
				return err
			}
			return env.Print(was.Leadership, func(w *cli.Columns) { w.Text("%s steps down; portcullis sm status shows its successor", was.Leader) })
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "reason, for the audit log")
	return c
}

func showSM(w *cli.Columns, s *v1.SM) {
	showLeadership(w, &s.Leadership)
	w.Row("State", s.State)
	w.Row("Settled", cli.YesNo(s.Settled))
	w.Row("Port GUID", cli.GUID(s.GUID))
	w.Row("LID", cli.LID(s.LID))
	w.Row("Priority", strconv.Itoa(int(s.Priority)))
	w.Row("Requests pending", strconv.Itoa(s.Pending))
	w.Row("Intent revision", strconv.FormatInt(s.Revision, 10))
	w.Row("Updated", cli.Stamp(s.Updated))
	showSight(w, &s.Sight)
	if len(s.Mute) > 0 {
		w.Row("Mute switches", strconv.Itoa(len(s.Mute)))
		for _, g := range s.Mute {
			w.Text("mute: switch %s sends no trap 259 for a wrong P_Key", cli.GUID(g))
		}
	}
	if len(s.Problems) > 0 {
		w.Gap()
		for _, p := range s.Problems {
			w.Text("problem: %s", p)
		}
	}
	if len(s.SMPs) > 0 {
		w.Gap()
		w.Row("SMP SENT", "COUNT")
		for _, name := range slices.SortedFunc(maps.Keys(s.SMPs), strings.Compare) {
			w.Row(name, strconv.Itoa(s.SMPs[name]))
		}
	}
}

// showLeadership says which of several instances leads.
func showLeadership(w *cli.Columns, l *v1.Leadership) {
	if len(l.Instances) == 0 {
		return
	}
	leader := l.Leader
	if leader == "" {
		leader = "none at this moment"
	}
	w.Row("Leader", leader)
	w.Row("Epoch", strconv.FormatUint(l.Epoch, 10))
	w.Row("Leads since", cli.Stamp(l.Since))
	for _, i := range l.Instances {
		role := "standby"
		switch {
		case i.Name == l.Leader:
			role = "leads"
		case !i.Manages:
			role = "API only"
		}
		w.Row("Instance", fmt.Sprintf("%s (%s) %s", i.Name, role, i.API))
	}
}

// showSight says whether the subnet manager sees what it knows, once that was judged.
func showSight(w *cli.Columns, s *v1.Sight) {
	if s.State == "" {
		return
	}
	w.Row("Sight", s.State)
	if !s.Frozen() {
		return
	}
	w.Row("Since", cli.Stamp(s.Since))
	w.Row("Out of sight", fmt.Sprintf("%d of %d nodes, %d ports, %d hosts", s.Nodes, s.Known, s.Ports, s.Hosts))
	if len(s.Names) > 0 {
		names := strings.Join(s.Names, ", ")
		if s.More > 0 {
			names += fmt.Sprintf(" and %d more", s.More)
		}
		w.Row("", names)
	}
	w.Gap()
	w.Text("%s: %s", s.State, s.Reason)
}

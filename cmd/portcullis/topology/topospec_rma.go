package topology

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
)

func topospecRMA(env *cli.Env) *cobra.Command {
	c := cli.Group("rma", "Replace adapters and switches of the declared topology",
		rmaHCA(env), rmaSwitch(env), rmaList(env), rmaShow(env), rmaConfirm(env), rmaCancel(env))
	c.Long = `Replace adapters and switches of the declared topology. A window is opened for one place and a
limited time. The new device is seen and held there, and a host attests a new adapter. A second
person confirms each step. Each step is a revision, with all its guards. The last one assigns the
place of the old GUID to the new GUID, and retires the old one: wherever the old GUID is seen
again, it is cut off.

A new device must be a spare of the topology, of the same model as the old one.`
	return c
}

// replacing holds the options of the commands that open a replacement.
type replacing struct {
	in     v1.NewRMA
	window time.Duration
	an     string
	files  rmaFiles
}

func (r *replacing) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&r.in.Ticket, "ticket", "", "number or name of the repair ticket; it must be given")
	f.DurationVar(&r.window, "window", 4*time.Hour, "how long the place may be under maintenance")
	cli.ReasonFlag(cmd, &r.in.Reason)
	r.files.flags(cmd)
}

func nodeGUID(s string) (ib.GUID, error) {
	g, err := topospec.ParseGUID(s)
	if err != nil {
		return 0, &cli.UsageError{Msg: err.Error(), Hint: "the topology has the node GUIDs of its devices: portcullis topospec show"}
	}
	return g, nil
}

func rmaHCA(env *cli.Env) *cobra.Command {
	r := replacing{in: v1.NewRMA{Kind: v1.RMAAdapter}}
	cmd := &cobra.Command{
		Use: "hca OLD [NEW]", Short: "Replace an adapter", Args: cli.OneOrTwo("OLD", "NEW"),
		Long: `Open the replacement of the adapter with the node GUID OLD. Then:
  1. another person confirms it
  2. release the host, and put the new adapter in
  3. import the inventory with the new adapter, assign the host and let it attest
  4. another person confirms again
"portcullis topospec rma show" shows the next step.

The spare need not be named: it is the one that is seen at the place and that the host attests.
With --file no service is asked: the revision of --step (window or replace) is made from FILE,
for NEW.`,
		Example: `  portcullis topospec rma hca 0x0002c90300a1b2c0 --ticket RMA-7 --reason "port errors"
  portcullis topospec rma hca 0x0002c90300a1b2c0 --ticket RMA-7 --file rail-a.yaml --step window --out open.yaml
  portcullis topospec rma hca 0x0002c90300a1b2c0 0x0002c90300ffee00 --ticket RMA-7 --file open.yaml --step replace`,
		RunE: func(cmd *cobra.Command, args []string) error { return openRMA(env, cmd, args, &r) },
	}
	r.flags(cmd)
	return cmd
}

func rmaSwitch(env *cli.Env) *cobra.Command {
	r := replacing{in: v1.NewRMA{Kind: v1.RMASwitch}}
	cmd := &cobra.Command{
		Use: "switch OLD NEW", Short: "Replace a switch", Args: cli.Operands("OLD", "NEW"),
		Long: `Open the replacement of the switch with the node GUID OLD by the spare NEW. Then:
  1. another person confirms it
  2. exchange the switches, with each cable at the same port as before
  3. confirm that NEW has the place; the ports of its hosts stay off
  4. when its cables to other switches are verified, confirm that its hosts are let in
Keys and inventory follow.

With --file no service is asked: the revision of --step (window, replace or open) is made from
FILE. Step open needs --observed, in which the cables between switches must be as FILE has them.`,
		Example: `  portcullis topospec rma switch 0x0002c90200000010 0x0002c90200000099 --ticket RMA-8 --reason "fan failed"`,
		RunE:    func(cmd *cobra.Command, args []string) error { return openRMA(env, cmd, args, &r) },
	}
	r.flags(cmd)
	cmd.Flags().StringVar(&r.an, "aggregation-node", "", "node GUID of the aggregation node inside NEW, if the model has one")
	cmd.Flags().StringVar(&r.files.observed, "observed", "", "output of ibnetdiscover after step replace, with --step open")
	cmd.Flags().StringVar(&r.files.sm, "sm", "", "node GUID that the Subnet Manager runs on, with --observed")
	return cmd
}

// openRMA opens a replacement, or makes one revision of it.
func openRMA(env *cli.Env, cmd *cobra.Command, args []string, r *replacing) (err error) {
	if r.in.Ticket == "" {
		return &cli.UsageError{Msg: "no --ticket is given", Hint: "name the ticket of the repair"}
	}
	if r.in.Old, err = nodeGUID(args[0]); err != nil {
		return err
	}
	if len(args) > 1 {
		if r.in.New, err = nodeGUID(args[1]); err != nil {
			return err
		}
	}
	if r.an != "" {
		if r.in.AggregationNode, err = nodeGUID(r.an); err != nil {
			return err
		}
	}
	if r.files.name != "" {
		return writeRMA(cmd.Context(), env, r)
	}
	if r.in.Kind == v1.RMAAdapter && r.in.New != 0 {
		return &cli.UsageError{Msg: "NEW needs --file", Hint: "the service takes the adapter that is seen and attested"}
	}
	if err := cli.WantReason(r.in.Reason); err != nil {
		return err
	}
	r.in.Window = r.window.Seconds()
	return rmaStep(cmd.Context(), env, func(ctx context.Context, c *client.Client) (*v1.RMA, error) { return c.RMAs().Start(ctx, r.in) })
}

// rmaStep takes a step, and shows where the replacement stands.
func rmaStep(ctx context.Context, env *cli.Env, do func(context.Context, *client.Client) (*v1.RMA, error)) error {
	return cli.Show(ctx, env, do, showRMA)
}

func showRMA(w *cli.Columns, r *v1.RMA) {
	what := fmt.Sprintf("%s %v", r.Kind, r.Old)
	if r.New != 0 {
		what += fmt.Sprintf(" by %v", r.New)
	}
	w.Row("Ticket", r.Ticket)
	w.Row("Replaces", what)
	w.Row("At", r.Where)
	w.Row("State", r.State)
	w.Row("Next", r.Next)
	w.Row("Window", fmt.Sprintf("by %s, until %s: %s", r.By, cli.Stamp(r.Expires), r.Reason))
	if !r.Attested.IsZero() {
		w.Row("Attested", cli.Stamp(r.Attested)+" by "+r.Host)
	}
	w.Gap()
	w.Row("WHEN", "WHO", "REVISION", "WHAT")
	for _, s := range r.Steps {
		number := ""
		if s.Revision != 0 {
			number = fmt.Sprint(s.Revision)
		}
		w.Row(cli.Stamp(s.At), s.By, number, s.What)
	}
}

func rmaList(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List replacements, newest first", Args: cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			all, err := c.RMAs().List(cmd.Context())
			if err != nil {
				return err
			}
			return env.Print(all, func(w *cli.Columns) {
				w.Row("TICKET", "KIND", "OLD", "STATE", "BY", "EXPIRES", "AT")
				for i := range all.Items {
					r := &all.Items[i]
					w.Row(r.Ticket, r.Kind, r.Old.String(), r.State, r.By, cli.Stamp(r.Expires), r.Where)
				}
			})
		},
	}
}

func rmaShow(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "show TICKET", Short: "Show the state of a replacement, and its next step", Args: cli.Operands("TICKET"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return rmaStep(cmd.Context(), env, func(ctx context.Context, c *client.Client) (*v1.RMA, error) { return c.RMAs().Get(ctx, args[0]) })
		},
	}
}

func rmaConfirm(env *cli.Env) *cobra.Command {
	in := v1.RMAConfirm{}
	cmd := &cobra.Command{
		Use: "confirm TICKET", Short: "Confirm the step of a replacement that waits for a second person", Args: cli.Operands("TICKET"),
		Long: `Confirm the step that waits for a second person (see "topospec rma show"). The revision is drafted
in the name of the person who opened the window, approved by you, and activated if its guards
allow it. The person who opened the window cannot confirm it, unless
fabric.topology.two_persons is false.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return rmaStep(cmd.Context(), env, func(ctx context.Context, c *client.Client) (*v1.RMA, error) {
				return c.RMAs().Confirm(ctx, args[0], in)
			})
		},
	}
	cli.WordFlag(cmd, &in.Reason)
	return cmd
}

func rmaCancel(env *cli.Env) *cobra.Command {
	in := v1.RMACancel{}
	cmd := &cobra.Command{
		Use: "cancel TICKET", Short: "Cancel a replacement before the new device has the place", Args: cli.Operands("TICKET"),
		Long: `Cancel a replacement. If the place is under maintenance, a revision is drafted that ends this.
Another person approves and activates it.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.WantReason(in.Reason); err != nil {
				return err
			}
			return rmaStep(cmd.Context(), env, func(ctx context.Context, c *client.Client) (*v1.RMA, error) {
				return c.RMAs().Cancel(ctx, args[0], in)
			})
		},
	}
	cli.ReasonFlag(cmd, &in.Reason)
	return cmd
}

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
)

func (a *app) topospecRMA() *cobra.Command {
	c := group("rma", "Replace adapters and switches of the declared topology",
		a.rmaHCA(), a.rmaSwitch(), a.rmaList(), a.rmaShow(), a.rmaConfirm(), a.rmaCancel())
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
	reasonFlag(cmd, &r.in.Reason)
	r.files.flags(cmd)
}

func nodeGUID(s string) (ib.GUID, error) {
	g, err := topospec.ParseGUID(s)
	if err != nil {
		return 0, &usageError{msg: err.Error(), hint: "the topology has the node GUIDs of its devices: portcullis topospec show"}
	}
	return g, nil
}

func (a *app) rmaHCA() *cobra.Command {
	r := replacing{in: v1.NewRMA{Kind: v1.RMAAdapter}}
	cmd := &cobra.Command{
		Use: "hca OLD [NEW]", Short: "Replace an adapter", Args: oneOrTwo("OLD", "NEW"),
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
		RunE: func(cmd *cobra.Command, args []string) error { return a.openRMA(cmd, args, &r) },
	}
	r.flags(cmd)
	return cmd
}

func (a *app) rmaSwitch() *cobra.Command {
	r := replacing{in: v1.NewRMA{Kind: v1.RMASwitch}}
	cmd := &cobra.Command{
		Use: "switch OLD NEW", Short: "Replace a switch", Args: operands("OLD", "NEW"),
		Long: `Open the replacement of the switch with the node GUID OLD by the spare NEW. Then:
  1. another person confirms it
  2. exchange the switches, with each cable at the same port as before
  3. confirm that NEW has the place; the ports of its hosts stay off
  4. when its cables to other switches are verified, confirm that its hosts are let in
Keys and inventory follow.

With --file no service is asked: the revision of --step (window, replace or open) is made from
FILE. Step open needs --observed, in which the cables between switches must be as FILE has them.`,
		Example: `  portcullis topospec rma switch 0x0002c90200000010 0x0002c90200000099 --ticket RMA-8 --reason "fan failed"`,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.openRMA(cmd, args, &r) },
	}
	r.flags(cmd)
	cmd.Flags().StringVar(&r.an, "aggregation-node", "", "node GUID of the aggregation node inside NEW, if the model has one")
	cmd.Flags().StringVar(&r.files.observed, "observed", "", "output of ibnetdiscover after step replace, with --step open")
	cmd.Flags().StringVar(&r.files.sm, "sm", "", "node GUID that the Subnet Manager runs on, with --observed")
	return cmd
}

// openRMA opens a replacement, or makes one revision of it.
func (a *app) openRMA(cmd *cobra.Command, args []string, r *replacing) (err error) {
	if r.in.Ticket == "" {
		return &usageError{msg: "no --ticket is given", hint: "name the ticket of the repair"}
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
		return a.writeRMA(cmd.Context(), r)
	}
	if r.in.Kind == v1.RMAAdapter && r.in.New != 0 {
		return &usageError{msg: "NEW needs --file", hint: "the service takes the adapter that is seen and attested"}
	}
	if err := wantReason(r.in.Reason); err != nil {
		return err
	}
	r.in.Window = r.window.Seconds()
	return a.rmaStep(cmd.Context(), func(ctx context.Context, c *client.Client) (*v1.RMA, error) { return c.StartRMA(ctx, r.in) })
}

// rmaStep takes a step, and shows where the replacement stands.
func (a *app) rmaStep(ctx context.Context, do func(context.Context, *client.Client) (*v1.RMA, error)) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	r, err := do(ctx, c)
	if err != nil {
		return err
	}
	return a.print(r, func(w *columns) { showRMA(w, r) })
}

func showRMA(w *columns, r *v1.RMA) {
	what := fmt.Sprintf("%s %v", r.Kind, r.Old)
	if r.New != 0 {
		what += fmt.Sprintf(" by %v", r.New)
	}
	w.row("Ticket", r.Ticket)
	w.row("Replaces", what)
	w.row("At", r.Where)
	w.row("State", r.State)
	w.row("Next", r.Next)
	w.row("Window", fmt.Sprintf("by %s, until %s: %s", r.By, stamp(r.Expires), r.Reason))
	if !r.Attested.IsZero() {
		w.row("Attested", stamp(r.Attested)+" by "+r.Host)
	}
	w.gap()
	w.row("WHEN", "WHO", "REVISION", "WHAT")
	for _, s := range r.Steps {
		number := ""
		if s.Revision != 0 {
			number = fmt.Sprint(s.Revision)
		}
		w.row(stamp(s.At), s.By, number, s.What)
	}
}

func (a *app) rmaList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List replacements, newest first", Args: operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			all, err := c.RMAs(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(all, func(w *columns) {
				w.row("TICKET", "KIND", "OLD", "STATE", "BY", "EXPIRES", "AT")
				for i := range all.Items {
					r := &all.Items[i]
					w.row(r.Ticket, r.Kind, r.Old.String(), r.State, r.By, stamp(r.Expires), r.Where)
				}
			})
		},
	}
}

func (a *app) rmaShow() *cobra.Command {
	return &cobra.Command{
		Use: "show TICKET", Short: "Show the state of a replacement, and its next step", Args: operands("TICKET"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.rmaStep(cmd.Context(), func(ctx context.Context, c *client.Client) (*v1.RMA, error) { return c.RMA(ctx, args[0]) })
		},
	}
}

func (a *app) rmaConfirm() *cobra.Command {
	in := v1.RMAConfirm{}
	cmd := &cobra.Command{
		Use: "confirm TICKET", Short: "Confirm the step of a replacement that waits for a second person", Args: operands("TICKET"),
		Long: `Confirm the step that waits for a second person (see "topospec rma show"). The revision is drafted
in the name of the person who opened the window, approved by you, and activated if its guards
allow it. The person who opened the window cannot confirm it, unless
fabric.topology.two_persons is false.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.rmaStep(cmd.Context(), func(ctx context.Context, c *client.Client) (*v1.RMA, error) { return c.ConfirmRMA(ctx, args[0], in) })
		},
	}
	wordFlag(cmd, &in.Reason)
	return cmd
}

func (a *app) rmaCancel() *cobra.Command {
	in := v1.RMACancel{}
	cmd := &cobra.Command{
		Use: "cancel TICKET", Short: "Cancel a replacement before the new device has the place", Args: operands("TICKET"),
		Long: `Cancel a replacement. If the place is under maintenance, a revision is drafted that ends this.
Another person approves and activates it.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wantReason(in.Reason); err != nil {
				return err
			}
			return a.rmaStep(cmd.Context(), func(ctx context.Context, c *client.Client) (*v1.RMA, error) {
				return c.CancelRMA(ctx, args[0], in)
			})
		},
	}
	reasonFlag(cmd, &in.Reason)
	return cmd
}

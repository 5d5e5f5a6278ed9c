package service

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

func restoreCommand(env *cli.Env) *cobra.Command {
	return cli.Group("restore", "Compare a restored state with the fabric, and decide on the differences", restoreReview(env), restoreDecide(env, "approve"), restoreDecide(env, "reject"), restoreEnd(env))
}

func restoreReview(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "review", Short: "Show how the restored state and the fabric differ", Args: cli.Operands(),
		Long: `Show how the restored state and the fabric differ. A review begins after "portcullisd restore",
and when the service finds by its anchors that the state was rolled back. During the review the
service grants only what both the state and the fabric have. KIND is one of
  state-only   the backup has the grant, and the switch port does not: it may have been released
               since. It is not granted before the host is approved
  fabric-only  the switch port has the P_Key, and no record explains it: it may have been granted
               since. It stays until the host is decided on, or the review ends
  other-form   full membership here, limited there: it stays as the switch port has it
  unseen       the backup has the grant, and no port is seen at the place`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			r, err := c.Review().Get(cmd.Context())
			if err != nil {
				return err
			}
			return printReview(env, r)
		},
	}
}

func printReview(env *cli.Env, r *v1.Review) error {
	return env.Print(r, func(w *cli.Columns) {
		if !r.Active {
			w.Text("no restored state is in review")
			return
		}
		if b := r.RolledBack; b != nil {
			w.Text("rolled back (%s): audit entry %d was anchored at %s in %s; the audit log ended at entry %d, of %s, when the service detected this",
				b.Cause, b.Anchor.Seq, cli.Stamp(b.Anchored), b.Source, b.Head.Seq, cli.Stamp(r.Taken))
		}
		if len(r.Recovered) > 0 {
			w.Text("recovered without the lost members %s, which may have had later records; the audit log ends %s", strings.Join(r.Recovered, ", "), cli.Stamp(r.Taken))
		}
		if r.Revision > 0 {
			w.Text("in review since %s: restored from a backup of %s, revision %d; %d memberships agree, %d differ",
				cli.Stamp(r.Since), cli.Stamp(r.Taken), r.Revision, r.Agreed, len(r.Differences))
		} else {
			w.Text("in review since %s; %d memberships agree, %d differ", cli.Stamp(r.Since), r.Agreed, len(r.Differences))
		}
		if len(r.Differences) == 0 {
			return
		}
		w.Row("KIND", "HOST", "RACK", "SWITCH", "PORT", "SWITCH GUID", "ADAPTER", "PORT GUID", "P_KEY", "CLUSTER", "TENANT", "SEEN NODE", "DECISION")
		for i := range r.Differences {
			d := &r.Differences[i]
			guid := ""
			if d.GUID != 0 {
				guid = d.GUID.String()
			}
			w.Row(d.Kind, d.Host, d.Rack, d.Switch, strconv.Itoa(int(d.SwitchPort)), d.Place.Switch.String(), d.Adapter, guid, cli.PKey(d.PKey), d.Cluster, d.Tenant, d.Node, d.Decision)
		}
	})
}

func restoreDecide(env *cli.Env, verb string) *cobra.Command {
	in := v1.ReviewDecision{}
	c := &cobra.Command{
		Use: verb + " [HOST...]", Short: "Approve the restored state of hosts",
		Long: `Approve the restored state of hosts. Its grants take effect as soon as all guards are met, and
P_Keys that it does not explain are removed from the switch ports of the hosts. The command is
refused if another port has the same P_Key and the state does not explain why: the P_Key may
belong to another tenant now.`,
	}
	decide := client.Review.Approve
	if verb == "reject" {
		c.Short = "Release hosts, and remove all P_Keys of tenants from their ports"
		c.Long = `Release hosts of the restored state, and remove all P_Keys of tenants from their ports, also those
that the state does not explain. Hosts that were admitted after the backup must then be assigned
again and attest again.`
		decide = client.Review.Reject
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		in.Hosts = args
		switch {
		case in.All == (len(args) > 0):
			return &cli.UsageError{Msg: "want hosts or --all", Hint: "portcullis restore review lists the hosts"}
		case in.Reason == "":
			return &cli.UsageError{Msg: "--reason is missing", Hint: "say what was found, for the audit log"}
		}
		return review(env, cmd, func(ctx context.Context, c *client.Client) (*v1.Review, error) { return decide(c.Review(), ctx, in) })
	}
	c.Flags().BoolVar(&in.All, "all", false, "all hosts with differences that are not decided yet")
	c.Flags().StringVar(&in.Reason, "reason", "", "reason, for the audit log")
	return c
}

func restoreEnd(env *cli.Env) *cobra.Command {
	in := v1.ReviewEnd{}
	c := &cobra.Command{
		Use: "end", Short: "End the review", Args: cli.Operands(),
		Long: `End the review, after every host with a difference was approved or rejected. --strip removes
P_Keys that no record explains from switch ports that belong to no host of the inventory.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if in.Reason == "" {
				return &cli.UsageError{Msg: "--reason is missing", Hint: "say what was found, for the audit log"}
			}
			return review(env, cmd, func(ctx context.Context, c *client.Client) (*v1.Review, error) { return c.Review().End(ctx, in) })
		},
	}
	c.Flags().BoolVar(&in.Strip, "strip", false, "remove P_Keys that no record explains")
	c.Flags().StringVar(&in.Reason, "reason", "", "reason, for the audit log")
	return c
}

// review does something about the review, and prints what is left.
func review(env *cli.Env, cmd *cobra.Command, do func(context.Context, *client.Client) (*v1.Review, error)) error {
	c, err := env.Connect()
	if err != nil {
		return err
	}
	r, err := do(cmd.Context(), c)
	if err != nil {
		return fmt.Errorf("review: %w", err)
	}
	return printReview(env, r)
}

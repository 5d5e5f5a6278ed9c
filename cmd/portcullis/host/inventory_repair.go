package host

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

func inventoryRepair(env *cli.Env) *cobra.Command {
	c := cli.Group("repair", "Confirm or cancel that a host has another TPM",
		repairList(env), repairShow(env), repairConfirm(env), repairCancel(env))
	c.Long = `Confirm or cancel rows of inventory that wait for a second person. In such a row a known host
gets another EK, or a replaced EK comes back. "inventory import --ticket" stages the rows. They
can be confirmed for seven days.`
	return c
}

func repairList(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List rows that wait for a second person", Args: cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			all, err := c.Inventory().Repairs(cmd.Context())
			if err != nil {
				return err
			}
			return env.Print(v1.List[v1.Repair]{Items: all}, func(w *cli.Columns) {
				w.Row("HOST", "TICKET", "STAGED BY", "UNTIL", "WHY")
				for i := range all {
					r := &all[i]
					w.Row(r.Host, r.Ticket, r.By, until(r), r.Reason)
				}
			})
		},
	}
}

func until(r *v1.Repair) string {
	if r.Expired {
		return "expired"
	}
	return cli.Stamp(r.Expires)
}

// onRepair does something with the row of the host that is the operand, and shows it.
func onRepair(env *cli.Env, cmd *cobra.Command, done string, do func(ctx context.Context, c *client.Client, host string) (*v1.Repair, error)) *cobra.Command {
	cmd.Args = cli.Operands("HOST")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := env.Connect()
		if err != nil {
			return err
		}
		r, err := do(cmd.Context(), c, args[0])
		if err != nil {
			return err
		}
		return env.Print(r, func(w *cli.Columns) { showRepair(w, r, done) })
	}
	return cmd
}

func showRepair(w *cli.Columns, r *v1.Repair, done string) {
	w.Row("Host", r.Host)
	w.Row("Ticket", r.Ticket)
	w.Row("Staged", fmt.Sprintf("%s by %s: %s", cli.Stamp(r.Staged), r.By, r.Reason))
	w.Row("Until", until(r))
	for _, f := range r.Fields {
		w.Row("Changes", f)
	}
	if r.EKWas != "" && r.EKWas != r.EK {
		w.Row("Denies", "EK "+r.EKWas)
	}
	if r.Denied {
		w.Row("Allows", fmt.Sprintf("EK %s, which is on the deny list since %s", r.EK, r.DeniedBy))
	}
	w.Row("Digest", r.Digest)
	if done == "" {
		done = fmt.Sprintf("a person other than %s: portcullis inventory repair confirm %s --digest %.12s", r.By, r.Host, r.Digest)
	}
	w.Row("Next", done)
}

func repairShow(env *cli.Env) *cobra.Command {
	return onRepair(env, &cobra.Command{Use: "show HOST", Short: "Show a row that waits for a second person"}, "",
		func(ctx context.Context, c *client.Client, host string) (*v1.Repair, error) {
			return c.Inventory().Repair(ctx, host)
		})
}

func repairConfirm(env *cli.Env) *cobra.Command {
	digest, reason := "", ""
	cmd := onRepair(env, &cobra.Command{
		Use: "confirm HOST --digest DIGEST", Short: "Confirm a row that another person staged",
		Long: `Confirm a row by the digest that "inventory repair show" prints. The person who staged the row
may not confirm it, unless admission.two_persons is false. Release the host first.

The EK that the host had goes onto the deny list, which "inventory denied" shows. Evidence,
sessions and orders of the host become void: assign the host again, and let it attest.`,
		Example: `  portcullis inventory repair show compute-01
  portcullis inventory repair confirm compute-01 --digest 3f2a90b1c4de`,
	}, "portcullis host assign HOST --cluster CLUSTER opens its window; then it attests with the new TPM",
		func(ctx context.Context, c *client.Client, host string) (*v1.Repair, error) {
			if digest == "" {
				return nil, &cli.UsageError{Msg: "no --digest is given", Hint: fmt.Sprintf("portcullis inventory repair show %s prints the digest of what you confirm", cli.Plain(host))}
			}
			return c.Inventory().ConfirmRepair(ctx, host, v1.RepairConfirm{Digest: digest, Reason: reason})
		})
	cmd.Flags().StringVar(&digest, "digest", "", "digest of the row, or its first 12 digits; it must be given")
	cli.WordFlag(cmd, &reason)
	return cmd
}

func repairCancel(env *cli.Env) *cobra.Command {
	reason := ""
	cmd := onRepair(env, &cobra.Command{Use: "cancel HOST --reason TEXT", Short: "Cancel a row that waits for a second person"}, "nothing: it is cancelled",
		func(ctx context.Context, c *client.Client, host string) (*v1.Repair, error) {
			if err := cli.WantReason(reason); err != nil {
				return nil, err
			}
			return c.Inventory().CancelRepair(ctx, host, v1.RepairCancel{Reason: reason})
		})
	cli.ReasonFlag(cmd, &reason)
	return cmd
}

func inventoryDenied(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "denied", Short: "List the EKs of TPMs that were replaced", Args: cli.Operands(),
		Long: `List the EKs of TPMs that were replaced, newest first. No host can attest with one of these. To
use one for a host again, import it with --ticket, and let another person confirm it.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			all, err := c.Inventory().DeniedEKs(cmd.Context())
			if err != nil {
				return err
			}
			return env.Print(v1.List[v1.DeniedEK]{Items: all}, func(w *cli.Columns) {
				w.Row("EK SHA-256", "SINCE", "HOST", "TICKET", "CONFIRMED BY")
				for _, d := range all {
					w.Row(d.EK, cli.Stamp(d.Time), d.Host, d.Ticket, d.By)
				}
			})
		},
	}
}

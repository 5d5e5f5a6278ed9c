package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
)

func (a *app) inventoryRepair() *cobra.Command {
	c := group("repair", "Confirm or cancel that a host has another TPM",
		a.repairList(), a.repairShow(), a.repairConfirm(), a.repairCancel())
	c.Long = `Confirm or cancel rows of inventory that wait for a second person. In such a row a known host
gets another EK, or a replaced EK comes back. "inventory import --ticket" stages the rows. They
can be confirmed for seven days.`
	return c
}

func (a *app) repairList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List rows that wait for a second person", Args: operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			all, err := c.Repairs(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(v1.List[v1.Repair]{Items: all}, func(w *columns) {
				w.row("HOST", "TICKET", "STAGED BY", "UNTIL", "WHY")
				for i := range all {
					r := &all[i]
					w.row(r.Host, r.Ticket, r.By, until(r), r.Reason)
				}
			})
		},
	}
}

func until(r *v1.Repair) string {
	if r.Expired {
		return "expired"
	}
	return stamp(r.Expires)
}

// onRepair does something with the row of the host that is the operand, and shows it.
func (a *app) onRepair(cmd *cobra.Command, done string, do func(ctx context.Context, c *client.Client, host string) (*v1.Repair, error)) *cobra.Command {
	cmd.Args = operands("HOST")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := a.connect()
		if err != nil {
			return err
		}
		r, err := do(cmd.Context(), c, args[0])
		if err != nil {
			return err
		}
		return a.print(r, func(w *columns) { showRepair(w, r, done) })
	}
	return cmd
}

func showRepair(w *columns, r *v1.Repair, done string) {
	w.row("Host", r.Host)
	w.row("Ticket", r.Ticket)
	w.row("Staged", fmt.Sprintf("%s by %s: %s", stamp(r.Staged), r.By, r.Reason))
	w.row("Until", until(r))
	for _, f := range r.Fields {
		w.row("Changes", f)
	}
	if r.EKWas != "" && r.EKWas != r.EK {
		w.row("Denies", "EK "+r.EKWas)
	}
	if r.Denied {
		w.row("Allows", fmt.Sprintf("EK %s, which is on the deny list since %s", r.EK, r.DeniedBy))
	}
	w.row("Digest", r.Digest)
	if done == "" {
		done = fmt.Sprintf("a person other than %s: portcullis inventory repair confirm %s --digest %.12s", r.By, r.Host, r.Digest)
	}
	w.row("Next", done)
}

func (a *app) repairShow() *cobra.Command {
	return a.onRepair(&cobra.Command{Use: "show HOST", Short: "Show a row that waits for a second person"}, "",
		func(ctx context.Context, c *client.Client, host string) (*v1.Repair, error) {
			return c.Repair(ctx, host)
		})
}

func (a *app) repairConfirm() *cobra.Command {
	digest, reason := "", ""
	cmd := a.onRepair(&cobra.Command{
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
				return nil, &usageError{msg: "no --digest is given", hint: fmt.Sprintf("portcullis inventory repair show %s prints the digest of what you confirm", plain(host))}
			}
			return c.ConfirmRepair(ctx, host, v1.RepairConfirm{Digest: digest, Reason: reason})
		})
	cmd.Flags().StringVar(&digest, "digest", "", "digest of the row, or its first 12 digits; it must be given")
	wordFlag(cmd, &reason)
	return cmd
}

func (a *app) repairCancel() *cobra.Command {
	reason := ""
	cmd := a.onRepair(&cobra.Command{Use: "cancel HOST --reason TEXT", Short: "Cancel a row that waits for a second person"}, "nothing: it is cancelled",
		func(ctx context.Context, c *client.Client, host string) (*v1.Repair, error) {
			if err := wantReason(reason); err != nil {
				return nil, err
			}
			return c.CancelRepair(ctx, host, v1.RepairCancel{Reason: reason})
		})
	reasonFlag(cmd, &reason)
	return cmd
}

func (a *app) inventoryDenied() *cobra.Command {
	return &cobra.Command{
		Use: "denied", Short: "List the EKs of TPMs that were replaced", Args: operands(),
		Long: `List the EKs of TPMs that were replaced, newest first. No host can attest with one of these. To
use one for a host again, import it with --ticket, and let another person confirm it.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			all, err := c.DeniedEKs(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(v1.List[v1.DeniedEK]{Items: all}, func(w *columns) {
				w.row("EK SHA-256", "SINCE", "HOST", "TICKET", "CONFIRMED BY")
				for _, d := range all {
					w.row(d.EK, stamp(d.Time), d.Host, d.Ticket, d.By)
				}
			})
		},
	}
}

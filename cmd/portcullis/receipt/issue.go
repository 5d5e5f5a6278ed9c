package receipt

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

func issueCommand(env *cli.Env) *cobra.Command {
	var in v1.ReceiptRequest
	var age time.Duration
	var out string
	cmd := &cobra.Command{
		Use: "issue", Short: "Have isolation proven and signed", Args: cli.Operands(),
		Long: `Have the service read all tables of the fabric, prove the isolation of tenants, and sign what it
found: also a leak, and what is not proven. The receipt is in the log of receipts; with --out, the
proof of that is written beside it, to FILE.tlog-proof. --tenant makes it a statement about the pairs of one
tenant. A tenant's own token needs it, and gets a receipt that shows nothing of others. --host makes it
a statement about one host: its ports and attestation, and the pairs of its tenant.

The receipt counts for a day. --max-age makes that shorter, or longer, up to 31 days.`,
		Example: `  portcullis receipt issue --tenant acme --out receipt.json
  portcullis receipt verify receipt.json --key receipts.pem --tenant acme`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("max-age") {
				if age < time.Minute || age%time.Second != 0 {
					return &cli.UsageError{Msg: fmt.Sprintf("--max-age %v: want whole seconds, a minute at least", age), Hint: "a day, 24h, is usual"}
				}
				in.MaxAgeSeconds = int64(age / time.Second)
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			data, err := c.Receipts().Issue(cmd.Context(), in)
			if err != nil {
				return err
			}
			if out == "" {
				_, err = env.Out.Write(data)
				return err
			}
			if err := renameio.WriteFile(out, data, 0o644); err != nil {
				return fmt.Errorf("write the receipt: %w", err)
			}
			fmt.Fprintf(env.Err, "portcullis: the receipt is in %s: portcullis receipt verify shows what it says\n", out)
			return fetchProof(cmd.Context(), c, data, out)
		},
	}
	cmd.Flags().StringVar(&in.Tenant, "tenant", "", "tenant that it is about (default: all tenants)")
	cmd.Flags().StringVar(&in.Host, "host", "", "host that it is about (default: all hosts)")
	cmd.Flags().BoolVar(&in.Membership, "membership", false, "assume that switches refuse packets that claim full membership where the port is a limited member")
	cmd.Flags().DurationVar(&age, "max-age", 0, "how long it counts, up to 744h (default 24h)")
	cmd.Flags().StringVar(&out, "out", "", "file to write the receipt to (default: standard output)")
	return cmd
}

func keysCommand(env *cli.Env) *cobra.Command {
	pem := false
	cmd := &cobra.Command{
		Use: "keys", Short: "List the keys that sign receipts", Args: cli.Operands(),
		Long: `List the keys that sign receipts. --pem prints their public halves, for "portcullis receipt verify
--key" and for openssl. A key is published a week before it signs, and for as long as a receipt
that it signed may count.`,
		Example: `  portcullis receipt keys --pem >receipts.pem`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			keys, err := c.Receipts().Keys(cmd.Context())
			if err != nil {
				return err
			}
			if !pem {
				return env.Print(keys, func(w *cli.Columns) { showKeys(w, keys) })
			}
			if len(keys.Keys) == 0 {
				return cli.Hint(errors.New("there is no key yet"), "portcullis receipt issue makes the first one")
			}
			for _, k := range keys.Keys {
				for line := range strings.Lines(k.PEM) {
					fmt.Fprintln(env.Out, cli.Plain(strings.TrimSpace(line)))
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&pem, "pem", false, "print the public keys")
	return cmd
}

func showKeys(w *cli.Columns, keys *v1.ReceiptKeys) {
	w.Row("KEY", "CREATED", "SIGNS FROM", "PUBLISHED UNTIL")
	for _, k := range keys.Keys {
		w.Row(k.ID, cli.Stamp(k.Created), cli.Stamp(k.Signs), cli.Stamp(k.Until))
	}
}

func rotateCommand(env *cli.Env) *cobra.Command {
	var in v1.ReceiptRotation
	var yes bool
	cmd := &cobra.Command{
		Use: "rotate --reason WHY", Short: "Rotate the key that signs receipts", Args: cli.Operands(),
		Long: `Rotate the key that signs receipts. The new key is published at once, and signs a week later. The
service rotates automatically, by age (results.key_life).

Use --drop if a key was stolen, or if the root that opens the keys is lost. The new key signs at
once, and earlier keys are published no longer. What a stolen key signs still verifies with a copy of
it: replace the copies that tenants and auditors keep.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if strings.TrimSpace(in.Reason) == "" {
				return &cli.UsageError{Msg: "--reason is missing", Hint: "say why, for the audit log"}
			}
			if in.Drop {
				if err := env.Confirm(yes, "all keys of receipts are withdrawn, and receipts that they signed are refused with the keys published then"); err != nil {
					return err
				}
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			keys, err := c.Receipts().RotateKey(cmd.Context(), in)
			if err != nil {
				return err
			}
			return env.Print(keys, func(w *cli.Columns) { showKeys(w, keys) })
		},
	}
	cmd.Flags().StringVar(&in.Reason, "reason", "", "reason, for the audit log")
	cmd.Flags().BoolVar(&in.Drop, "drop", false, "withdraw all earlier keys at once")
	cmd.Flags().BoolVar(&yes, "yes", false, "do it; without this, --drop only says what would be done")
	return cmd
}

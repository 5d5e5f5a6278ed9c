package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
)

func (a *app) authorityCommand() *cobra.Command {
	c := group("authority", "Show and change the authorities that issue certificates of hosts",
		a.authorityShow(), a.authorityPEM(), a.authorityRotate())
	c.Long = `Show and change the authorities that issue certificates of hosts. A host gets a certificate
when it is handed over. Its name is spiffe://TRUST-DOMAIN/host/ID. To the service the
certificate proves which host asks for its own status. It does not prove to other parties
that the host is still admitted.`
	return c
}

func (a *app) authorityShow() *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "List the authorities whose certificates count", Args: operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := a.authorities(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(all, func(w *columns) { showAuthorities(w, all) })
		},
	}
}

func (a *app) authorities(ctx context.Context) (*v1.HostAuthorities, error) {
	c, err := a.connect()
	if err != nil {
		return nil, err
	}
	return c.HostAuthorities(ctx)
}

func showAuthorities(w *columns, all *v1.HostAuthorities) {
	w.row("STATE", "SIGNS FROM", "ENDS", "SHA-256")
	for i := range all.Items {
		h := &all.Items[i]
		w.row(h.State, stamp(h.From), stamp(h.Until), h.SHA256)
	}
}

func (a *app) authorityPEM() *cobra.Command {
	return &cobra.Command{
		Use: "pem", Short: "Print the authorities' certificates, for relying parties", Args: operands(),
		Long: `Print the certificates of all authorities that count, also of one that is to sign next. Fetch
them once a day: a new authority is published a day before it signs.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := a.authorities(cmd.Context())
			if err != nil {
				return err
			}
			for i := range all.Items {
				if _, err := fmt.Fprint(a.stdout, all.Items[i].Certificate); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (a *app) authorityRotate() *cobra.Command {
	var in v1.AuthorityRotation
	var yes bool
	cmd := &cobra.Command{
		Use: "rotate", Short: "Create the next authority", Args: operands(),
		Long: `Create the next authority. It signs in a day, and certificates of earlier authorities stay
valid. Use --at-once for a key that is lost or was stolen: the new authority signs now, and
all other authorities and their certificates end. Hosts that wait for admission continue with
their status tokens.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if strings.TrimSpace(in.Reason) == "" {
				return &usageError{msg: "--reason is needed", hint: "say why, for the audit log"}
			}
			if in.AtOnce {
				if err := a.confirm(yes, "all certificates of hosts end, and the authorities that relying parties know sign no more"); err != nil {
					return err
				}
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			all, err := c.RotateHostAuthority(cmd.Context(), in)
			if err != nil {
				return err
			}
			return a.print(all, func(w *columns) { showAuthorities(w, all) })
		},
	}
	cmd.Flags().StringVar(&in.Reason, "reason", "", "reason, for the audit log")
	cmd.Flags().BoolVar(&in.AtOnce, "at-once", false, "sign now, and end all other authorities and their certificates")
	cmd.Flags().BoolVar(&yes, "yes", false, "do it; without this, --at-once only says what would be done")
	return cmd
}

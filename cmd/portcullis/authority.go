package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
)

func (a *app) authorityCommand() *cobra.Command {
	c := group("authority", "See what certificates of hosts come from, and change it",
		a.authorityShow(), a.authorityPEM(), a.authorityRotate())
	c.Long = `See the authorities that certificates of hosts come from, for whoever wants to know hosts
by them, and change them. A host gets a certificate when it is handed over, called
spiffe://TRUST-DOMAIN/host/ID. To the service it proves which host asks for its own status,
and nothing else; to others it proves no more than that, and not that the host is still
admitted.`
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
		Use: "pem", Short: "Print their certificates, for relying parties", Args: operands(),
		Long: `Print the certificates of all authorities that count, also of one that is to sign next. Fetch
them once a day: the next one is shown a day before it signs.`,
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
		Use: "rotate", Short: "Make the next authority", Args: operands(),
		Long: `Make the next authority. It signs in a day, and certificates of those before stay valid. With
--at-once it signs now, and all others and their certificates end: for a key that is lost or
was stolen. Hosts that wait for admission go on with their status tokens.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if strings.TrimSpace(in.Reason) == "" {
				return &usageError{msg: "--reason is needed", hint: "say why, for the audit log"}
			}
			if in.AtOnce {
				if err := a.confirm(yes, "all certificates of hosts end, and authorities that relying parties know sign no more"); err != nil {
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
	cmd.Flags().StringVar(&in.Reason, "reason", "", "why, for the audit log")
	cmd.Flags().BoolVar(&in.AtOnce, "at-once", false, "it signs now, and all others and their certificates end")
	cmd.Flags().BoolVar(&yes, "yes", false, "do it; without this, --at-once only says what would be done")
	return cmd
}

package service

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

func authorityCommand(env *cli.Env) *cobra.Command {
	c := cli.Group("authority", "Show and change the authorities that issue certificates of hosts",
		authorityShow(env), authorityPEM(env), authorityRotate(env))
	c.Long = `Show and change the authorities that issue certificates of hosts. A host gets a certificate
when it is handed over. Its name is spiffe://TRUST-DOMAIN/host/ID. To the service the
certificate proves which host asks for its own status. It does not prove to other parties
that the host is still admitted.`
	return c
}

func authorityShow(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "List the authorities whose certificates count", Args: cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := authorities(cmd.Context(), env)
			if err != nil {
				return err
			}
			return env.Print(all, func(w *cli.Columns) { showAuthorities(w, all) })
		},
	}
}

func authorities(ctx context.Context, env *cli.Env) (*v1.HostAuthorities, error) {
	c, err := env.Connect()
	if err != nil {
		return nil, err
	}
	return c.Authorities().Get(ctx)
}

func showAuthorities(w *cli.Columns, all *v1.HostAuthorities) {
	w.Row("STATE", "SIGNS FROM", "ENDS", "SHA-256")
	for i := range all.Items {
		h := &all.Items[i]
		w.Row(h.State, cli.Stamp(h.From), cli.Stamp(h.Until), h.SHA256)
	}
}

func authorityPEM(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "pem", Short: "Print the authorities' certificates, for relying parties", Args: cli.Operands(),
		Long: `Print the certificates of all authorities that count, also of one that is to sign next. Fetch
them once a day: a new authority is published a day before it signs.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := authorities(cmd.Context(), env)
			if err != nil {
				return err
			}
			for i := range all.Items {
				if _, err := fmt.Fprint(env.Out, all.Items[i].Certificate); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func authorityRotate(env *cli.Env) *cobra.Command {
	var in v1.AuthorityRotation
	var yes bool
	cmd := &cobra.Command{
		Use: "rotate", Short: "Create the next authority", Args: cli.Operands(),
		Long: `Create the next authority. It signs in a day, and certificates of earlier authorities stay
valid. Use --at-once for a key that is lost or was stolen: the new authority signs now, and
all other authorities and their certificates end. Hosts that wait for admission continue with
their status tokens.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if strings.TrimSpace(in.Reason) == "" {
				return &cli.UsageError{Msg: "--reason is needed", Hint: "say why, for the audit log"}
			}
			if in.AtOnce {
				if err := env.Confirm(yes, "all certificates of hosts end, and the authorities that relying parties know sign no more"); err != nil {
					return err
				}
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			all, err := c.Authorities().Rotate(cmd.Context(), in)
			if err != nil {
				return err
			}
			return env.Print(all, func(w *cli.Columns) { showAuthorities(w, all) })
		},
	}
	cmd.Flags().StringVar(&in.Reason, "reason", "", "reason, for the audit log")
	cmd.Flags().BoolVar(&in.AtOnce, "at-once", false, "sign now, and end all other authorities and their certificates")
	cmd.Flags().BoolVar(&yes, "yes", false, "do it; without this, --at-once only says what would be done")
	return cmd
}

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
)

func (a *app) tenantCommand() *cobra.Command {
	return group("tenant", "Create, list and delete tenants", a.tenantList(), a.tenantCreate(), a.tenantDelete())
}

func (a *app) tenantList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List tenants", Args: operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			tenants, err := c.Tenants(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(v1.List[v1.Tenant]{Items: tenants}, func(w *columns) { tenantTable(w, tenants...) })
		},
	}
}

func tenantTable(w *columns, tenants ...v1.Tenant) {
	w.row("TENANT", "P_KEYS", "CREATED")
	for _, t := range tenants {
		w.row(t.Name, strings.Join(t.PKeys, " "), stamp(t.Created))
	}
}

func (a *app) tenantCreate() *cobra.Command {
	var ranges []string
	cmd := &cobra.Command{
		Use: "create TENANT", Short: "Create a tenant", Args: operands("TENANT"),
		Long: `Create a tenant. With --p-keys the P_Keys of its clusters are taken from these ranges. A credential
that has all of them (p_keys in the file of tokens) may create clusters for the tenant and delete
it. A tenant that such a credential creates has the ranges of the credential.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			t, err := c.CreateTenant(cmd.Context(), v1.NewTenant{Name: args[0], PKeys: ranges})
			if err != nil {
				return err
			}
			return a.print(t, func(w *columns) { tenantTable(w, *t) })
		},
	}
	cmd.Flags().StringSliceVar(&ranges, "p-keys", nil, "ranges for the P_Keys of its clusters, such as 0x0100-0x01ff")
	return cmd
}

func (a *app) tenantDelete() *cobra.Command {
	return &cobra.Command{
		Use: "delete TENANT", Short: "Delete a tenant that has no clusters", Args: operands("TENANT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			t, err := c.Tenant(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := c.DeleteTenant(client.IfMatch(cmd.Context(), t.Version), args[0]); err != nil {
				return err
			}
			return a.deleted("tenant", args[0])
		},
	}
}

// deleted reports a deletion.
func (a *app) deleted(kind, name string) error {
	return a.print(map[string]string{"deleted": name}, func(w *columns) {
		w.text("%s", fmt.Sprintf("deleted %s %s", kind, name))
	})
}

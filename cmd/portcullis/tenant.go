package main

import (
	"fmt"

	"github.com/spf13/cobra"

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
	w.row("TENANT", "CREATED")
	for _, t := range tenants {
		w.row(t.Name, stamp(t.Created))
	}
}

func (a *app) tenantCreate() *cobra.Command {
	return &cobra.Command{
		Use: "create TENANT", Short: "Create a tenant", Args: operands("TENANT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			t, err := c.CreateTenant(cmd.Context(), v1.NewTenant{Name: args[0]})
			if err != nil {
				return err
			}
			return a.print(t, func(w *columns) { tenantTable(w, *t) })
		},
	}
}

func (a *app) tenantDelete() *cobra.Command {
	return &cobra.Command{
		Use: "delete TENANT", Short: "Delete a tenant that has no cluster", Args: operands("TENANT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			if err := c.DeleteTenant(cmd.Context(), args[0]); err != nil {
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

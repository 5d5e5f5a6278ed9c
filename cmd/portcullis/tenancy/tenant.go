package tenancy

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

func tenantCommand(env *cli.Env) *cobra.Command {
	return cli.Group("tenant", "Create, list, show and delete tenants, and bound what they have", tenantList(env), tenantShow(env), tenantCreate(env), tenantQuota(env), tenantDelete(env))
}

// tenantNamed returns a tenant as the service has it now, and the client that read it.
func tenantNamed(ctx context.Context, env *cli.Env, name string) (*client.Client, *v1.Tenant, error) {
	c, err := env.Connect()
	if err != nil {
		return nil, nil, err
	}
	t, err := c.Tenants().Get(ctx, name)
	return c, t, err
}

func tenantList(env *cli.Env) *cobra.Command {
	var q v1.TenantQuery
	var labels cli.LabelColumn
	cmd := &cobra.Command{
		Use: "list", Short: "List tenants, with what each has and may have", Args: cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			tenants, err := c.Tenants().List(cmd.Context(), q)
			if err != nil {
				return err
			}
			return env.Print(v1.List[v1.Tenant]{Items: tenants}, func(w *cli.Columns) { tenantTable(w, &labels, tenants...) })
		},
	}
	cli.SelectorFlag(cmd, &q.Selector, "only tenants whose labels meet this")
	labels.Register(cmd)
	return cmd
}

func tenantTable(w *cli.Columns, labels *cli.LabelColumn, tenants ...v1.Tenant) {
	w.Row(labels.Head("TENANT", "HOSTS", "CLUSTERS", "P_KEYS", "RANGES", "CREATED")...)
	for i := range tenants {
		t := &tenants[i]
		cells := []string{t.Name}
		for _, u := range usesOf(t) {
			cells = append(cells, u.short())
		}
		w.Row(labels.Cells(t.Labels, append(cells, strings.Join(t.PKeys, " "), cli.Stamp(t.Created))...)...)
	}
}

func tenantCreate(env *cli.Env) *cobra.Command {
	var ranges []string
	var labels map[string]string
	cmd := &cobra.Command{
		Use: "create TENANT", Short: "Create a tenant", Args: cli.Operands("TENANT"),
		Long: `Create a tenant. With --p-keys the P_Keys of its clusters are taken from these ranges. A credential
that has all of them (p_keys in the file of tokens) may create clusters for the tenant and delete
it. A tenant that such a credential creates has the ranges of the credential.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			t, err := c.Tenants().Create(cmd.Context(), v1.NewTenant{Name: args[0], PKeys: ranges, Labels: labels})
			if err != nil {
				return err
			}
			return env.Print(t, func(w *cli.Columns) { tenantTable(w, &cli.LabelColumn{}, *t) })
		},
	}
	cmd.Flags().StringSliceVar(&ranges, "p-keys", nil, "ranges for the P_Keys of its clusters, such as 0x0100-0x01ff")
	cli.LabelFlag(cmd, &labels)
	return cmd
}

func tenantDelete(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "delete TENANT", Short: "Delete a tenant that has no clusters", Args: cli.Operands("TENANT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, t, err := tenantNamed(cmd.Context(), env, args[0])
			if err != nil {
				return err
			}
			if err := c.Tenants().Delete(client.IfMatch(cmd.Context(), t.Version), args[0]); err != nil {
				return err
			}
			return env.Deleted("tenant", args[0])
		},
	}
}

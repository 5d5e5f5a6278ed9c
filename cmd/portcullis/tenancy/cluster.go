package tenancy

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	"portcullis/api/clustername"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

func clusterCommand(env *cli.Env) *cobra.Command {
	return cli.Group("cluster", "Create, list, show and delete clusters, and share services between them",
		clusterList(env), clusterShow(env), clusterCreate(env), clusterUse(env), clusterDelete(env))
}

func clusterList(env *cli.Env) *cobra.Command {
	var q v1.ClusterQuery
	var labels cli.LabelColumn
	cmd := &cobra.Command{
		Use: "list", Short: "List clusters and their P_Keys", Args: cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			clusters, err := c.Clusters().List(cmd.Context(), q)
			if err != nil {
				return err
			}
			return env.Print(v1.List[v1.Cluster]{Items: clusters}, func(w *cli.Columns) { clusterTable(w, &labels, clusters...) })
		},
	}
	cmd.Flags().StringVar(&q.Tenant, "tenant", "", "only clusters of this tenant")
	cli.SelectorFlag(cmd, &q.Selector, "only clusters whose labels meet this")
	labels.Register(cmd)
	return cmd
}

func clusterTable(w *cli.Columns, labels *cli.LabelColumn, clusters ...v1.Cluster) {
	head := []string{"CLUSTER", "TENANT", "P_KEY", "HOSTS", "CREATED"}
	if w.Wide {
		head = append(head, "USES", "USED BY", "SET")
	}
	w.Row(labels.Head(head...)...)
	for _, c := range clusters {
		cells := []string{c.Name, c.Tenant, cli.PKey(c.PKey), strconv.Itoa(len(c.Hosts)), cli.Stamp(c.Created)}
		if w.Wide {
			cells = append(cells, strings.Join(c.Uses, " "), strings.Join(c.Users, " "), c.Set)
		}
		w.Row(labels.Cells(c.Labels, cells...)...)
	}
}

func clusterShow(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "show CLUSTER", Short: "Show a cluster and its hosts", Args: cli.Operands("CLUSTER"), ValidArgsFunction: env.CompleteClusters(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			cluster, err := c.Clusters().Get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return env.Print(cluster, func(w *cli.Columns) {
				w.Row("Cluster", cluster.Name)
				w.Row("Tenant", cluster.Tenant)
				w.Row("P_Key", cli.PKey(cluster.PKey))
				w.Row("Created", cli.Stamp(cluster.Created))
				if cluster.Set != "" {
					w.Row("Set", cluster.Set)
				}
				cli.LabelRow(w, cluster.Labels)
				w.Row("Hosts", strings.Join(cluster.Hosts, " "))
				if len(cluster.Uses) > 0 {
					w.Row("Uses", strings.Join(cluster.Uses, " "))
				}
				if cluster.Shared {
					w.Row("Used by", strings.Join(cluster.Users, " "))
				}
			})
		},
	}
}

func clusterCreate(env *cli.Env) *cobra.Command {
	var tenant, key string
	var shared bool
	var labels map[string]string
	cmd := &cobra.Command{
		Use: "create CLUSTER [--tenant TENANT]", Short: "Create a cluster with a P_Key of its own", Args: cli.Operands("CLUSTER"),
		Long: `Create a cluster with a P_Key of its own, which the service chooses. A credential with
ranges of P_Keys gets one of those, and may name it with --p-key. Other clusters may use a
shared cluster, such as that of a storage service: see "portcullis cluster use".

CLUSTER is a name that is common to all tenants, as train, and then --tenant says whose the cluster
is; or TENANT.NAME, as physics.train, which is the tenant's own: another tenant may have its own train.

A credential with the role tenant creates names of its own alone, for a tenant with a quota of
clusters and P_Keys. If it is of one tenant, train is short for TENANT.train in all commands. It names a P_Key
within the ranges of its tenant, and neither --shared nor --label.`,
		Example: `  portcullis cluster create train --tenant physics
  portcullis cluster create physics.train`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkTenant(args[0], tenant); err != nil {
				return err
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			n := v1.NewCluster{Name: args[0], Tenant: tenant, Shared: shared, Labels: labels}
			if n.PKey, err = cli.OptionalPKey(key); err != nil {
				return err
			}
			cluster, err := c.Clusters().Create(cmd.Context(), n)
			if err != nil {
				return err
			}
			return env.Print(cluster, func(w *cli.Columns) { clusterTable(w, &cli.LabelColumn{}, *cluster) })
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "the tenant it belongs to; none: that of the name, or the one of the credential")
	cmd.Flags().BoolVar(&shared, "shared", false, "let other clusters use it")
	cmd.Flags().StringVar(&key, "p-key", "", "take this P_Key; for credentials with a range of them")
	cli.LabelFlag(cmd, &labels)
	return cmd
}

// checkTenant refuses a tenant other than that of the cluster's name.
func checkTenant(cluster, tenant string) error {
	name, err := clustername.Parse(cluster)
	if err != nil || name.Tenant == "" || tenant == "" || tenant == name.Tenant { // the service knows which names are valid
		return nil
	}
	return &cli.UsageError{
		Msg:  fmt.Sprintf("%s is for a cluster of tenant %s, and --tenant is %s", name, name.Tenant, tenant),
		Hint: "leave --tenant out, or create " + name.Of(tenant).String(),
	}
}

func clusterUse(env *cli.Env) *cobra.Command {
	var stop bool
	cmd := &cobra.Command{
		Use: "use CLUSTER SHARED", Short: "Let the hosts of a cluster use a shared cluster", Args: cli.Operands("CLUSTER", "SHARED"),
		ValidArgsFunction: env.CompleteClusters(2),
		Long: `Let the hosts of a cluster use a shared cluster, such as that of a storage service. They
become limited members of its partition: they reach its hosts, and not each other. They
cannot become full members of it. Each port needs one more entry in its P_Key table; the
command is refused if a port has none left. --stop ends the use.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			change := func(ctx context.Context, name, shared string) (*v1.Cluster, error) {
				return c.Clusters().Use(ctx, name, shared, v1.ClusterUse{})
			}
			if stop {
				change = c.Clusters().StopUse
			}
			found, err := c.Clusters().Get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			cluster, err := change(client.IfMatch(cmd.Context(), found.Version), args[0], args[1])
			if err != nil {
				return err
			}
			return env.Print(cluster, func(w *cli.Columns) {
				w.Row("CLUSTER", "P_KEY", "USES")
				w.Row(cluster.Name, cli.PKey(cluster.PKey), strings.Join(cluster.Uses, " "))
			})
		},
	}
	cmd.Flags().BoolVar(&stop, "stop", false, "stop using it")
	return cmd
}

func clusterDelete(env *cli.Env) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "delete CLUSTER --yes", Short: "Delete a cluster that has no hosts", Args: cli.Operands("CLUSTER"), ValidArgsFunction: env.CompleteClusters(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			cluster, err := c.Clusters().Get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			plan := fmt.Sprintf("cluster %s of tenant %s, with %d hosts, is deleted, and P_Key %s is quarantined until it is proven absent everywhere",
				cluster.Name, cluster.Tenant, len(cluster.Hosts), cli.PKey(cluster.PKey))
			if err := env.Confirm(yes, plan); err != nil {
				return err
			}
			if err := c.Clusters().Delete(client.IfMatch(cmd.Context(), cluster.Version), cluster.Name); err != nil {
				return err
			}
			return env.Deleted("cluster", cluster.Name)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it; without this, only say what would be done")
	return cmd
}

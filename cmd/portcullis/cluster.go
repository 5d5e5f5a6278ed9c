package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

func (a *app) clusterCommand() *cobra.Command {
	return group("cluster", "Create, list, show and delete clusters, and share services between them",
		a.clusterList(), a.clusterShow(), a.clusterCreate(), a.clusterUse(), a.clusterDelete())
}

func (a *app) clusterList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List clusters and their P_Keys", Args: operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			clusters, err := c.Clusters(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(v1.List[v1.Cluster]{Items: clusters}, func(w *columns) { clusterTable(w, clusters...) })
		},
	}
}

func clusterTable(w *columns, clusters ...v1.Cluster) {
	w.row("CLUSTER", "TENANT", "P_KEY", "HOSTS", "CREATED")
	for _, c := range clusters {
		w.row(c.Name, c.Tenant, pkey(c.PKey), strconv.Itoa(len(c.Hosts)), stamp(c.Created))
	}
}

func (a *app) clusterShow() *cobra.Command {
	return &cobra.Command{
		Use: "show CLUSTER", Short: "Show a cluster and its hosts", Args: operands("CLUSTER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			cluster, err := c.Cluster(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.print(cluster, func(w *columns) {
				w.row("Cluster", cluster.Name)
				w.row("Tenant", cluster.Tenant)
				w.row("P_Key", pkey(cluster.PKey))
				w.row("Created", stamp(cluster.Created))
				w.row("Hosts", strings.Join(cluster.Hosts, " "))
				if len(cluster.Uses) > 0 {
					w.row("Uses", strings.Join(cluster.Uses, " "))
				}
				if cluster.Shared {
					w.row("Used by", strings.Join(cluster.Users, " "))
				}
			})
		},
	}
}

func (a *app) clusterCreate() *cobra.Command {
	var tenant, key string
	var shared bool
	cmd := &cobra.Command{
		Use: "create CLUSTER --tenant TENANT", Short: "Create a cluster with a P_Key of its own", Args: operands("CLUSTER"),
		Long: `Create a cluster with a P_Key of its own, which the service chooses. A credential with
ranges of P_Keys gets one of those, and may name it with --p-key. Other clusters may use a
shared cluster, such as that of a storage service: see "portcullis cluster use".`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if tenant == "" {
				return &usageError{msg: "--tenant is missing", hint: "usage: " + cmd.UseLine()}
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			n := v1.NewCluster{Name: args[0], Tenant: tenant, Shared: shared}
			if n.PKey, err = optionalPKey(key); err != nil {
				return err
			}
			cluster, err := c.CreateCluster(cmd.Context(), n)
			if err != nil {
				return err
			}
			return a.print(cluster, func(w *columns) { clusterTable(w, *cluster) })
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "the tenant it belongs to")
	cmd.Flags().BoolVar(&shared, "shared", false, "let other clusters use it")
	cmd.Flags().StringVar(&key, "p-key", "", "take this P_Key; for credentials with a range of them")
	return cmd
}

func (a *app) clusterUse() *cobra.Command {
	var stop bool
	cmd := &cobra.Command{
		Use: "use CLUSTER SHARED", Short: "Let the hosts of a cluster use a shared cluster", Args: operands("CLUSTER", "SHARED"),
		Long: `Let the hosts of a cluster use a shared cluster, such as that of a storage service. They
become limited members of its partition: they reach its hosts, and not each other. They
cannot become full members of it. Each port needs one more entry in its P_Key table; the
command is refused if a port has none left. --stop ends the use.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			change := c.Use
			if stop {
				change = c.StopUse
			}
			found, err := c.Cluster(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			cluster, err := change(client.IfMatch(cmd.Context(), found.Version), args[0], args[1])
			if err != nil {
				return err
			}
			return a.print(cluster, func(w *columns) {
				w.row("CLUSTER", "P_KEY", "USES")
				w.row(cluster.Name, pkey(cluster.PKey), strings.Join(cluster.Uses, " "))
			})
		},
	}
	cmd.Flags().BoolVar(&stop, "stop", false, "stop using it")
	return cmd
}

func (a *app) clusterDelete() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "delete CLUSTER --yes", Short: "Delete a cluster that has no hosts", Args: operands("CLUSTER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			cluster, err := c.Cluster(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			plan := fmt.Sprintf("cluster %s of tenant %s, with %d hosts, is deleted, and P_Key %s is quarantined until it is proven absent everywhere",
				cluster.Name, cluster.Tenant, len(cluster.Hosts), pkey(cluster.PKey))
			if err := a.confirm(yes, plan); err != nil {
				return err
			}
			if err := c.DeleteCluster(client.IfMatch(cmd.Context(), cluster.Version), args[0]); err != nil {
				return err
			}
			return a.deleted("cluster", args[0])
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it; without this, only say what would be done")
	return cmd
}

// optionalPKey reads a P_Key that may be left out.
func optionalPKey(text string) (*ib.PKey, error) {
	if text == "" {
		return nil, nil
	}
	k, err := ib.ParsePKey(text)
	if err != nil {
		return nil, &usageError{msg: err.Error(), hint: "want 0x0001 to 0x7ffe"}
	}
	return &k, nil
}

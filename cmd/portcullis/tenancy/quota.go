package tenancy

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

// unlimited is how an operator writes that there is no bound.
const unlimited = "unlimited"

// use is how much a tenant has of something, and the most that it may have.
type use struct {
	name  string // as the API has it
	title string
	has   int
	most  *int // nil: no bound
	of    string
}

func usesOf(t *v1.Tenant) []use {
	q := t.Quota
	if q == nil {
		q = &v1.TenantQuota{}
	}
	uses := []use{
		{name: "hosts", title: "Hosts", has: t.Use.Hosts, most: q.Hosts},
		{name: "clusters", title: "Clusters", has: t.Use.Clusters, most: q.Clusters},
		{name: "p_keys", title: "P_Keys", has: t.Use.PKeys, most: q.PKeys},
	}
	if t.Use.Releasing > 0 {
		uses[0].of = fmt.Sprintf(", %d of them being released", t.Use.Releasing)
	}
	return uses
}

// short returns 3 or, with a bound, 3/8.
func (u *use) short() string {
	if u.most == nil {
		return strconv.Itoa(u.has)
	}
	return fmt.Sprintf("%d/%d", u.has, *u.most)
}

// long says the same in words.
func (u *use) long(exceeded bool) string {
	switch {
	case u.most == nil:
		return fmt.Sprintf("%d%s; no bound", u.has, u.of)
	case exceeded:
		return fmt.Sprintf("%d%s; quota %d is exceeded: nothing is taken away, and more is refused", u.has, u.of, *u.most)
	default:
		return fmt.Sprintf("%d%s; quota %d", u.has, u.of, *u.most)
	}
}

func tenantShow(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "show TENANT", Short: "Show what a tenant has, and the most that it may have", Args: cli.Operands("TENANT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, t, err := tenantNamed(cmd.Context(), env, args[0])
			if err != nil {
				return err
			}
			return showTenant(env, t)
		},
	}
}

func showTenant(env *cli.Env, t *v1.Tenant) error {
	return env.Print(t, func(w *cli.Columns) {
		w.Row("Tenant", t.Name)
		w.Row("Created", cli.Stamp(t.Created))
		if t.Set != "" {
			w.Row("Set", t.Set)
		}
		cli.LabelRow(w, t.Labels)
		for _, r := range t.PKeys {
			w.Row("P_Keys from", r)
		}
		for _, u := range usesOf(t) {
			w.Row(u.title, u.long(slices.Contains(t.Exceeded, u.name)))
		}
	})
}

func tenantQuota(env *cli.Env) *cobra.Command {
	var hosts, clusters, keys string
	cmd := &cobra.Command{
		Use:   "quota TENANT [--hosts N] [--clusters N] [--p-keys N]",
		Short: "Bound how many hosts, clusters and P_Keys a tenant may have", Args: cli.Operands("TENANT"),
		Long: `Bound how many hosts, clusters and P_Keys a tenant may have. N is a number, 0 for none, or
"unlimited" for no bound. What is not named stays as it is. A host counts until its release is
proven, and a P_Key until it is proven absent. A quota below what the tenant has takes nothing
away: more is refused.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, t, err := tenantNamed(cmd.Context(), env, args[0])
			if err != nil {
				return err
			}
			var q v1.TenantQuota
			if t.Quota != nil {
				q = *t.Quota
			}
			named := false
			for _, b := range []struct {
				flag, text string
				most       **int
			}{{"hosts", hosts, &q.Hosts}, {"clusters", clusters, &q.Clusters}, {"p-keys", keys, &q.PKeys}} {
				if !cmd.Flags().Changed(b.flag) {
					continue
				}
				named = true
				if *b.most, err = mostOf(b.flag, b.text); err != nil {
					return err
				}
			}
			if !named {
				return &cli.UsageError{Msg: "nothing is to be changed: none of --hosts, --clusters and --p-keys is given", Hint: "portcullis tenant show " + args[0] + " shows the quota"}
			}
			if t, err = c.Tenants().SetQuota(client.IfMatch(cmd.Context(), t.Version), args[0], q); err != nil {
				return err
			}
			return showTenant(env, t)
		},
	}
	cmd.Flags().StringVar(&hosts, "hosts", "", `hosts at once: a number, or "unlimited"`)
	cmd.Flags().StringVar(&clusters, "clusters", "", `clusters: a number, or "unlimited"`)
	cmd.Flags().StringVar(&keys, "p-keys", "", `P_Keys: a number, or "unlimited"`)
	return cmd
}

// mostOf returns the bound that a flag says, nil for none.
func mostOf(flag, text string) (*int, error) {
	if text == unlimited {
		return nil, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return nil, &cli.UsageError{Msg: fmt.Sprintf("--%s %q is not a number from 0", flag, text), Hint: `a number, 0 for none, or "unlimited"`}
	}
	return new(int(n)), nil
}

package fabric

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

// registeredFlags adds the options of lists of registered objects.
func registeredFlags(c *cobra.Command, q *v1.RegisteredQuery) {
	q.Limit = v1.MaxPage
	c.Flags().StringVar(&q.Port, "port", "", "only this end port: GUID, LID, NODE or NODE/PORT")
	c.Flags().StringVar(&q.Host, "host", "", "only this host, as inventory or its adapter names it")
	c.Flags().StringVar(&q.Tenant, "tenant", "", "only hosts of this tenant")
}

// showList asks for all pages of a list and prints it.
func showList[T any](env *cli.Env, cmd *cobra.Command, ask func(context.Context, *client.Client) iter.Seq2[*v1.Page[T], error],
	none string, header []string, row func(*T) []string,
) error {
	c, err := env.Connect()
	if err != nil {
		return err
	}
	page, err := gather(ask(cmd.Context(), c))
	if err != nil {
		return err
	}
	return list(env, page, none, header, row)
}

func fabricGroups(env *cli.Env) *cobra.Command {
	var q v1.GroupQuery
	c := &cobra.Command{
		Use: "groups", Short: "List multicast groups", Args: cli.Operands(),
		Long: `List multicast groups. --port, --host and --tenant select the groups that these are
members of.

ROOT is the top switch of the tree of the multicast LID. Several groups of a partition
may share one LID.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return showList(env, cmd, func(ctx context.Context, c *client.Client) iter.Seq2[*v1.Page[v1.FabricGroup], error] {
				return c.Registered().Groups(ctx, q)
			},
				"there is no such group", groupHeader, groupRow)
		},
	}
	registeredFlags(c, &q.RegisteredQuery)
	c.Flags().StringVar(&q.MGID, "mgid", "", "only this group")
	c.Flags().StringVar(&q.PKey, "p-key", "", "only groups of this partition")
	return c
}

func fabricMembers(env *cli.Env) *cobra.Command {
	var q v1.RegisteredQuery
	c := &cobra.Command{
		Use: "members MGID", Short: "List the members of a multicast group", Args: cli.Operands("MGID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return showList(env, cmd, func(ctx context.Context, c *client.Client) iter.Seq2[*v1.Page[v1.FabricMember], error] {
				return c.Registered().Members(ctx, args[0], q)
			}, "it has no such members", registrantHeader("STATE", "JOINED BY"), memberRow)
		},
	}
	registeredFlags(c, &q)
	return c
}

var groupHeader = []string{"MGID", "MLID", "P_KEY", "Q_KEY", "MTU", "GB/S", "SL", "MEMBERS", "CONFIGURED", "ROOT", "SWITCHES"}

// registrantHeader heads the columns of registrant, and more.
func registrantHeader(more ...string) []string {
	return append([]string{"PORT", "GUID", "ALIAS", "LID", "CABLED TO", "HOST", "TENANT"}, more...)
}

func groupRow(g *v1.FabricGroup) []string {
	return []string{
		g.MGID.String(), fmt.Sprintf("0x%04x", uint16(g.MLID)), g.PKey.String(), g.QKey, strconv.Itoa(g.MTU), gigabits(g.Rate),
		strconv.Itoa(int(g.SL)), strconv.Itoa(g.Members), cli.YesNo(g.Configured), strings.Join(g.Roots, ", "), strconv.Itoa(g.Switches),
	}
}

func memberRow(m *v1.FabricMember) []string {
	by := cli.GUID(m.By)
	if m.Proxy {
		by += " (proxy)"
	}
	return append(registrant(&m.Registrant), m.JoinState, strings.TrimSpace(by))
}

// registrant is the part of a row that says whose something is.
func registrant(r *v1.Registrant) []string {
	name := r.Name
	if name == "" {
		name = "not seen"
	}
	return []string{name, r.Port.String(), cli.GUID(r.Alias), cli.LID(r.LID), r.At, r.Host, r.Tenant}
}

func fabricServices(env *cli.Env) *cobra.Command {
	var q v1.ServiceQuery
	c := &cobra.Command{
		Use: "services", Short: "List services that ports have registered", Args: cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return showList(env, cmd, func(ctx context.Context, c *client.Client) iter.Seq2[*v1.Page[v1.FabricService], error] {
				return c.Registered().Services(ctx, q)
			}, "no such service is registered", append([]string{"SERVICE ID", "NAME"}, registrantHeader("P_KEY", "KEY", "EXPIRES")...), serviceRow)
		},
	}
	registeredFlags(c, &q.RegisteredQuery)
	c.Flags().StringVar(&q.ID, "service-id", "", "only services with this ServiceID")
	c.Flags().StringVar(&q.Name, "name", "", "only services with this name")
	c.Flags().StringVar(&q.PKey, "p-key", "", "only services of this partition")
	return c
}

func serviceRow(s *v1.FabricService) []string {
	expires := "never"
	if !s.Expires.IsZero() {
		expires = cli.Stamp(s.Expires)
	}
	return append(append([]string{s.ID.String(), s.Name}, registrant(&s.Registrant)...), cli.PKey(s.PKey), cli.YesNo(s.Keyed), expires)
}

func fabricSubscriptions(env *cli.Env) *cobra.Command {
	var q v1.RegisteredQuery
	c := &cobra.Command{
		Use: "subscriptions", Short: "List the ports that subscribed to notices", Args: cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return showList(env, cmd, func(ctx context.Context, c *client.Client) iter.Seq2[*v1.Page[v1.FabricSubscription], error] {
				return c.Registered().Subscriptions(ctx, q)
			}, "no port has subscribed", registrantHeader("TO", "ABOUT", "QP", "TRUSTED"), subscriptionRow)
		},
	}
	registeredFlags(c, &q)
	return c
}

func subscriptionRow(s *v1.FabricSubscription) []string {
	return append(registrant(&s.Registrant), s.What, s.About, s.QPN, cli.YesNo(s.Trusted))
}

func fabricAliases(env *cli.Env) *cobra.Command {
	var q v1.RegisteredQuery
	c := &cobra.Command{
		Use: "aliases", Short: "List alias GUIDs that are assigned to ports", Args: cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return showList(env, cmd, func(ctx context.Context, c *client.Client) iter.Seq2[*v1.Page[v1.FabricAlias], error] {
				return c.Registered().Aliases(ctx, q)
			}, "no port has one", registrantHeader("ENTRY", "READ BACK"), aliasRow)
		},
	}
	registeredFlags(c, &q)
	return c
}

func aliasRow(r *v1.FabricAlias) []string {
	return append(registrant(&r.Registrant), strconv.Itoa(r.Entry), cli.YesNo(r.Proven))
}

func fabricSA(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "sa", Short: "Show the state of subnet administration", Args: cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			s, err := c.Registered().SA(cmd.Context())
			if err != nil {
				return err
			}
			return env.Print(s, func(w *cli.Columns) { showSA(w, s) })
		},
	}
}

func showSA(w *cli.Columns, s *v1.FabricSA) {
	w.Row("Hosts are answered", cli.YesNo(s.Serving))
	w.Row("Registered", fmt.Sprintf("%s, %s, %s, alias GUIDs of %s",
		cli.Count(s.Groups, "group"), cli.Count(s.Services, "service"), cli.Count(s.Subscriptions, "subscription"), cli.Count(s.Aliased, "port")))
	key := "none"
	switch {
	case s.KeyEpoch == 0:
	case s.KeySince.IsZero():
		key = "of a file"
	default:
		key = fmt.Sprintf("epoch %d, since %s", s.KeyEpoch, cli.Stamp(s.KeySince))
		if !s.KeyGrace.IsZero() {
			key += "; the previous one is accepted until " + cli.Stamp(s.KeyGrace)
		}
	}
	w.Row("SA_Key", key)
	w.Row("Packets", fmt.Sprintf("%d, of these %d while hosts were not answered", s.Packets, s.Unserved))
	w.Row("Answers", fmt.Sprintf("%d, and %d tables; %s under way", s.Answers, s.Tables, cli.Count(s.Sessions, "message")))
	r := &s.Reports
	w.Row("Reports", fmt.Sprintf("%d sent, %d again, %d answered, %d failed, %d dropped; %d under way, %d wait",
		r.Sent, r.Resent, r.Answered, r.Failed, r.Dropped, r.OnWire, r.Queued))
	w.Row("Too costly", strconv.FormatUint(s.Costly, 10))
	w.Row("Refused", counts(s.Refused))
	w.Row("Limited", counts(s.Limited))
}

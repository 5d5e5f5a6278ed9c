package host

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
	"portcullis/cmd/portcullis/result"
)

func hostCommand(env *cli.Env) *cobra.Command {
	return cli.Group("host", "Show hosts, assign them to clusters and release them",
		hostList(env), hostShow(env), hostAssign(env), hostRelease(env), hostFence(env), hostRemove(env), hostWait(env), result.HostResult(env), hostTPMCleared(env), hostGUIDResolved(env))
}

// getHost returns a host, and the client that asked for it.
func getHost(cmd *cobra.Command, env *cli.Env, id string) (*client.Client, *v1.Host, error) {
	c, err := env.Connect()
	if err != nil {
		return nil, nil, err
	}
	h, err := c.Hosts().Get(cmd.Context(), id)
	return c, h, err
}

func hostShow(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "show HOST", Short: "Show a host, its guards and where the fabric sees it", Args: cli.Operands("HOST"),
		ValidArgsFunction: env.CompleteHosts,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, h, err := getHost(cmd, env, args[0])
			if err != nil {
				return err
			}
			isolation := ""
			if env.Tabular() {
				isolation = cli.HostIsolation(c.IsolationPorts(cmd.Context(), v1.IsolationPortQuery{Host: h.ID}))
			}
			return env.Print(h, func(w *cli.Columns) { showHost(w, h, isolation) })
		},
	}
}

// phaseSince returns the phase of a host, and since when, which is not known of a host that was
// never assigned.
func phaseSince(s *v1.HostStatus) string {
	if s.Since.IsZero() {
		return string(s.Phase)
	}
	return fmt.Sprintf("%s since %s", s.Phase, cli.Stamp(s.Since))
}

// state returns the state of a host, which is known, and the first guard that holds it there.
func state(s *v1.HostStatus) string {
	i := slices.IndexFunc(s.Guards, func(g v1.Guard) bool { return !g.Met })
	if i < 0 {
		return string(s.State)
	}
	return fmt.Sprintf("%s; %s: %s", s.State, s.Guards[i].Name, s.Guards[i].Detail)
}

// showHost shows a host. isolation is what is proven of its ports, "" if that is not to be seen.
func showHost(w *cli.Columns, h *v1.Host, isolation string) {
	s := &h.Status
	w.Row("Host", h.ID)
	w.Row("Tenant", h.Tenant)
	w.Row("Cluster", h.Cluster)
	if h.Set != "" {
		w.Row("Set", h.Set)
	}
	w.Row("P_Key", cli.PKey(s.PKey))
	w.Row("Phase", phaseSince(s))
	if s.State != "" {
		w.Row("State", state(s))
	}
	if isolation != "" {
		w.Row("Isolation", isolation)
	}
	w.Row("Window until", cli.Stamp(s.Window))
	w.Row("Attested", cli.Stamp(s.Attested))
	w.Row("Handed over", cli.Stamp(s.Sealed))
	w.Row("EK SHA-256", h.EK)
	w.Row("Class", h.Class)
	w.Row("Rack", h.Rack)
	cli.LabelRow(w, h.Labels)
	w.Row("Assignment", assignment(h))
	w.Row("Reference", s.Reference)
	for _, what := range s.Waived {
		w.Row("Waived", what)
	}
	for _, o := range s.Outdated {
		then := "the host stays admitted; it must attest at its next provisioning"
		if o.Withdraws {
			then = "nothing is granted on it"
		}
		w.Row("Outdated", fmt.Sprintf("since %s (%s): %s; %s", cli.Stamp(o.Since), o.Cause, o.Detail, then))
	}
	for _, c := range s.Conflicts {
		w.Row("Conflict", fmt.Sprintf("%s GUID %v is claimed by host %s too", cli.Stamp(c.Time), c.GUID, c.With))
	}
	if d := s.LastDenial; d != nil {
		w.Row("Last denial", fmt.Sprintf("%s %s: %s", cli.Stamp(d.Time), d.Code, d.Detail))
	}
	w.Gap()
	w.Row("GUARD", "MET", "WHY NOT")
	for _, g := range s.Guards {
		w.Row(g.Name, cli.YesNo(g.Met), g.Detail)
	}
	w.Gap()
	w.Row("HCA", "PORT", "GUID", "CABLED AT", "SEEN AT", "P_KEYS READ BACK")
	for _, hca := range h.HCAs {
		for _, p := range hca.Ports {
			w.Row(hca.NodeGUID.String(), strconv.Itoa(int(p.Num)), p.GUID.String(), cli.Place(p.Cabled), cli.Place(p.Seen), cli.PKeys(p.PKeys))
		}
	}
}

// assignment says which assignment of a host is, or was, its last one.
func assignment(h *v1.Host) string {
	switch {
	case h.Epoch == 0:
		return "none"
	case h.Cluster == "":
		return fmt.Sprintf("%d, which ended", h.Epoch)
	default:
		return strconv.FormatInt(h.Epoch, 10)
	}
}

// epochFlag names the assignment of a host that a command is for.
type epochFlag struct{ epoch int64 }

func (e *epochFlag) register(cmd *cobra.Command) {
	cmd.Flags().Int64Var(&e.epoch, "epoch", -1, "act only if the host's last assignment has this number (see host show); for scripts that may run late or twice")
}

// meant returns a context for a command on h, which is refused when the host was assigned again since h was shown.
func (e *epochFlag) meant(ctx context.Context, h *v1.Host) context.Context {
	epoch := h.Epoch
	if e.epoch >= 0 {
		epoch = e.epoch
	}
	return client.IfMatch(ctx, strconv.FormatInt(epoch, 10))
}

func hostAssign(env *cli.Env) *cobra.Command {
	var cluster, key string
	var window time.Duration
	var w cli.WaitFlags
	var e epochFlag
	cmd := &cobra.Command{
		Use:   "assign HOST... --cluster CLUSTER",
		Short: "Assign hosts to a cluster and open their provisioning windows",
		Long: `Assign hosts to a cluster and open their provisioning windows.

` + rangesHelp,
		Args: cli.Operands("HOST..."), ValidArgsFunction: env.CompleteHosts,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cluster == "" {
				return &cli.UsageError{Msg: "--cluster is missing", Hint: "usage: " + cmd.UseLine()}
			}
			if window%time.Second != 0 || window < 0 {
				return &cli.UsageError{Msg: fmt.Sprintf("--window %v: want whole seconds", window), Hint: "for example --window 30m"}
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			n := v1.Assignment{Cluster: cluster, Window: int(window / time.Second)}
			if n.PKey, err = cli.OptionalPKey(key); err != nil {
				return err
			}
			ids, err := e.hosts(args)
			if err != nil {
				return err
			}
			return each(cmd.Context(), env, c, ids, change{"assigned", func(ctx context.Context, id string) (*v1.Host, error) {
				h, err := c.Hosts().Get(ctx, id)
				if err != nil {
					return nil, err
				}
				return c.Hosts().Assign(e.meant(ctx, h), id, n)
			}, w, v1.PhaseAdmitted})
		},
	}
	cmd.Flags().StringVar(&cluster, "cluster", "", "the cluster to join")
	cmd.Flags().StringVar(&key, "p-key", "", "act only if the cluster has this P_Key, and was not created again with another one")
	cmd.Flags().DurationVar(&window, "window", 0, "how long the host may provision (default 1h)")
	e.register(cmd)
	w.Register(cmd, "wait until the hosts are admitted")
	return cmd
}

func hostRelease(env *cli.Env) *cobra.Command {
	var yes bool
	var number int
	var w cli.WaitFlags
	var e epochFlag
	cmd := &cobra.Command{
		Use: "release HOST... --yes", Short: "Withdraw the admission of hosts", Args: cli.Operands("HOST..."),
		Long: `Withdraw the admission of hosts.

The switch ports are closed first and read back, then the HCAs. A host is released when its
phase is quarantined again; --wait waits for that. Several hosts are released only if --hosts
names how many they are.

` + rangesHelp + `

Only the assignment that the command has found is ended, not a later one. A script that may
run late or twice names the assignment with --epoch.

With --socket, on the machine of the Subnet Manager, this also works while the store is not
available: the change is made in the fabric, and recorded when the store is back.`,
		ValidArgsFunction: env.CompleteHosts,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			if w.Wait && env.Local() {
				return &cli.UsageError{Msg: "--wait needs the service, and does not work with --socket", Hint: "leave --wait out, and check with: portcullis host show HOST"}
			}
			ids, err := e.hosts(args)
			if err != nil {
				return err
			}
			hosts, err := found(cmd.Context(), c, ids)
			if err != nil {
				return err
			}
			if err := confirmRelease(env, yes, number, hosts); err != nil {
				return err
			}
			return each(cmd.Context(), env, c, ids, change{"released", func(ctx context.Context, id string) (*v1.Host, error) {
				return c.Hosts().Release(e.meant(ctx, hosts[id]), id)
			}, w, v1.PhaseQuarantined})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it; without this, only say what would be done")
	cmd.Flags().IntVar(&number, "hosts", -1, "how many hosts are meant, if they are several")
	e.register(cmd)
	w.Register(cmd, "wait until the hosts are released")
	return cmd
}

func hostFence(env *cli.Env) *cobra.Command {
	var yes bool
	var reason string
	cmd := &cobra.Command{
		Use: "fence HOST --reason WHY --yes", Short: "Release a host and close its switch ports", Args: cli.Operands("HOST"),
		Long: `Release a host and close its switch ports.

The host loses its P_Keys as with "host release". In addition each switch port that it is
cabled to is marked as unhealthy; fabric.health.marked of the service says what follows from
that. The marks stay until an operator removes them.

It also works while the store of the service is away. With --socket, on the machine of the Subnet
Manager, it works while the service cannot be reached.`,
		ValidArgsFunction: env.CompleteHosts,
		RunE: func(cmd *cobra.Command, args []string) error {
			if reason == "" {
				return &cli.UsageError{Msg: "--reason is missing", Hint: "usage: " + cmd.UseLine()}
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			plan, err := fencePlan(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			if err := env.Confirm(yes, plan+", and its switch ports are closed"); err != nil {
				return err
			}
			// It ignores which assignment holds by now: the host itself must be removed.
			h, err := c.Hosts().Fence(cmd.Context(), args[0], v1.Fence{Reason: reason})
			if err != nil {
				return err
			}
			return afterChange(cmd.Context(), env, c, h, cli.WaitFlags{}, "")
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it; without this, only say what would be done")
	cmd.Flags().StringVar(&reason, "reason", "", "reason, for operators who find the ports closed")
	return cmd
}

// fencePlan says what a fence takes away. Over HTTPS, a host cannot be shown while the store is away, and can be fenced.
func fencePlan(ctx context.Context, c *client.Client, id string) (string, error) {
	h, err := c.Hosts().Get(ctx, id)
	if p, ok := errors.AsType[*v1.Problem](err); ok && p.Status == http.StatusServiceUnavailable {
		return fmt.Sprintf("host %s leaves its cluster, if it is in one (the service cannot show it now: %s)", id, p.Detail), nil
	}
	if err != nil {
		return "", err
	}
	return releasePlan(h), nil
}

func hostRemove(env *cli.Env) *cobra.Command {
	var yes bool
	var in v1.HostRemoval
	var e epochFlag
	cmd := &cobra.Command{
		Use: "remove HOST --reason WHY --yes", Short: "Remove a host from inventory that left permanently", Args: cli.Operands("HOST"),
		Aliases: []string{"decommission"},
		Long: `Remove a host from inventory that left permanently.

Other hosts can then have its adapters, its EK and its switch ports. The host must be released,
and each of its P_Keys must be proven absent from switch port and adapter. If the host comes
back under its id with another EK, two persons must confirm that, as for a host that never left.`,
		ValidArgsFunction: env.CompleteHosts,
		RunE: func(cmd *cobra.Command, args []string) error {
			if in.Reason == "" {
				return &cli.UsageError{Msg: "--reason is missing", Hint: "usage: " + cmd.UseLine()}
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			h, err := c.Hosts().Get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := env.Confirm(yes, fmt.Sprintf("host %s leaves inventory: other hosts can then have its %d adapters, its EK and its switch ports", h.ID, len(h.HCAs))); err != nil {
				return err
			}
			if err := c.Hosts().Remove(e.meant(cmd.Context(), h), args[0], in); err != nil {
				return err
			}
			return env.Deleted("host", args[0])
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it; without this, only say what would be done")
	cmd.Flags().StringVar(&in.Reason, "reason", "", "reason why it leaves, for the audit log")
	e.register(cmd)
	return cmd
}

func hostTPMCleared(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "tpm-cleared HOST --reason WHY", Short: "Acknowledge that a host's TPM was cleared",
		Long: `Acknowledge that a host's TPM was cleared on purpose.

Clearing a TPM resets its boot counters. Evidence with lower counters than before is refused
(cleared), until an operator acknowledges the clear.`,
	}
	return withReason(env, cmd, "reason why it was cleared, for the audit log", func(ctx context.Context, c *client.Client, host, reason string) (*v1.Host, error) {
		return c.Hosts().AcknowledgeClear(ctx, host, v1.TPMCleared{Reason: reason})
	})
}

func hostGUIDResolved(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "guid-resolved HOST --reason WHY", Short: "End the GUID conflicts of a host",
		Long: `End the GUID conflicts of a host, after it was found out which host has the GUIDs and cable or
inventory were corrected.

Hosts that claim the same GUID are held (guid-conflict): they are not admitted, not assigned,
and get no orders for their adapters. This ends all conflicts of HOST. The other hosts of these
conflicts stay held if they have another conflict. Evidence that shows such a GUID again holds
the hosts again.`,
	}
	return withReason(env, cmd, "what was found, for the audit log", func(ctx context.Context, c *client.Client, host, reason string) (*v1.Host, error) {
		return c.Hosts().ResolveGUID(ctx, host, v1.GUIDResolved{Reason: reason})
	})
}

// withReason makes cmd say something of a host, with a reason that must be given.
func withReason(env *cli.Env, cmd *cobra.Command, usage string, say func(ctx context.Context, c *client.Client, host, reason string) (*v1.Host, error)) *cobra.Command {
	var reason string
	cmd.Args, cmd.ValidArgsFunction = cli.Operands("HOST"), env.CompleteHosts
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if reason == "" {
			return &cli.UsageError{Msg: "--reason is missing", Hint: "usage: " + cmd.UseLine()}
		}
		c, err := env.Connect()
		if err != nil {
			return err
		}
		h, err := say(cmd.Context(), c, args[0], reason)
		if err != nil {
			return err
		}
		return afterChange(cmd.Context(), env, c, h, cli.WaitFlags{}, "")
	}
	cmd.Flags().StringVar(&reason, "reason", "", usage)
	return cmd
}

func releasePlan(h *v1.Host) string {
	ports := 0
	for _, hca := range h.HCAs {
		ports += len(hca.Ports)
	}
	if h.Cluster == "" {
		return fmt.Sprintf("host %s belongs to no cluster; any P_Key left on its %d ports is removed", h.ID, ports)
	}
	leaves := fmt.Sprintf("host %s leaves cluster %s of tenant %s: ", h.ID, h.Cluster, h.Tenant)
	if !h.Status.PKey.Valid() {
		return leaves + "it is not admitted, so that no port loses a P_Key; its provisioning window closes"
	}
	return leaves + fmt.Sprintf("its %d ports lose P_Key %s, and it must attest again to join another", ports, cli.PKey(h.Status.PKey))
}

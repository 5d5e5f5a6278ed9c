package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
)

func (a *app) hostCommand() *cobra.Command {
	return group("host", "Show hosts, assign them to clusters and release them",
		a.hostList(), a.hostShow(), a.hostAssign(), a.hostRelease(), a.hostFence(), a.hostRemove(), a.hostWait(), a.hostResult(), a.hostTPMCleared(), a.hostGUIDResolved())
}

func (a *app) hostShow() *cobra.Command {
	return &cobra.Command{
		Use: "show HOST", Short: "Show a host, its guards and where the fabric sees it", Args: operands("HOST"),
		ValidArgsFunction: a.completeHosts,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			h, err := c.Host(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.print(h, func(w *columns) { showHost(w, h) })
		},
	}
}

// phaseSince returns the phase of a host, and since when, which is not known of a host that was
// never assigned.
func phaseSince(s *v1.HostStatus) string {
	if s.Since.IsZero() {
		return string(s.Phase)
	}
	return fmt.Sprintf("%s since %s", s.Phase, stamp(s.Since))
}

func showHost(w *columns, h *v1.Host) {
	s := &h.Status
	w.row("Host", h.ID)
	w.row("Tenant", h.Tenant)
	w.row("Cluster", h.Cluster)
	w.row("P_Key", pkey(s.PKey))
	w.row("Phase", phaseSince(s))
	w.row("Window until", stamp(s.Window))
	w.row("Attested", stamp(s.Attested))
	w.row("Handed over", stamp(s.Sealed))
	w.row("EK SHA-256", h.EK)
	w.row("Class", h.Class)
	w.row("Rack", h.Rack)
	w.row("Assignment", assignment(h))
	w.row("Reference", s.Reference)
	for _, what := range s.Waived {
		w.row("Waived", what)
	}
	for _, o := range s.Outdated {
		then := "the host stays admitted; it must attest at its next provisioning"
		if o.Withdraws {
			then = "nothing is granted on it"
		}
		w.row("Outdated", fmt.Sprintf("since %s (%s): %s; %s", stamp(o.Since), o.Cause, o.Detail, then))
	}
	for _, c := range s.Conflicts {
		w.row("Conflict", fmt.Sprintf("%s GUID %v is claimed by host %s too", stamp(c.Time), c.GUID, c.With))
	}
	if d := s.LastDenial; d != nil {
		w.row("Last denial", fmt.Sprintf("%s %s: %s", stamp(d.Time), d.Code, d.Detail))
	}
	w.gap()
	w.row("GUARD", "MET", "WHY NOT")
	for _, g := range s.Guards {
		w.row(g.Name, yesNo(g.Met), g.Detail)
	}
	w.gap()
	w.row("HCA", "PORT", "GUID", "CABLED AT", "SEEN AT", "P_KEYS READ BACK")
	for _, hca := range h.HCAs {
		for _, p := range hca.Ports {
			w.row(hca.NodeGUID.String(), strconv.Itoa(int(p.Num)), p.GUID.String(), place(p.Cabled), place(p.Seen), pkeys(p.PKeys))
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

func (a *app) hostAssign() *cobra.Command {
	var cluster, key string
	var window time.Duration
	var w waitFlags
	var e epochFlag
	cmd := &cobra.Command{
		Use:   "assign HOST --cluster CLUSTER",
		Short: "Assign a host to a cluster and open its provisioning window",
		Args:  operands("HOST"), ValidArgsFunction: a.completeHosts,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cluster == "" {
				return &usageError{msg: "--cluster is missing", hint: "usage: " + cmd.UseLine()}
			}
			if window%time.Second != 0 || window < 0 {
				return &usageError{msg: fmt.Sprintf("--window %v: want whole seconds", window), hint: "for example --window 30m"}
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			n := v1.Assignment{Cluster: cluster, Window: int(window / time.Second)}
			if n.PKey, err = optionalPKey(key); err != nil {
				return err
			}
			h, err := c.Host(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if h, err = c.Assign(e.meant(cmd.Context(), h), args[0], n); err != nil {
				return err
			}
			return a.afterChange(cmd.Context(), c, h, w, v1.PhaseAdmitted)
		},
	}
	cmd.Flags().StringVar(&cluster, "cluster", "", "the cluster to join")
	cmd.Flags().StringVar(&key, "p-key", "", "act only if the cluster has this P_Key, and was not created again with another one")
	cmd.Flags().DurationVar(&window, "window", 0, "how long the host may provision (default 1h)")
	e.register(cmd)
	w.register(cmd, "wait until the host is admitted")
	return cmd
}

func (a *app) hostRelease() *cobra.Command {
	var yes bool
	var w waitFlags
	var e epochFlag
	cmd := &cobra.Command{
		Use: "release HOST --yes", Short: "Withdraw a host's admission", Args: operands("HOST"),
		Long: `Withdraw a host's admission.

The switch ports are closed first and read back, then the HCAs. The host is released when its
phase is quarantined again; --wait waits for that.

Only the assignment that the command has found is ended, not a later one. A script that may
run late or twice names the assignment with --epoch.

With --socket, on the machine of the Subnet Manager, this also works while the store is not
available: the change is made in the fabric, and recorded when the store is back.`,
		ValidArgsFunction: a.completeHosts,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			if w.wait && a.conn.socket != "" {
				return &usageError{msg: "--wait needs the service, and does not work with --socket", hint: "leave --wait out, and check with: portcullis host show HOST"}
			}
			h, err := c.Host(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := a.confirm(yes, releasePlan(h)); err != nil {
				return err
			}
			if h, err = c.Release(e.meant(cmd.Context(), h), args[0]); err != nil {
				return err
			}
			return a.afterChange(cmd.Context(), c, h, w, v1.PhaseQuarantined)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it; without this, only say what would be done")
	e.register(cmd)
	w.register(cmd, "wait until the host is released")
	return cmd
}

func (a *app) hostFence() *cobra.Command {
	var yes bool
	var reason string
	cmd := &cobra.Command{
		Use: "fence HOST --reason WHY --yes", Short: "Release a host and close its switch ports", Args: operands("HOST"),
		Long: `Release a host and close its switch ports.

The host loses its P_Keys as with "host release". In addition each switch port that it is
cabled to is marked as unhealthy; fabric.health.marked of the service says what follows from
that. The marks stay until an operator removes them.

It needs --socket, on the machine of the Subnet Manager, and also works while the store is not
available.`,
		ValidArgsFunction: a.completeHosts,
		RunE: func(cmd *cobra.Command, args []string) error {
			if reason == "" {
				return &usageError{msg: "--reason is missing", hint: "usage: " + cmd.UseLine()}
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			if a.conn.socket == "" {
				return &usageError{msg: "host fence needs the Subnet Manager's socket", hint: "add --socket PATH on its machine, or use: portcullis host release HOST, and portcullis fabric health mark PLACE"}
			}
			h, err := c.Host(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := a.confirm(yes, releasePlan(h)+", and its switch ports are closed"); err != nil {
				return err
			}
			// It ignores which assignment holds by now: the host itself must be removed.
			if h, err = c.Fence(cmd.Context(), args[0], v1.Fence{Reason: reason}); err != nil {
				return err
			}
			return a.afterChange(cmd.Context(), c, h, waitFlags{}, "")
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it; without this, only say what would be done")
	cmd.Flags().StringVar(&reason, "reason", "", "reason, for operators who find the ports closed")
	return cmd
}

func (a *app) hostRemove() *cobra.Command {
	var yes bool
	var in v1.HostRemoval
	var e epochFlag
	cmd := &cobra.Command{
		Use: "remove HOST --reason WHY --yes", Short: "Remove a host from inventory that left permanently", Args: operands("HOST"),
		Aliases: []string{"decommission"},
		Long: `Remove a host from inventory that left permanently.

Other hosts can then have its adapters, its EK and its switch ports. The host must be released,
and each of its P_Keys must be proven absent from switch port and adapter. If the host comes
back under its id with another EK, two persons must confirm that, as for a host that never left.`,
		ValidArgsFunction: a.completeHosts,
		RunE: func(cmd *cobra.Command, args []string) error {
			if in.Reason == "" {
				return &usageError{msg: "--reason is missing", hint: "usage: " + cmd.UseLine()}
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			h, err := c.Host(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := a.confirm(yes, fmt.Sprintf("host %s leaves inventory: other hosts can then have its %d adapters, its EK and its switch ports", h.ID, len(h.HCAs))); err != nil {
				return err
			}
			if err := c.RemoveHost(e.meant(cmd.Context(), h), args[0], in); err != nil {
				return err
			}
			return a.deleted("host", args[0])
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it; without this, only say what would be done")
	cmd.Flags().StringVar(&in.Reason, "reason", "", "reason why it leaves, for the audit log")
	e.register(cmd)
	return cmd
}

func (a *app) hostTPMCleared() *cobra.Command {
	cmd := &cobra.Command{
		Use: "tpm-cleared HOST --reason WHY", Short: "Acknowledge that a host's TPM was cleared",
		Long: `Acknowledge that a host's TPM was cleared on purpose.

Clearing a TPM resets its boot counters. Evidence with lower counters than before is refused
(cleared), until an operator acknowledges the clear.`,
	}
	return a.withReason(cmd, "reason why it was cleared, for the audit log", func(ctx context.Context, c *client.Client, host, reason string) (*v1.Host, error) {
		return c.AcknowledgeClear(ctx, host, v1.TPMCleared{Reason: reason})
	})
}

func (a *app) hostGUIDResolved() *cobra.Command {
	cmd := &cobra.Command{
		Use: "guid-resolved HOST --reason WHY", Short: "End the GUID conflicts of a host",
		Long: `End the GUID conflicts of a host, after it was found out which host has the GUIDs and cable or
inventory were corrected.

Hosts that claim the same GUID are held (guid-conflict): they are not admitted, not assigned,
and get no orders for their adapters. This ends all conflicts of HOST. The other hosts of these
conflicts stay held if they have another conflict. Evidence that shows such a GUID again holds
the hosts again.`,
	}
	return a.withReason(cmd, "what was found, for the audit log", func(ctx context.Context, c *client.Client, host, reason string) (*v1.Host, error) {
		return c.ResolveGUID(ctx, host, v1.GUIDResolved{Reason: reason})
	})
}

// withReason makes cmd say something of a host, with a reason that must be given.
func (a *app) withReason(cmd *cobra.Command, usage string, say func(ctx context.Context, c *client.Client, host, reason string) (*v1.Host, error)) *cobra.Command {
	var reason string
	cmd.Args, cmd.ValidArgsFunction = operands("HOST"), a.completeHosts
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if reason == "" {
			return &usageError{msg: "--reason is missing", hint: "usage: " + cmd.UseLine()}
		}
		c, err := a.connect()
		if err != nil {
			return err
		}
		h, err := say(cmd.Context(), c, args[0], reason)
		if err != nil {
			return err
		}
		return a.afterChange(cmd.Context(), c, h, waitFlags{}, "")
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
	return leaves + fmt.Sprintf("its %d ports lose P_Key %s, and it must attest again to join another", ports, pkey(h.Status.PKey))
}

// confirm refuses a dangerous verb without --yes, after saying what it does.
func (a *app) confirm(yes bool, plan string) error {
	if yes {
		return nil
	}
	return &usageError{msg: "not done: " + plan, hint: "add --yes to do it"}
}

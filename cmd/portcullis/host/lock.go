package host

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/ib"
)

func lockCommand(env *cli.Env) *cobra.Command {
	c := cli.Group("lock", "Show how adapters are locked against their hosts, and open those that leave",
		lockList(env), lockShow(env), lockRelease(env), lockRetain(env), lockRehearse(env), lockKeys())
	c.Long = `Show how adapters are locked against root on their hosts, and open those that leave. Keys are
never shown. They are derived from the root of the service (locks.root), the adapter's node GUID
and an epoch, which counts its locks.`
	return c
}

// adapterGUID reads the operand.
func adapterGUID(s string) (ib.GUID, error) {
	g, err := ib.ParseGUID(s)
	if err != nil {
		return 0, &cli.UsageError{Msg: fmt.Sprintf("%q is not a node GUID", cli.Plain(s)), Hint: "want 0x and 16 hexadecimal digits; portcullis lock list has them"}
	}
	return g, nil
}

func lockList(env *cli.Env) *cobra.Command {
	host := ""
	cmd := &cobra.Command{
		Use: "list", Short: "List the locks of adapters", Args: cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			all, err := c.Locks().List(cmd.Context(), v1.LockQuery{Host: host})
			if err != nil {
				return err
			}
			return env.Print(all, func(w *cli.Columns) {
				w.Row("ADAPTER", "HOST", "STATE", "EPOCH", "PROVEN", "CHECK", "ORDERED", "SHOWN")
				for i := range all.Items {
					l := &all.Items[i]
					w.Row(l.NodeGUID.String(), l.Host, l.State, strconv.Itoa(int(l.Epoch)), strconv.Itoa(int(l.Proven)), l.Check, cli.Stamp(l.Ordered), cli.Stamp(l.Shown))
				}
			})
		},
	}
	cmd.Flags().StringVar(&host, "host", "", "only the adapters of this host")
	return cmd
}

// onLock does something with the adapter that is the operand, and shows its lock.
func onLock(env *cli.Env, do func(context.Context, *client.Client, ib.GUID) (*v1.Lock, error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		guid, err := adapterGUID(args[0])
		if err != nil {
			return err
		}
		c, err := env.Connect()
		if err != nil {
			return err
		}
		l, err := do(cmd.Context(), c, guid)
		if err != nil {
			return err
		}
		return env.Print(l, func(w *cli.Columns) { showLock(w, l) })
	}
}

func showLock(w *cli.Columns, l *v1.Lock) {
	w.Row("Adapter", l.NodeGUID.String())
	w.Row("Host", l.Host)
	w.Row("State", l.State)
	w.Row("Epoch", fmt.Sprintf("%d, last proven %d", l.Epoch, l.Proven))
	w.Row("Check", l.Check)
	w.Row("Ordered", cli.Stamp(l.Ordered))
	w.Row("Shown", cli.Stamp(l.Shown))
	if l.File != "" {
		w.Row("Settings", fmt.Sprintf("file %d, SHA-256 %s", l.Version, l.File))
	}
	if b := l.Bound; b != nil {
		w.Row("Bound to", boundTo(b))
	}
	if l.OpenedBy != "" {
		w.Row("Leaves", fmt.Sprintf("by decision of %s: %s", l.OpenedBy, l.Reason))
	}
}

// boundTo says which adapters take a file.
func boundTo(b *v1.LockBinding) string {
	s := "the board " + cli.Plain(b.PSID)
	switch b.To {
	case v1.BoundChallenge:
		s = fmt.Sprintf("the challenge %s of device %s, board %s", b.Challenge, b.Device, cli.Plain(b.PSID))
	case v1.BoundDevice:
		s = "the device " + b.Device
	}
	if b.Less != "" {
		s += ", not more, because: " + cli.Plain(b.Less)
	}
	return s
}

func lockShow(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "show GUID", Short: "Show the lock of an adapter", Args: cli.Operands("GUID"),
		RunE: onLock(env, func(ctx context.Context, c *client.Client, g ib.GUID) (*v1.Lock, error) { return c.Locks().Get(ctx, g) }),
	}
}

func lockRelease(env *cli.Env) *cobra.Command {
	reason := ""
	cmd := &cobra.Command{
		Use: "release GUID", Short: "Decide that an adapter leaves: it is opened permanently at its next provisioning", Args: cli.Operands("GUID"),
		Long: `Decide that an adapter leaves, for example to its manufacturer. At the next provisioning of its
host the agent gets the keys to open it, and no key to lock it. The host is not admitted with
it. The audit log records the decision and its reason.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return &cli.UsageError{Msg: "--reason is needed", Hint: "say why the adapter leaves, for the audit log"}
			}
			return onLock(env, func(ctx context.Context, c *client.Client, g ib.GUID) (*v1.Lock, error) {
				return c.Locks().Release(ctx, g, v1.LockRelease{Reason: reason})
			})(cmd, args)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "reason, for the audit log")
	return cmd
}

func lockRetain(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "retain GUID", Short: "Cancel the decision that an adapter leaves", Args: cli.Operands("GUID"),
		RunE: onLock(env, func(ctx context.Context, c *client.Client, g ib.GUID) (*v1.Lock, error) {
			if err := c.Locks().Retain(ctx, g); err != nil {
				return nil, err
			}
			return c.Locks().Get(ctx, g)
		}),
	}
}

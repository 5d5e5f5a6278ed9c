package topology

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

func topospecDraft(env *cli.Env) *cobra.Command {
	reason, draft, inventory, fabric := "", false, false, ""
	cmd := &cobra.Command{
		Use: "draft FILE | --from-inventory", Short: "Submit a topology as a draft", Args: cobra.MaximumNArgs(1),
		Long: `Submit a native revision or a topoconfig.conf to the service, which keeps it as a draft. It gets
the next number, and the revision in force as its parent. A file that cannot be used is refused,
with each wrong line. So is a file that is empty, truncated or of another fabric.

--from-inventory makes the draft of the inventory: its switches, hosts, stock and cables, with the
policy, routers, boundaries and states of links of the revision in force. "inventory check" lists
the differences beforehand. --fabric names the fabric while no revision is in force.`,
		Example: `  portcullis topospec draft rail-a.yaml --reason "host gpu-17 moved to rack 4"
  portcullis topospec draft --from-inventory --reason "racks 12 to 15 delivered"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.WantReason(reason); err != nil {
				return err
			}
			if inventory != (len(args) == 0) {
				return &cli.UsageError{Msg: "want either FILE or --from-inventory", Hint: "a draft is made of one of them"}
			}
			if inventory {
				return draftInventory(cmd.Context(), env, v1.TopospecFromInventory{Fabric: fabric, Reason: reason})
			}
			data, err := readInput(env, args[0])
			if err != nil {
				return err
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			name := filepath.Base(args[0])
			if args[0] == "-" {
				name = "stdin"
			}
			r, err := c.Topospec().Draft(cmd.Context(), v1.NewTopospec{Name: name, Content: string(data), Draft: draft, Reason: reason})
			if err != nil {
				return err
			}
			return env.Print(r, func(w *cli.Columns) { showDraft(w, r) })
		},
	}
	draftFlag(cmd, &draft)
	cli.ReasonFlag(cmd, &reason)
	cmd.Flags().BoolVar(&inventory, "from-inventory", false, "make the draft of the inventory")
	cmd.Flags().StringVar(&fabric, "fabric", "", "name of the fabric, where no revision is in force")
	return cmd
}

func draftInventory(ctx context.Context, env *cli.Env, in v1.TopospecFromInventory) error {
	c, err := env.Connect()
	if err != nil {
		return err
	}
	r, err := c.Inventory().Draft(ctx, in)
	if err != nil {
		return err
	}
	return env.Print(r, func(w *cli.Columns) { showDraft(w, r) })
}

// showDraft shows a draft, and what is to be done with it.
func showDraft(w *cli.Columns, r *v1.TopospecRevision) {
	showRevision(w, r)
	w.Text("next: portcullis topospec check %d; portcullis topospec simulate %d", r.Revision, r.Revision)
}

// revisionStep is a command that takes a revision a step further.
func revisionStep(env *cli.Env, cmd *cobra.Command, do func(ctx context.Context, c *client.Client, number uint64) (*v1.TopospecRevision, error)) *cobra.Command {
	cmd.Args = cli.Operands("REVISION")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		number, err := wantRevision(args[0])
		if err != nil {
			return err
		}
		c, err := env.Connect()
		if err != nil {
			return err
		}
		r, err := do(cmd.Context(), c, number)
		if err != nil {
			return err
		}
		return env.Print(r, func(w *cli.Columns) { showRevision(w, r) })
	}
	return cmd
}

func topospecApprove(env *cli.Env) *cobra.Command {
	digest, reason := "", ""
	cmd := revisionStep(env, &cobra.Command{
		Use: "approve REVISION", Short: "Approve a draft of another person",
		Long: `Approve a draft of another person, by the digest that "topospec show" prints. Use "topospec diff"
and "topospec simulate" to see what it changes. Its author may not approve it, unless
fabric.topology.two_persons is false. Changes that two_persons of the policy in force names need
two approvals.`,
		Example: `  portcullis topospec diff 41 42
  portcullis topospec simulate 42
  portcullis topospec approve 42 --digest 3f2a90b1c4de`,
	}, func(ctx context.Context, c *client.Client, number uint64) (*v1.TopospecRevision, error) {
		if digest == "" {
			return nil, &cli.UsageError{Msg: "no --digest is given", Hint: fmt.Sprintf("portcullis topospec show %d prints the digest of what you approve", number)}
		}
		return c.Topospec().Approve(ctx, number, "", v1.TopospecApprove{Digest: digest, Reason: reason})
	})
	cmd.Flags().StringVar(&digest, "digest", "", "digest of the draft, or its first 12 digits; it must be given")
	cli.WordFlag(cmd, &reason)
	return cmd
}

func topospecReject(env *cli.Env) *cobra.Command {
	reason := ""
	cmd := revisionStep(env, &cobra.Command{Use: "reject REVISION", Short: "Reject a draft"},
		func(ctx context.Context, c *client.Client, number uint64) (*v1.TopospecRevision, error) {
			if err := cli.WantReason(reason); err != nil {
				return nil, err
			}
			return c.Topospec().Reject(ctx, number, "", v1.TopospecReject{Reason: reason})
		})
	cli.ReasonFlag(cmd, &reason)
	return cmd
}

func topospecActivate(env *cli.Env) *cobra.Command {
	in, w := v1.TopospecActivate{}, cli.WaitFlags{}
	cmd := &cobra.Command{
		Use: "activate REVISION", Short: "Activate an approved draft, or change the mode of the revision in force", Args: cli.Operands("REVISION"),
		Long: `Activate an approved draft, or change the mode of the revision in force. A draft gets the mode of
the revision before it, unless --mode names a milder one. It is first simulated with the fabric
as it is seen now, and guards may refuse it (see "topospec simulate").

The first revision starts in mode observe. To promote it, look at "topospec status", and then
activate the same revision with --mode warn or enforce.

For some time afterwards (fabric.topology.watch) the previous state comes back automatically if
fewer links are verified than predicted. --wait waits until the Subnet Manager has the revision.`,
		Example: `  portcullis topospec activate 42 --reason "ticket 1234" --wait
  portcullis topospec activate 42 --mode enforce --reason "score is 100%"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := wantRevision(args[0])
			if err != nil {
				return err
			}
			if err := cli.WantReason(in.Reason); err != nil {
				return err
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			t, err := c.Topospec().Activate(cmd.Context(), number, "", in)
			if err != nil {
				return err
			}
			return showApplied(cmd.Context(), env, c, t, w)
		},
	}
	modeFlag(cmd, &in.Mode)
	cli.ReasonFlag(cmd, &in.Reason)
	w.Register(cmd, "wait until the Subnet Manager has it")
	return cmd
}

func topospecRollback(env *cli.Env) *cobra.Command {
	in, w := v1.TopospecRollback{}, cli.WaitFlags{}
	cmd := &cobra.Command{
		Use: "rollback [REVISION]", Short: "Activate an earlier revision again", Args: cobra.MaximumNArgs(1),
		Long: `Activate the previous revision again, or an earlier one that is named. It was approved before, so no
approval is needed. Its mode is the milder one of its earlier mode and the present mode; --mode may
name an even milder one. Under enforce it must contain most of the links that are up, and the
Subnet Manager's path. The number of its own links that are missing does not count.`,
		Example: `  portcullis topospec rollback --reason "hosts of rack 7 went dark"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if len(args) == 1 {
				if in.Revision, err = wantRevision(args[0]); err != nil {
					return err
				}
			}
			if err := cli.WantReason(in.Reason); err != nil {
				return err
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			t, err := c.Topospec().Rollback(cmd.Context(), "", in)
			if err != nil {
				return err
			}
			return showApplied(cmd.Context(), env, c, t, w)
		},
	}
	modeFlag(cmd, &in.Mode)
	cli.ReasonFlag(cmd, &in.Reason)
	w.Register(cmd, "wait until the Subnet Manager has it")
	return cmd
}

// applyPause is between two looks at whether the Subnet Manager has what is wanted.
const applyPause = 200 * time.Millisecond

// showApplied prints what is in force, after waiting for the Subnet Manager when asked.
func showApplied(ctx context.Context, env *cli.Env, c *client.Client, t *v1.Topospec, w cli.WaitFlags) error {
	wanted := t.Version
	if w.Wait {
		ctx, cancel := context.WithTimeout(ctx, w.Timeout)
		defer cancel()
		late := func() error {
			return &cli.NotConverged{
				Msg:  fmt.Sprintf("revision %d is wanted in mode %s, and after %v the subnet manager has not taken it: %s", t.Revision, t.Mode, w.Timeout, t.Problem),
				Hint: "see portcullis topospec status and portcullis sm status; the service continues to try",
			}
		}
		for !t.Applied {
			select {
			case <-ctx.Done():
				return late()
			case <-time.After(applyPause):
			}
			next, err := c.Topospec().Get(ctx)
			if err != nil && ctx.Err() != nil {
				return late()
			}
			if err != nil {
				return err
			}
			if next.Version != wanted {
				return fmt.Errorf("another change was made: revision %d in mode %s, by %s: %s", next.Revision, next.Mode, next.By, next.Reason)
			}
			t = next
		}
	}
	return env.Print(t, func(w *cli.Columns) { showTopospec(w, t) })
}

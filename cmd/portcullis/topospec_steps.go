package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
)

func (a *app) topospecDraft() *cobra.Command {
	reason, draft := "", false
	cmd := &cobra.Command{
		Use: "draft FILE", Short: "Hand a topology in as a draft", Args: operands("FILE"),
		Long: `Hand a native revision or a topoconfig.conf in to the service, which keeps it as a
draft. It gets the next number, and the revision in force as its parent. What cannot
be law at all is refused with each line that is wrong; so is a file that is empty, cut
off or of another fabric.`,
		Example: `  portcullis topospec draft rail-a.yaml --reason "host gpu-17 moved to rack 4"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wantReason(reason); err != nil {
				return err
			}
			data, err := a.readInput(args[0])
			if err != nil {
				return err
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			name := filepath.Base(args[0])
			if args[0] == "-" {
				name = "stdin"
			}
			r, err := c.DraftTopospec(cmd.Context(), v1.NewTopospec{Name: name, Content: string(data), Draft: draft, Reason: reason})
			if err != nil {
				return err
			}
			return a.print(r, func(w *columns) {
				showRevision(w, r)
				w.text("next: portcullis topospec check %d; portcullis topospec simulate %d", r.Revision, r.Revision)
			})
		},
	}
	draftFlag(cmd, &draft)
	reasonFlag(cmd, &reason)
	return cmd
}

// revisionStep is a command that takes a revision a step further.
func (a *app) revisionStep(cmd *cobra.Command, do func(ctx context.Context, c *client.Client, number uint64) (*v1.TopospecRevision, error)) *cobra.Command {
	cmd.Args = operands("REVISION")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		number, err := wantRevision(args[0])
		if err != nil {
			return err
		}
		c, err := a.connect()
		if err != nil {
			return err
		}
		r, err := do(cmd.Context(), c, number)
		if err != nil {
			return err
		}
		return a.print(r, func(w *columns) { showRevision(w, r) })
	}
	return cmd
}

func (a *app) topospecApprove() *cobra.Command {
	digest, reason := "", ""
	cmd := a.revisionStep(&cobra.Command{
		Use: "approve REVISION", Short: "Approve a draft that somebody else wrote",
		Long: `Approve a draft, by the digest of what you looked at: topospec show prints it, topospec
diff and simulate tell what it changes. Who drafted it may not approve it, unless
fabric.topology.two_persons is false. Two approvals are needed for changes that
two_persons of the policy in force names.`,
		Example: `  portcullis topospec diff 41 42
  portcullis topospec simulate 42
  portcullis topospec approve 42 --digest 3f2a90b1c4de`,
	}, func(ctx context.Context, c *client.Client, number uint64) (*v1.TopospecRevision, error) {
		if digest == "" {
			return nil, &usageError{msg: "no --digest is given", hint: fmt.Sprintf("portcullis topospec show %d prints that of what you approve", number)}
		}
		return c.ApproveTopospec(ctx, number, "", v1.TopospecApprove{Digest: digest, Reason: reason})
	})
	cmd.Flags().StringVar(&digest, "digest", "", "digest of what you looked at, or its first 12 digits; it must be given")
	wordFlag(cmd, &reason)
	return cmd
}

func (a *app) topospecReject() *cobra.Command {
	reason := ""
	cmd := a.revisionStep(&cobra.Command{Use: "reject REVISION", Short: "End a draft"},
		func(ctx context.Context, c *client.Client, number uint64) (*v1.TopospecRevision, error) {
			if err := wantReason(reason); err != nil {
				return nil, err
			}
			return c.RejectTopospec(ctx, number, "", v1.TopospecReject{Reason: reason})
		})
	reasonFlag(cmd, &reason)
	return cmd
}

func (a *app) topospecActivate() *cobra.Command {
	in, w := v1.TopospecActivate{}, waitFlags{}
	cmd := &cobra.Command{
		Use: "activate REVISION", Short: "Put an approved draft into force, or what is in force into another mode", Args: operands("REVISION"),
		Long: `Put an approved draft into force, in the mode of the one before unless --mode names a
milder one; or put what is in force into another mode. It is simulated against the
fabric as it is seen now, and guards refuse it as topospec simulate tells.

The first revision begins in mode observe. A person promotes it after a look at
topospec status: activate the same revision with --mode warn or enforce.

For a while afterwards (fabric.topology.watch) what was in force before comes back by
itself, if fewer links are verified than was foretold. --wait waits until the Subnet
Manager has it.`,
		Example: `  portcullis topospec activate 42 --reason "ticket 1234" --wait
  portcullis topospec activate 42 --mode enforce --reason "score is 100%"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := wantRevision(args[0])
			if err != nil {
				return err
			}
			if err := wantReason(in.Reason); err != nil {
				return err
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			t, err := c.ActivateTopospec(cmd.Context(), number, "", in)
			if err != nil {
				return err
			}
			return a.showApplied(cmd.Context(), c, t, w)
		},
	}
	modeFlag(cmd, &in.Mode)
	reasonFlag(cmd, &in.Reason)
	w.register(cmd, "wait until the Subnet Manager has it")
	return cmd
}

func (a *app) topospecRollback() *cobra.Command {
	in, w := v1.TopospecRollback{}, waitFlags{}
	cmd := &cobra.Command{
		Use: "rollback [REVISION]", Short: "Put a revision that was in force into force again", Args: cobra.MaximumNArgs(1),
		Long: `Put the revision that was in force before the present one into force again, or an
earlier one that is named. No approval is needed: it was approved once. Its mode is the
milder one of the present mode and of that which it had, unless --mode names a milder
one still. Under enforce it must have most of the links that are up, and the Subnet
Manager's way; how many of its own are lost does not count.`,
		Example: `  portcullis topospec rollback --reason "hosts of rack 7 went dark"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if len(args) == 1 {
				if in.Revision, err = wantRevision(args[0]); err != nil {
					return err
				}
			}
			if err := wantReason(in.Reason); err != nil {
				return err
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			t, err := c.RollbackTopospec(cmd.Context(), "", in)
			if err != nil {
				return err
			}
			return a.showApplied(cmd.Context(), c, t, w)
		},
	}
	modeFlag(cmd, &in.Mode)
	reasonFlag(cmd, &in.Reason)
	w.register(cmd, "wait until the Subnet Manager has it")
	return cmd
}

// applyPause is between two looks at whether the Subnet Manager has what is wanted.
const applyPause = 200 * time.Millisecond

// showApplied prints what is in force, after waiting for the Subnet Manager when asked.
func (a *app) showApplied(ctx context.Context, c *client.Client, t *v1.Topospec, w waitFlags) error {
	wanted := t.Version
	if w.wait {
		ctx, cancel := context.WithTimeout(ctx, w.timeout)
		defer cancel()
		late := func() error {
			return &notConverged{
				msg:  fmt.Sprintf("revision %d is wanted in mode %s, and after %v the subnet manager has not taken it: %s", t.Revision, t.Mode, w.timeout, t.Problem),
				hint: "portcullis topospec status and portcullis sm status tell more; the service goes on trying",
			}
		}
		for !t.Applied {
			select {
			case <-ctx.Done():
				return late()
			case <-time.After(applyPause):
			}
			next, err := c.Topospec(ctx)
			if err != nil && ctx.Err() != nil {
				return late()
			}
			if err != nil {
				return err
			}
			if next.Version != wanted {
				return fmt.Errorf("revision %d is wanted in mode %s by %s: %s", next.Revision, next.Mode, next.By, next.Reason)
			}
			t = next
		}
	}
	return a.print(t, func(w *columns) { showTopospec(w, t) })
}

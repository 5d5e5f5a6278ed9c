package audit

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

func auditShow(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "show SEQ", Short: "Show one entry of the audit log, whole", Args: cli.Operands("SEQ"),
		Long: `Show the entry of the audit log with the number SEQ: who did what to which object, when, why
(--reason of the actor), the code and detail of a refusal or decision, the SHA-256 of the
object's record before and after, and the hashes of the entry and of the one before it.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			seq, err := strconv.ParseUint(args[0], 10, 64)
			if err != nil || seq == 0 {
				return &cli.UsageError{Msg: fmt.Sprintf("%q: want the number of an entry, from 1", args[0]), Hint: "portcullis audit list shows the numbers"}
			}
			return cli.Show(cmd.Context(), env, func(ctx context.Context, c *client.Client) (*v1.AuditEntry, error) {
				return entry(ctx, c, seq)
			}, showEntry)
		},
	}
}

// entry returns the entry with a number.
func entry(ctx context.Context, c *client.Client, seq uint64) (*v1.AuditEntry, error) {
	var head v1.AuditHead
	for page, err := range c.Audit().Entries(ctx, v1.AuditQuery{After: strconv.FormatUint(seq-1, 10), Limit: 1}) {
		if err != nil {
			return nil, err
		}
		if len(page.Items) > 0 && page.Items[0].Seq == seq {
			return &page.Items[0], nil
		}
		head = page.Head
		break
	}
	err := fmt.Errorf("the audit log has no entry %d: its last has the number %d", seq, head.Seq)
	if seq <= head.Seq {
		return nil, cli.Hint(err, "an entry is missing: portcullis audit verify")
	}
	return nil, cli.Hint(err, "portcullis audit list shows the numbers")
}

func showEntry(w *cli.Columns, e *v1.AuditEntry) {
	for _, row := range [][2]string{
		{"Entry", strconv.FormatUint(e.Seq, 10)},
		{"Time", e.Time.UTC().Format(time.RFC3339Nano)},
		{"Actor", e.Actor},
		{"Action", e.Action},
		{"Object", e.Object},
		{"Code", e.Code},
		{"Detail", e.Detail},
		{"Reason", e.Reason},
		{"Request", e.Request},
		{"From", e.Source},
		{"Before", e.Before},
		{"After", e.After},
		{"Prev", e.Prev},
		{"Hash", e.Hash},
	} {
		w.Row(row[0], row[1])
	}
}

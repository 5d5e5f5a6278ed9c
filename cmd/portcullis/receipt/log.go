package receipt

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/tlog"

	"portcullis/api/client"
	"portcullis/api/receipt"
	"portcullis/api/receipt/translog"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

// forkHint is what to do about two histories.
const forkHint = "keep both heads as evidence, and ask the operator why: after a restore of the state, the log is another one, and the audit log says so (receipt-log.begin)"

func logCommand(env *cli.Env) *cobra.Command {
	c := cli.Group("log", "Watch the log of all receipts that were issued", checkpointCommand(env), proofCommand(env), monitorCommand(env))
	c.Long = `Watch the log of all receipts that were issued. It has the digest of each, in a Merkle tree, so that
the service cannot take one back, or show one history to a tenant and another one to an auditor,
without a contradiction that a monitor finds.`
	return c
}

func checkpointCommand(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "checkpoint", Short: "Show the signed head of the log", Args: cli.Operands(),
		Long: `Show the signed head of the log: its name, how many receipts it has, and the hash of them all, as a
checkpoint (C2SP tlog-checkpoint).`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			data, err := c.Receipts().Checkpoint(cmd.Context())
			if err != nil {
				return err
			}
			if _, err := translog.ReadHead(data); err != nil {
				return fmt.Errorf("what the service answered: %w", err)
			}
			_, err = env.Out.Write([]byte(cli.PlainLines(string(data))))
			return err
		},
	}
}

func proofCommand(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "proof FILE", Short: "Get the proof that a receipt is in the log", Args: cli.Operands("FILE"),
		Long: `Get the proof that the receipt in FILE is in the log, and write it to FILE.tlog-proof (C2SP
tlog-proof), where "portcullis receipt verify" finds it.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			data, err := cli.ReadBounded(nil, args[0], receipt.MaxSize)
			if err != nil {
				return err
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			return fetchProof(cmd.Context(), c, data, args[0])
		},
	}
}

// fetchProof writes the proof of a receipt beside its file.
func fetchProof(ctx context.Context, c *client.Client, data []byte, file string) error {
	proof, err := c.Receipts().Proof(ctx, translog.DigestOf(data).String())
	if err == nil {
		_, err = translog.ParseProof(proof)
	}
	if err == nil {
		err = renameio.WriteFile(file+translog.Extension, proof, 0o644)
	}
	if err != nil {
		return cli.Hint(fmt.Errorf("the proof that %s is in the log of receipts: %w", file, err), "portcullis receipt log proof "+file+" tries again")
	}
	return nil
}

// watched is what the monitor found.
type watched struct {
	Origin string `json:"origin"`
	Before *int64 `json:"before,omitempty"` // size of the head that was kept; nil: none was
	Size   int64  `json:"size"`
	Proofs int    `json:"proofs"` // that were compared
}

func monitorCommand(env *cli.Env) *cobra.Command {
	var keys []string
	var state string
	cmd := &cobra.Command{
		Use: "monitor --state FILE --key PUBKEY [PROOF...]", Short: "Verify that the log only grew since the last time",
		Long: `Get the signed head of the log, and verify that the log still has everything that it had, in the same
order: when the head in FILE was kept, and when each PROOF was made. Then keep the new head in FILE.
The first time there is no FILE, and the log is believed.

Run it regularly, from more than one place. If there are two histories, it keeps FILE as it is, writes
the new head to FILE.other, and fails. The two are evidence: the key signed both.

Exit status: 0 the log only grew, 1 there are two histories, 2 any error.`,
		Example: `  portcullis receipt log monitor --state receipts.head --key receipts.pem receipt.json.tlog-proof`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if state == "" {
				return cli.NotCompared(&cli.UsageError{Msg: "--state is missing", Hint: "name a file that keeps the last head"})
			}
			c, err := env.Connect()
			if err != nil {
				return cli.NotCompared(err)
			}
			trusted, err := readKeys(nil, keys)
			if err != nil {
				return cli.NotCompared(err)
			}
			m := monitor{receipts: c.Receipts(), keys: trusted, state: state, proofs: args}
			w, err := m.run(cmd.Context())
			switch {
			case errors.Is(err, translog.ErrHistory):
				return cli.Hint(err, forkHint)
			case err != nil:
				return cli.NotCompared(err)
			}
			return env.Print(w, func(out *cli.Columns) {
				out.Text("%s: %s, as before and more", w.Origin, cli.Count(int(w.Size), "receipt"))
			})
		},
	}
	cmd.Flags().StringArrayVar(&keys, "key", nil, "file with public keys that are trusted (portcullis receipt keys --pem); may be given again")
	cmd.Flags().StringVar(&state, "state", "", "file that keeps the last head")
	return cmd
}

// monitor compares the log with heads of before.
type monitor struct {
	receipts client.Receipts
	keys     []receipt.PublicKey
	state    string
	proofs   []string
}

// readState reads a head that the monitor kept.
func readState(file string) (*translog.Head, error) {
	data, err := cli.ReadBounded(nil, file, translog.MaxHead)
	if err != nil {
		return nil, err
	}
	h, err := translog.ReadHead(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return h, nil
}

// run returns an error that is translog.ErrHistory if there are two histories.
func (m *monitor) run(ctx context.Context) (*watched, error) {
	var heads []*translog.Head
	w := &watched{Proofs: len(m.proofs)}
	switch kept, err := readState(m.state); {
	case err == nil:
		heads, w.Before = append(heads, kept), &kept.Size
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	for _, file := range m.proofs {
		h, err := m.headOf(file)
		if err != nil {
			return nil, err
		}
		heads = append(heads, h)
	}
	data, err := m.receipts.Checkpoint(ctx)
	if err != nil {
		if p, ok := errors.AsType[*v1.Problem](err); ok && len(heads) > 0 && (p.Code == "receipt_log_empty" || p.Code == "receipt_log_forked") {
			return nil, fmt.Errorf("%w: there was a log of %d receipts, and the service says: %s", translog.ErrHistory, heads[0].Size, p.Detail)
		}
		return nil, err
	}
	now, err := translog.OpenHead(data, m.keys)
	if err != nil {
		return nil, cli.Hint(fmt.Errorf("the head of the log: %w", err), "portcullis receipt keys shows which keys sign; trust one for a reason alone")
	}
	for _, h := range heads {
		if err := m.continues(ctx, now, h); err != nil {
			if errors.Is(err, translog.ErrHistory) {
				err = errors.Join(err, renameio.WriteFile(m.state+".other", data, 0o644))
			}
			return nil, err
		}
	}
	w.Origin, w.Size = now.Origin, now.Size
	if err := renameio.WriteFile(m.state, data, 0o644); err != nil {
		return nil, fmt.Errorf("keep the head: %w", err)
	}
	return w, nil
}

// headOf returns the head that a proof was made for. The keys may have changed since: a head that none of them signed says nothing.
func (m *monitor) headOf(file string) (*translog.Head, error) {
	data, err := cli.ReadBounded(nil, file, translog.MaxProof)
	if err != nil {
		return nil, err
	}
	p, err := translog.ParseProof(data)
	if err == nil {
		var h *translog.Head
		if h, err = translog.OpenHead(p.Head, m.keys); err == nil {
			return h, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", file, err)
}

// continues asks for the proof that the log has all that it had.
func (m *monitor) continues(ctx context.Context, now, before *translog.Head) error {
	var hashes tlog.TreeProof
	if before.Origin == now.Origin && before.Size > 0 && before.Size < now.Size {
		got, err := m.receipts.Consistency(ctx, v1.ReceiptLogQuery{From: before.Size, To: now.Size})
		if err != nil {
			return err
		}
		for _, text := range got.Hashes {
			h, err := tlog.ParseHash(text)
			if err != nil {
				return fmt.Errorf("the proof of the service has %.80q in place of a hash", text)
			}
			hashes = append(hashes, h)
		}
	}
	return translog.Continues(now, before, hashes)
}

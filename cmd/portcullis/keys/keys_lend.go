package keys

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/driver/factfile"
	"portcullis/fabricsm/driver/keystore"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/keys/keyfile"
	"portcullis/fabricsm/vault"
)

// loan is what "keys lend" is asked for.
type loan struct {
	period  time.Duration
	giveUp  bool
	to, out string
	root    string
}

// lent is what "keys lend" prints. It has no key.
type lent struct {
	GUID  ib.GUID   `json:"guid"`
	At    string    `json:"at"`
	Until time.Time `json:"until,omitzero"`
	File  string    `json:"file,omitempty"`
}

func keysLend(env *cli.Env) *cobra.Command {
	var l loan
	c := &cobra.Command{
		Use:   "lend GUID",
		Short: "Lend the key of one device to a diagnostic tool, for minutes",
		Long: `Lend the M_Key of one device to a diagnostic tool, so that protection can stay on. GUID is that
of a port, or of a switch. The key is written in clear to a new file of mode 0600, in the format
of guid2mkey. It opens only this device:

    smpquery --m_key $(awk '{print $2}' FILE) portinfo LID

When the time is over the device gets a new key and drops this one, even if it or the subnet
manager was down meanwhile. A rotation may end the loan earlier. The audit log records who lent
the key. --return ends the loan now.`,
		Example: "  portcullis keys lend 0x0002c90300a1b2c3 --for 15m --root keys.root --out key\n" +
			"  portcullis keys lend 0x0002c90300a1b2c3 --return",
		Args: cli.Operands("GUID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := ib.ParseGUID(args[0])
			if err != nil {
				return &cli.UsageError{Msg: err.Error(), Hint: "portcullis fabric keys lists port GUIDs"}
			}
			if l.giveUp {
				return returnKey(cmd.Context(), env, g)
			}
			return lendKey(cmd.Context(), env, g, &l)
		},
	}
	f := c.Flags()
	f.DurationVar(&l.period, "for", 15*time.Minute, "how long, at most 24h")
	f.StringVar(&l.to, "to", "", "tool or person it is for, for the log")
	f.StringVar(&l.out, "out", "", "file to create, with the key in clear")
	f.StringVar(&l.root, "root", "", "file with the root secret that opens it")
	f.BoolVar(&l.giveUp, "return", false, "end the loan: change the key now")
	return c
}

func returnKey(ctx context.Context, env *cli.Env, g ib.GUID) error {
	c, err := env.Connect()
	if err != nil {
		return err
	}
	k, err := c.Keys().Lend(ctx, v1.KeyLoan{GUID: g})
	if err != nil {
		return err
	}
	return env.Print(lent{GUID: g, At: k.At}, func(w *cli.Columns) { w.Text("the key of %s changes now", k.At) })
}

func lendKey(ctx context.Context, env *cli.Env, g ib.GUID, l *loan) error {
	switch {
	case l.root == "":
		return &cli.UsageError{Msg: "--root is needed", Hint: "name the file with the root secret, which opens the key"}
	case l.out == "":
		return &cli.UsageError{Msg: "--out is needed", Hint: "name a file to create; the key in clear goes into it"}
	case l.period < time.Second || l.period > v1.MaxKeyLoan*time.Second:
		return &cli.UsageError{Msg: fmt.Sprintf("--for %v: want 1s to %v", l.period, v1.MaxKeyLoan*time.Second), Hint: "lend it again when more time is needed"}
	}
	root, err := vault.FileRoot(l.root)
	if err != nil {
		return err
	}
	c, err := env.Connect()
	if err != nil {
		return err
	}
	k, err := c.Keys().Lend(ctx, v1.KeyLoan{GUID: g, Seconds: int(l.period / time.Second), To: l.to})
	if err != nil {
		return err
	}
	if err := writeLent(k, root, l.out); err != nil {
		return cli.Hint(err, fmt.Sprintf("the key is lent nevertheless; portcullis keys lend %v --return ends that", g))
	}
	return env.Print(lent{g, k.At, k.Lent, l.out}, func(w *cli.Columns) {
		w.Text("%s has the key of %s in clear until %s", l.out, k.At, cli.Stamp(k.Lent))
	})
}

// writeLent opens the one record that was lent, and writes its key.
func writeLent(k *v1.LentKey, root vault.Root, out string) error {
	const from = "the key that was lent"
	facts, err := factfile.Read(from, strings.NewReader(strings.Join(k.Facts, "\n")+"\n"))
	if err != nil {
		return err
	}
	opened, err := keystore.Read(facts, root)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	entries := keyfile.Export(opened.Records, keys.MKey)
	if len(entries) != 1 {
		return fmt.Errorf("%s: got %d keys, want that of one device", from, len(entries))
	}
	return newSecretFile(out, keyfile.Format(entries))
}

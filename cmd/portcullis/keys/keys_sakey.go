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
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/vault"
)

// saKeyTaken is what "keys sa-key" prints. It has no key.
type saKeyTaken struct {
	File  string     `json:"file"`
	Epoch keys.Epoch `json:"epoch"`
	Since time.Time  `json:"since"`
}

func keysSAKey(env *cli.Env) *cobra.Command {
	var to, out, rootFile string
	c := &cobra.Command{
		Use:   "sa-key",
		Short: "Write the SA_Key in force to a file, for tools that query subnet administration",
		Long: `Write the SA_Key in force to a new file of mode 0600, in clear. A tool that has it may query
everything in subnet administration:

    saquery --smkey $(cat FILE) -p

The key is valid until the service creates the next one, and for a grace period after that
(fabric.sa in portcullisd.yaml). The service sends it sealed, and records the request in the
audit log. The root secret opens it here.`,
		Example: "  portcullis keys sa-key --root keys.root --out sa_key --to saquery",
		Args:    cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case rootFile == "":
				return &cli.UsageError{Msg: "--root is needed", Hint: "name the file with the root secret, which opens the key"}
			case out == "":
				return &cli.UsageError{Msg: "--out is needed", Hint: "name a file to create; the key in clear goes into it"}
			}
			return takeSAKey(cmd.Context(), env, to, rootFile, out)
		},
	}
	f := c.Flags()
	f.StringVar(&to, "to", "", "tool or person it is for, for the log")
	f.StringVar(&out, "out", "", "file to create, with the key in clear")
	f.StringVar(&rootFile, "root", "", "file with the root secret that opens it")
	return c
}

func takeSAKey(ctx context.Context, env *cli.Env, to, rootFile, out string) error {
	root, err := vault.FileRoot(rootFile)
	if err != nil {
		return err
	}
	c, err := env.Connect()
	if err != nil {
		return err
	}
	k, err := c.Keys().LendSAKey(ctx, v1.SAKeyLoan{To: to})
	if err != nil {
		return err
	}
	held, err := openSAKey(k, root)
	if err != nil {
		return err
	}
	if err := newSecretFile(out, fmt.Appendf(nil, "0x%016x\n", held.Key.Reveal())); err != nil {
		return err
	}
	return env.Print(saKeyTaken{out, held.Epoch, held.Since}, func(w *cli.Columns) {
		w.Text("%s has SA_Key %d in clear, which is in force since %s", out, held.Epoch, cli.Stamp(held.Since))
	})
}

// openSAKey opens the record of the SA_Key.
func openSAKey(k *v1.SealedKeys, root vault.Root) (keys.Held, error) {
	const from = "the SA_Key"
	facts, err := factfile.Read(from, strings.NewReader(strings.Join(k.Facts, "\n")+"\n"))
	if err != nil {
		return keys.Held{}, err
	}
	opened, err := keystore.Read(facts, root)
	if err != nil {
		return keys.Held{}, fmt.Errorf("%s: %w", from, err)
	}
	for _, r := range opened.Records {
		if r.Kind == keys.SAKey && !r.Current.IsZero() {
			return r.Current, nil
		}
	}
	return keys.Held{}, fmt.Errorf("%s: no key was received", from)
}

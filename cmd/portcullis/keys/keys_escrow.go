package keys

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/driver/factfile"
	"portcullis/fabricsm/driver/keystore"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/vault"
	"portcullis/fabricsm/vault/escrow"
)

const (
	maxDigests = 512 << 20
	maxProof   = 64 << 10
)

func keysEscrow(env *cli.Env) *cobra.Command {
	var state stateFlags
	var recipients, out string
	create := &cobra.Command{
		Use:   "create",
		Short: "Create an offline kit from which all keys can be recovered",
		Long: `Create an offline kit from which all keys can be recovered if the store is lost. The kit is an
age file, which each of the recipients can open alone. Recipients are public keys of age-keygen,
"age1...", one on each line. With derived keys a kit stays valid when keys rotate. With random
keys each rotation needs a new kit. Rehearse each kit.`,
		Args: cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return createKit(cmd.Context(), env, &state, recipients, out)
		},
	}
	state.add(create)
	create.Flags().StringVar(&recipients, "recipients", "", "file of age recipients, one on each line")
	create.Flags().StringVar(&out, "out", "", "kit to write, which must not exist")
	return cli.Group("escrow", "Offline kits with all keys", create)
}

func createKit(ctx context.Context, env *cli.Env, state *stateFlags, recipients, out string) error {
	if recipients == "" || out == "" {
		return &cli.UsageError{Msg: "--recipients and --out are needed", Hint: "age-keygen creates an identity and prints its recipient"}
	}
	text, err := env.ReadFile(recipients, cli.MaxKeyFile)
	if err != nil {
		return err
	}
	to, err := escrow.Recipients(text)
	if err != nil {
		return cli.Hint(fmt.Errorf("%s: %w", recipients, err), `want lines "age1...", as age-keygen prints them after "public key:"`)
	}
	c, err := contents(ctx, env, state)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := escrow.Create(&b, c, to...); err != nil {
		return err
	}
	if err := newSecretFile(out, b.Bytes()); err != nil {
		return err
	}
	return printKit(env, c, len(to))
}

// kitReport is what is printed of a kit.
type kitReport struct {
	Fabric     string         `json:"fabric"`
	Made       time.Time      `json:"made"`
	Derived    bool           `json:"derived"` // it has a master
	Recipients int            `json:"recipients,omitempty"`
	Records    map[string]int `json:"records"` // by kind of key
}

func printKit(env *cli.Env, c *escrow.Contents, recipients int) error {
	r := kitReport{Fabric: c.Fabric, Made: c.Made, Derived: !c.Master.IsZero(), Recipients: recipients, Records: make(map[string]int)}
	for i := range c.Records {
		r.Records[c.Records[i].Kind.String()]++
	}
	return env.Print(r, func(w *cli.Columns) {
		w.Row("FABRIC", r.Fabric)
		w.Row("MADE", cli.Stamp(r.Made))
		w.Row("MASTER", cli.YesNo(r.Derived))
		if recipients > 0 {
			w.Row("RECIPIENTS", fmt.Sprint(recipients))
		}
		for _, k := range keys.Kinds() {
			if n := r.Records[k.String()]; n > 0 {
				w.Row(k.String(), fmt.Sprint(n))
			}
		}
	})
}

// openKit opens a kit with the identities of a file.
func openKit(env *cli.Env, kit, identity string) (*escrow.Contents, error) {
	if identity == "" {
		return nil, &cli.UsageError{Msg: "--identity is needed", Hint: "name the file of age-keygen that belongs to one of the kit's recipients"}
	}
	ids, err := env.Identities(identity)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(kit)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c, err := escrow.Open(f, ids...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kit, err)
	}
	return c, nil
}

func keysRehearse(env *cli.Env) *cobra.Command {
	var identity, digests, proof string
	c := &cobra.Command{
		Use:   "rehearse KIT",
		Short: "Prove that a kit opens and has every key of the store",
		Long: `Prove that a kit opens and has every key of the store, derived or stored: compare it with a list
of "portcullis keys digests". Counts are printed, and no key. The exit status is 1 if a key is
missing: create another kit then. With --proof a file is written that has no key, and that only an
open kit of the store can make: "portcullis keys rehearsed FILE" has the service record it.`,
		Args: cli.Operands("KIT"),
		RunE: func(_ *cobra.Command, args []string) error {
			return rehearse(env, args[0], identity, digests, proof)
		},
	}
	c.Flags().StringVar(&identity, "identity", "", "file with the age identity of a recipient")
	c.Flags().StringVar(&digests, "digests", "", `list of "portcullis keys digests"; - for standard input`)
	c.Flags().StringVar(&proof, "proof", "", "file to write, which must not exist: the proof for the service")
	return c
}

func keysRehearsed(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "rehearsed FILE",
		Short: "Have the service record a rehearsal",
		Long: `Have the service verify the proof of a rehearsal, and record it. FILE is what "portcullis keys
rehearse --proof" wrote. "portcullis profile check" counts the age of the list that the kit was
compared with.`,
		Args: cli.Operands("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := env.ReadFile(args[0], maxProof)
			if err != nil {
				return err
			}
			var p v1.KeyRehearsal
			if err := json.Unmarshal(text, &p); err != nil || p.List == "" {
				return cli.Hint(errors.Join(fmt.Errorf("%s: no proof of a rehearsal", args[0]), err), "portcullis keys rehearse KIT --proof FILE writes one")
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			r, err := c.Keys().Rehearsed(cmd.Context(), p)
			if err != nil {
				return err
			}
			return env.Print(r, func(w *cli.Columns) {
				w.Text("recorded: the kit of %s has all %d keys of %d devices, as of %s", cli.Stamp(r.KitMade), r.Keys, r.Devices, cli.Stamp(r.Listed))
			})
		},
	}
}

func rehearse(env *cli.Env, kit, identity, list, proof string) error {
	if list == "" {
		return &cli.UsageError{Msg: "--digests is needed", Hint: "portcullis keys digests makes the list, beside the store"}
	}
	c, err := openKit(env, kit, identity)
	if err != nil {
		return err
	}
	text, err := env.ReadFile(list, maxDigests)
	if err != nil {
		return err
	}
	var d escrow.Digests
	if err := json.Unmarshal(text, &d); err != nil {
		return cli.Hint(fmt.Errorf("%s: not a list of digests: %w", list, err), "create one with: portcullis keys digests")
	}
	r, err := c.Rehearse(&d)
	if err != nil {
		return err
	}
	if err := env.Print(r, func(w *cli.Columns) { rehearsalTable(w, r) }); err != nil {
		return err
	}
	if len(r.Missing) > 0 {
		return cli.Hint(fmt.Errorf("%d of %d keys are not in the kit", len(r.Missing), r.Keys), "create another: portcullis keys escrow create")
	}
	if proof == "" {
		return nil
	}
	return writeProof(c, &d, proof)
}

func writeProof(c *escrow.Contents, d *escrow.Digests, name string) error {
	p, err := c.Prove(d)
	if errors.Is(err, escrow.ErrUnsealedList) {
		return cli.Hint(err, "create one with: portcullis keys digests")
	}
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return newSecretFile(name, append(text, '\n'))
}

func rehearsalTable(w *cli.Columns, r *escrow.Rehearsal) {
	w.Row("FABRIC", r.Fabric)
	w.Row("KIT MADE", cli.Stamp(r.KitMade))
	w.Row("STORE LISTED", cli.Stamp(r.Listed))
	w.Row("DEVICES", fmt.Sprint(r.Devices))
	w.Row("KEYS", fmt.Sprint(r.Keys))
	w.Row("DERIVED, EQUAL", fmt.Sprint(r.Derived))
	w.Row("STORED, EQUAL", fmt.Sprint(r.Stored))
	w.Row("MISSING", fmt.Sprint(len(r.Missing)))
	for _, m := range r.Missing[:min(20, len(r.Missing))] {
		w.Text("missing: %v of %v, epoch %d", m.Kind, m.GUID, m.Epoch)
	}
}

func keysRecover(env *cli.Env) *cobra.Command {
	var identity, root, out string
	var epoch uint32
	var opensm bool
	c := &cobra.Command{
		Use:   "recover KIT",
		Short: "Create a state directory from a kit, when the store is lost",
		Long: `Create a state directory for "portcullisd sm --state-dir" from a kit, when the store is lost. Its
keys are sealed under --root, which "portcullis keys root" creates.

If derived keys were rotated since the kit was made, --epoch N names the epoch that the last
rotation reported. Each device is then tried with the key of the kit and that of epoch N.
--opensm also writes guid2mkey and the other key files of OpenSM, in clear. Create a new kit
afterwards.`,
		Args: cli.Operands("KIT"),
		RunE: func(_ *cobra.Command, args []string) error {
			return recoverKeys(env, args[0], identity, root, out, keys.Epoch(epoch), opensm)
		},
	}
	c.Flags().StringVar(&identity, "identity", "", "file with the age identity of a recipient")
	c.Flags().StringVar(&root, "root", "", "file with the root secret to seal under")
	c.Flags().StringVar(&out, "out", "", "directory to create")
	c.Flags().Uint32Var(&epoch, "epoch", 0, "latest epoch that devices may have")
	c.Flags().BoolVar(&opensm, "opensm", false, "write OpenSM's key files too, in clear")
	return c
}

func recoverKeys(env *cli.Env, kit, identity, rootFile, out string, epoch keys.Epoch, opensm bool) error {
	if rootFile == "" || out == "" {
		return &cli.UsageError{Msg: "--root and --out are needed", Hint: "create a root with: portcullis keys root FILE"}
	}
	c, err := openKit(env, kit, identity)
	if err != nil {
		return err
	}
	root, err := vault.FileRoot(rootFile)
	if err != nil {
		return err
	}
	if err := os.Mkdir(out, 0o700); err != nil {
		return err
	}
	c.Ahead(epoch, time.Now())
	files, err := factfile.Open(out, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	store, err := keystore.Open(files, root, rand.Reader)
	if err == nil {
		err = store.Restore(&keystore.Contents{Master: c.Master, Check: c.Check, Records: c.Records, Cycles: c.Cycles, Behind: c.Behind})
	}
	if err = errors.Join(err, files.Close()); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(out, "facts"), err)
	}
	if opensm {
		if _, err := exportKeys(out, c.Records, neighbours(c)); err != nil {
			return err
		}
	}
	return printKit(env, c, 0)
}

package keys

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/driver/factfile"
	"portcullis/fabricsm/driver/keystore"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/keys/keyfile"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/vault"
	"portcullis/fabricsm/vault/escrow"
)

func keysCommand(env *cli.Env) *cobra.Command {
	c := cli.Group("keys", "Back up, rehearse and recover keys of the fabric",
		keysRoot(), keysEscrow(env), keysDigests(env), keysRehearse(env), keysRehearsed(env), keysRecover(env), keysInspect(env), keysExport(env), keysLend(env), keysSAKey(env))
	c.Long = `Back up, rehearse and recover keys of the fabric. No command prints a key.

--facts is the file "facts" in the state directory of "portcullisd sm"; it may be read while
that runs. Without --facts the service sends what it has stored. These keys are sealed, and the
request is recorded in the audit log. --root is the file with the root secret that opens the
keys; it stays on this machine.`
	return c
}

func keysRoot() *cobra.Command {
	return &cobra.Command{
		Use:   "root FILE",
		Short: "Create the root secret that opens the keys of a subnet manager",
		Long: `Create the root secret that opens the keys of a subnet manager, and write it to a new file of
mode 0600. Keep it apart from the state directory and its backups: both together open all keys.
For systemd: systemd-creds encrypt FILE keys-root.cred.`,
		Args: cli.Operands("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			secret, err := vault.NewSecret(rand.Reader)
			if err != nil {
				return err
			}
			return newSecretFile(args[0], secret)
		},
	}
}

// newSecretFile writes a file that was not there, whole and durable.
func newSecretFile(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return cli.Hint(fmt.Errorf("%s exists already", name), "nothing was written; name a new file")
	}
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// stateFlags name the keys of a subnet manager.
type stateFlags struct{ facts, root string }

func (s *stateFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&s.facts, "facts", "", `file "facts" of the state directory; default: ask the service`)
	c.Flags().StringVar(&s.root, "root", "", "file with the root secret that opens it")
}

// contents opens the keys that flags name.
func contents(ctx context.Context, env *cli.Env, s *stateFlags) (*escrow.Contents, error) {
	if s.root == "" {
		return nil, &cli.UsageError{Msg: "--root is needed", Hint: "name the file with the root secret, which opens the keys"}
	}
	root, err := vault.FileRoot(s.root)
	if err != nil {
		return nil, err
	}
	facts, from, err := storedFacts(ctx, env, s.facts)
	if err != nil {
		return nil, err
	}
	c, err := keystore.Read(facts, root)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return &escrow.Contents{Fabric: c.Vault, Made: time.Now().UTC().Truncate(time.Second), Master: c.Master, Check: c.Check, Records: c.Records, Cycles: c.Cycles, Behind: c.Behind}, nil
}

// storedFacts reads facts from a file or, if none is named, from the service. It
// says where they are from.
func storedFacts(ctx context.Context, env *cli.Env, name string) ([]sm.Fact, string, error) {
	if name != "" {
		f, err := os.Open(name)
		if err != nil {
			return nil, name, err
		}
		defer f.Close()
		facts, err := factfile.Read(name, f)
		return facts, name, err
	}
	const service = "the keys of the service"
	c, err := env.Connect()
	if err != nil {
		return nil, service, cli.Hint(err, `name the service with --service, or the state of "portcullisd sm" with --facts`)
	}
	stored, err := c.Keys().Sealed(ctx)
	if err != nil {
		return nil, service, err
	}
	facts, err := factfile.Read(service, strings.NewReader(strings.Join(stored.Facts, "\n")+"\n"))
	return facts, service, err
}

func keysDigests(env *cli.Env) *cobra.Command {
	var state stateFlags
	c := &cobra.Command{
		Use:   "digests",
		Short: "List keyed digests of all keys, to rehearse a kit",
		Long: `List keyed digests of all keys as JSON, to rehearse a kit. The list contains no key, and only
the kit can be compared with it. It may leave the service's machine.`,
		Args: cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := contents(cmd.Context(), env, &state)
			if err != nil {
				return err
			}
			return env.PrintJSON(c.Digests())
		},
	}
	state.add(c)
	return c
}

// keyFiles is what "keys inspect" prints.
type keyFiles struct {
	Files     []keyFileReport `json:"files"`
	SingleKey bool            `json:"single_m_key"` // opensm.conf has one M_Key for all
	Weak      bool            `json:"single_m_key_weak"`
}

type keyFileReport struct {
	Name    string    `json:"name"`
	Kind    keys.Kind `json:"kind"`
	Devices int       `json:"devices"`
	Keyed   int       `json:"keyed"`
	Weak    int       `json:"weak"` // of which can be guessed
}

func keysInspect(env *cli.Env) *cobra.Command {
	var conf string
	c := &cobra.Command{
		Use:   "inspect DIR",
		Short: "Show what can be imported from OpenSM's or UFM's key files",
		Long: `Show what can be imported from the key files that OpenSM or UFM keep in their cache directory:
guid2mkey, guid2cckey, guid2vskey, guid2_m2n_key, guid2_n2n_key. A file with a wrong line is
refused as a whole. Keys that are easy to guess are counted.`,
		Args: cli.Operands("DIR"),
		RunE: func(_ *cobra.Command, args []string) error { return inspectKeys(env, args[0], conf) },
	}
	c.Flags().StringVar(&conf, "options", "", "opensm.conf, for a single m_key")
	return c
}

func inspectKeys(env *cli.Env, dir, conf string) error {
	out, files := keyFiles{}, make(map[keys.Kind][]keyfile.Entry)
	for _, kind := range keys.Kinds() {
		name := keyfile.Name(kind)
		if name == "" {
			continue
		}
		data, err := env.ReadFile(filepath.Join(dir, name), keyfile.MaxSize+1)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			files[kind], err = keyfile.Parse(name, data)
		}
		if err != nil {
			return err
		}
		out.Files = append(out.Files, keyFileReport{Name: name, Kind: kind, Devices: len(files[kind])})
	}
	var options keyfile.Options
	if conf != "" {
		data, err := env.ReadFile(conf, keyfile.MaxSize+1)
		if err == nil {
			options, err = keyfile.ParseOptions(conf, data)
		}
		if err != nil {
			return err
		}
	}
	m, err := keyfile.NewMigration(files, options, time.Now())
	if err != nil {
		return err
	}
	records := m.Records()
	for i := range out.Files {
		f := &out.Files[i]
		f.Weak = m.Weak(f.Kind)
		f.Keyed = len(keyfile.Export(records, f.Kind))
	}
	var single keys.Key
	if single, out.SingleKey = options.Single(); out.SingleKey {
		out.Weak = keys.Check(single) != nil
	}
	return env.Print(out, func(w *cli.Columns) {
		w.Row("FILE", "KEY", "DEVICES", "WITH A KEY", "WEAK")
		for _, f := range out.Files {
			w.Row(f.Name, f.Kind.String(), fmt.Sprint(f.Devices), fmt.Sprint(f.Keyed), fmt.Sprint(f.Weak))
		}
		if out.SingleKey {
			w.Text("%s has one M_Key for all devices; weak: %s", conf, cli.YesNo(out.Weak))
		}
	})
}

// exportKeys writes the files that OpenSM and diagnostics read, with the neighbours, and
// returns their names.
func exportKeys(dir string, records []keys.Record, links []keyfile.Link) (names []string, err error) {
	add := func(name string, text []byte) error {
		name = filepath.Join(dir, name)
		if err := newSecretFile(name, text); err != nil {
			return err
		}
		names = append(names, name)
		return nil
	}
	for _, kind := range keys.Kinds() {
		if entries := keyfile.Export(records, kind); keyfile.Name(kind) != "" && len(entries) > 0 {
			if err := add(keyfile.Name(kind), keyfile.Format(entries)); err != nil {
				return names, err
			}
		}
	}
	if len(links) > 0 {
		return names, add("neighbors", keyfile.FormatNeighbors(links))
	}
	return names, nil
}

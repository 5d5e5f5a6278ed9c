package host

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"portcullis/api/locks/lockkey"
	v1 "portcullis/api/v1"
	"portcullis/cmd/internal/input"
	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/ib"
)

// lockRoot reads the root of lock keys: 64 hexadecimal digits.
func lockRoot(file string) (lockkey.Root, error) {
	if file == "" {
		return lockkey.Root{}, &cli.UsageError{Msg: "--root is needed", Hint: "name the file of locks.root, or a copy of it"}
	}
	text, err := input.ReadFile(file, input.Small)
	if err != nil {
		return lockkey.Root{}, fmt.Errorf("root of lock keys: %w", err)
	}
	secret, err := hex.DecodeString(string(bytes.TrimSpace(text)))
	if err != nil {
		return lockkey.Root{}, fmt.Errorf("root of lock keys %s: want hexadecimal digits", file)
	}
	defer clear(secret)
	return lockkey.NewRoot(secret)
}

// rehearsed is what "lock rehearse" prints.
type rehearsed struct {
	Adapters int      `json:"adapters"`
	Wrong    []string `json:"wrong"`
}

func lockRehearse(env *cli.Env) *cobra.Command {
	var root, from string
	c := &cobra.Command{
		Use: "rehearse", Short: "Prove that a copy of the root opens every locked adapter, without opening any", Args: cli.Operands(),
		Long: `Derive the key of every adapter from a copy of the root, and compare it with the service's
records. This proves that no adapter stays locked if the service and its store are lost. --from
uses the output of "lock list --json", so that the service is not needed.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := lockRoot(root)
			if err != nil {
				return err
			}
			all, err := lockedAdapters(env, cmd, from)
			if err != nil {
				return err
			}
			out := rehearsed{Adapters: len(all.Items), Wrong: []string{}}
			for i := range all.Items {
				l := &all.Items[i]
				k, err := r.Derive(l.NodeGUID, lockkey.Epoch(l.Epoch))
				if err != nil {
					return err
				}
				if lockkey.Check(k) != l.Check {
					out.Wrong = append(out.Wrong, l.NodeGUID.String())
				}
			}
			if err := env.Print(out, func(w *cli.Columns) {
				w.Text("%d adapters, %d with another key than this root derives", out.Adapters, len(out.Wrong))
				for _, g := range out.Wrong {
					w.Text("%s", g)
				}
			}); err != nil {
				return err
			}
			switch {
			case len(out.Wrong) > 0:
				return errors.New("this root does not open these adapters: it is not the root of the service")
			case out.Adapters == 0:
				return errors.New("no adapter was ever locked: this proves nothing")
			}
			return nil
		},
	}
	c.Flags().StringVar(&root, "root", "", "file with the root, or a copy of it")
	c.Flags().StringVar(&from, "from", "", `output of "lock list --json", instead of the service`)
	return c
}

func lockedAdapters(env *cli.Env, cmd *cobra.Command, from string) (*v1.List[v1.Lock], error) {
	if from == "" {
		c, err := env.Connect()
		if err != nil {
			return nil, err
		}
		return c.Locks().List(cmd.Context(), v1.LockQuery{})
	}
	data, err := input.ReadFile(from, input.Large)
	if err != nil {
		return nil, err
	}
	var all v1.List[v1.Lock]
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	if all.Next != "" {
		return nil, cli.Hint(fmt.Errorf("%s has only one page of the locks", from), "write it with: portcullis lock list -o json")
	}
	return &all, nil
}

// maxEpochs bounds the keys that one call derives.
const maxEpochs = 256

func lockKeys() *cobra.Command {
	var root, out string
	last := uint32(8)
	c := &cobra.Command{
		Use: "keys GUID", Short: "Write an adapter's keys into a file, in clear, for use without the service", Args: cli.Operands("GUID"),
		Long: `Derive the keys of an adapter from a copy of the root, and write them into a new file, the
latest epoch first. Use it when the service and its store are lost, with
"mstflint -d DEVICE hw_access enable KEY". It needs nothing but the root. Delete the file after
use: shred -u FILE.`,
		RunE: func(_ *cobra.Command, args []string) error {
			guid, err := adapterGUID(args[0])
			if err != nil {
				return err
			}
			if out == "" || last == 0 || last > maxEpochs {
				return &cli.UsageError{Msg: fmt.Sprintf("--out is needed, and --epochs of 1 to %d", maxEpochs), Hint: "keys in clear go into a new file of mode 0600"}
			}
			r, err := lockRoot(root)
			if err != nil {
				return err
			}
			return writeLockKeys(out, r, guid, last)
		},
	}
	c.Flags().StringVar(&root, "root", "", "file with the root, or a copy of it")
	c.Flags().StringVar(&out, "out", "", "file to create")
	c.Flags().Uint32Var(&last, "epochs", last, "write the keys of epochs 1 to this one")
	return c
}

func writeLockKeys(file string, r lockkey.Root, guid ib.GUID, last uint32) (err error) {
	var text bytes.Buffer
	defer func() { clear(text.Bytes()) }()
	for e := last; e > 0; e-- {
		k, err := r.Derive(guid, lockkey.Epoch(e))
		if err != nil {
			return err
		}
		text.WriteString(strconv.FormatUint(uint64(e), 10))
		fmt.Fprintf(&text, " %016x\n", k.Reveal())
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(text.Bytes())
	return err
}

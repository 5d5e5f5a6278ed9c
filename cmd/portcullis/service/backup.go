package service

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/internal/backupfile"
	"portcullis/cmd/portcullis/cli"
)

func backupCommand(env *cli.Env) *cobra.Command {
	return cli.Group("backup", "Create, list and verify backups of the service's store", backupCreate(env), backupList(env), backupVerify(env), backupGet(env))
}

func backupCreate(env *cli.Env) *cobra.Command {
	out := ""
	c := &cobra.Command{
		Use: "create", Short: "Create a backup while the service runs", Args: cli.Operands(),
		Long: `Create a backup of the service's store while the service runs: all records of one revision,
encrypted to the recipients in backup.recipients of portcullisd.yaml. It is written into the
service's backup.directory, or with --out into a file here.

A backup contains keys of devices, sealed under keys.root. It does not contain keys.root: keep
that apart, or create an escrow kit (portcullis keys escrow create). Without it devices whose
keys are lost stay locked. "portcullisd restore" writes a backup back.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			if out == "" {
				b, err := c.Backups().Create(cmd.Context())
				if err != nil {
					return err
				}
				return env.Print(b, func(w *cli.Columns) { backupTable(w, *b) })
			}
			if err := secretFile(out, func(w io.Writer) error { return c.Backups().Stream(cmd.Context(), w) }); err != nil {
				return err
			}
			b, err := digestOf(out)
			if err != nil {
				return err
			}
			return env.Print(b, func(w *cli.Columns) { backupTable(w, *b) })
		},
	}
	c.Flags().StringVar(&out, "out", "", "file to write here, which must not exist; the service keeps no copy")
	return c
}

// secretFile has write fill a file that only its owner reads. The file is there as a whole or not at all, and must
// not be there before.
func secretFile(name string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(cli.DirOf(name), ".portcullis-")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer os.Remove(f.Name())
	if err = write(f); err != nil {
		f.Close()
		return err
	}
	if err = errors.Join(f.Sync(), f.Close()); err == nil {
		err = os.Link(f.Name(), name) // unlike a rename, it replaces nothing
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func backupList(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List backups in the service's directory, newest first", Args: cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			all, err := c.Backups().List(cmd.Context())
			if err != nil {
				return err
			}
			return env.Print(v1.List[v1.Backup]{Items: all}, func(w *cli.Columns) { backupTable(w, all...) })
		},
	}
}

func backupGet(env *cli.Env) *cobra.Command {
	out := ""
	c := &cobra.Command{
		Use: "get NAME", Short: "Copy a backup from the service's directory", Args: cli.Operands("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				out = args[0]
			}
			if strings.ContainsRune(args[0], os.PathSeparator) {
				return &cli.UsageError{Msg: fmt.Sprintf("%q is not the name of a backup", args[0]), Hint: "portcullis backup list shows the names"}
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			if err := secretFile(out, func(w io.Writer) error { return c.Backups().Read(cmd.Context(), w, args[0]) }); err != nil {
				return err
			}
			b, err := digestOf(out)
			if err != nil {
				return err
			}
			return env.Print(b, func(w *cli.Columns) { backupTable(w, *b) })
		},
	}
	c.Flags().StringVar(&out, "out", "", "file to write, which must not exist (default: NAME in this directory)")
	return c
}

func backupVerify(env *cli.Env) *cobra.Command {
	identity, onService := "", false
	var anchors []string
	c := &cobra.Command{
		Use: "verify FILE", Short: "Verify a backup, here or in the service's directory", Args: cli.Operands("FILE"),
		Long: `Verify a backup.

Without --identity its digest is compared with its contents. That detects damage, not forgery:
knowing the recipients is enough to make such a file. With --identity, on a machine that is
offline, the backup is opened: all records must be there, and its audit log must be complete.
--anchor FILE compares that log with heads that were recorded elsewhere. With --service-file
the service compares the digest of a file in its directory.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if onService {
				if identity != "" || len(anchors) > 0 {
					return &cli.UsageError{Msg: "--service-file goes with neither --identity nor --anchor", Hint: "an identity never goes to the service: portcullis backup get NAME, then verify it offline"}
				}
				c, err := env.Connect()
				if err != nil {
					return err
				}
				b, err := c.Backups().Verify(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return env.Print(b, func(w *cli.Columns) { backupTable(w, *b) })
			}
			b, err := digestOf(args[0])
			if err == nil && (identity != "" || len(anchors) > 0) {
				err = openBackup(env, b, args[0], identity, anchors)
			}
			if err != nil {
				return err
			}
			return env.Print(b, func(w *cli.Columns) {
				backupTable(w, *b)
				if identity == "" {
					w.Text("the digest is right; the contents were not checked: --identity opens the backup")
					return
				}
				w.Text("it opens: %d records, and a complete audit log of %d entries", b.Records, b.Audit.Seq)
			})
		},
	}
	c.Flags().StringVar(&identity, "identity", "", "age identity file of one of the recipients")
	c.Flags().StringArrayVar(&anchors, "anchor", nil, "file of anchored heads of the audit log; may be given more than once")
	c.Flags().BoolVar(&onService, "service-file", false, "FILE is a name in the service's directory of backups")
	return c
}

// digestOf verifies the digest of a file.
func digestOf(name string) (*v1.Backup, error) {
	f, err := backupfile.Open(name, nil, nil)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h, digest, err := f.Digest()
	if err != nil {
		return nil, err
	}
	return &v1.Backup{
		Name: name, Time: h.Time, Origin: h.Origin, Revision: h.Revision, Audit: v1.AuditHead(h.Audit), Format: h.State, Program: h.Program,
		Recipients: h.Recipients, Size: f.Size, SHA256: digest,
	}, nil
}

// openBackup verifies what is inside, and notes in b how many records there are.
func openBackup(env *cli.Env, b *v1.Backup, name, identity string, anchors []string) error {
	if identity == "" {
		return &cli.UsageError{Msg: "--anchor needs --identity", Hint: "the audit log of a backup is encrypted inside it"}
	}
	ids, err := env.Identities(identity)
	if err != nil {
		return err
	}
	f, err := backupfile.Open(name, ids, anchors)
	if err != nil {
		return err
	}
	defer f.Close()
	b.Records, err = f.Verify()
	return err
}

func backupTable(w *cli.Columns, list ...v1.Backup) {
	w.Row("BACKUP", "TIME", "REVISION", "AUDIT ENTRY", "BYTES", "RECIPIENTS", "SHA-256", "PROBLEM")
	for i := range list {
		b := &list[i]
		w.Row(b.Name, cli.Stamp(b.Time), strconv.FormatInt(b.Revision, 10), strconv.FormatUint(b.Audit.Seq, 10), strconv.FormatInt(b.Size, 10),
			strconv.Itoa(len(b.Recipients)), b.SHA256, b.Problem)
	}
}

// Package receipt has the commands about receipts: signed statements about the isolation of tenants.
package receipt

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"portcullis/api/receipt"
	"portcullis/api/receipt/translog"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

// Commands returns the nouns of this package.
func Commands(env *cli.Env) []*cobra.Command {
	c := cli.Group("receipt", "Issue and verify receipts: signed statements about the isolation of tenants",
		issueCommand(env), verifyCommand(env), logCommand(env), keysCommand(env), rotateCommand(env))
	c.Long = `Issue and verify receipts: signed statements about the isolation of tenants, for tenants and
auditors that trust a key and do not query the service.`
	return []*cobra.Command{c}
}

// flags are what a relying party knows.
type flags struct {
	keys       []string
	tenant, at string
	host       string
	proof, log string
}

// verified is what "receipt verify" found.
type verified struct {
	Key       string             `json:"key"`
	Until     time.Time          `json:"until"`
	Predicate *receipt.Predicate `json:"predicate"`
	Log       *logged            `json:"log,omitempty"` // nil: there is no proof that it is in the log
}

// logged is where a receipt is in the log of receipts.
type logged struct {
	Origin string `json:"origin"`
	Leaf   int64  `json:"leaf"`
	Size   int64  `json:"size"`
}

func verifyCommand(env *cli.Env) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use: "verify FILE --key PUBKEY", Short: "Verify a receipt without the service", Args: cli.Operands("FILE"),
		Long: `Verify a receipt without the service, and show what it says. These must hold:
  - the key signed it, and no byte of it was altered
  - it says something of every pair of tenants that count
  - nothing in it is older than it says that it may be
  - it is in the log of receipts, if FILE.tlog-proof is there or --proof names a proof. A script must
    name it: without one, nothing is said about the log.
FILE - is standard input. The public key is that of "portcullis receipt keys --pem". Get it over a
way that you trust, and keep it.

Exit status: 0 everything is isolated, 1 a packet passes, 2 the receipt was refused, 7 something is
not proven.`,
		Example: `  portcullis receipt verify receipt.json --key receipts.pem --tenant acme --proof receipt.json.tlog-proof`,
		RunE: func(_ *cobra.Command, args []string) error {
			v, err := f.verify(env.In, args[0])
			if err != nil {
				return cli.NotCompared(err)
			}
			if err := env.Print(v, func(w *cli.Columns) { show(w, v) }); err != nil {
				return cli.NotCompared(err)
			}
			switch v.Predicate.Verdict {
			case v1.Isolated:
				return nil
			case v1.Leaks:
				return cli.ErrNo
			default:
				return cli.ExitWith(cli.ExitNotVerifiable)
			}
		},
	}
	cmd.Flags().StringArrayVar(&f.keys, "key", nil, "file with public keys that are trusted (portcullis receipt keys --pem); may be given again")
	cmd.Flags().StringVar(&f.tenant, "tenant", "", "tenant that the receipt must be about (default: any, or the whole site)")
	cmd.Flags().StringVar(&f.host, "host", "", "host that the receipt must be about; with --tenant alone it must be about all hosts")
	cmd.Flags().StringVar(&f.proof, "proof", "", "file with the proof that it is in the log of receipts (default: FILE.tlog-proof, if there is one)")
	cmd.Flags().StringVar(&f.log, "log", "", "file that \"portcullis receipt log monitor\" keeps: the proof must be of the same log")
	cmd.Flags().StringVar(&f.at, "at", "", "time to verify at, for example for an audit (default: now)")
	return cmd
}

func (f *flags) verify(stdin io.Reader, file string) (*verified, error) {
	now := time.Now()
	if f.at != "" {
		var err error
		if now, err = cli.Moment("at", f.at); err != nil {
			return nil, err
		}
	}
	keys, err := readKeys(stdin, f.keys)
	if err != nil {
		return nil, err
	}
	data, err := cli.ReadBounded(stdin, file, receipt.MaxSize)
	if err != nil {
		return nil, err
	}
	r, err := receipt.Verify(data, keys, now)
	if err != nil {
		hint := "do not trust anything in it"
		if errors.Is(err, receipt.ErrStale) {
			hint = "it is genuine, but does not count at this time: ask for another"
		}
		return nil, cli.Hint(fmt.Errorf("%s: %w", file, err), hint)
	}
	if f.tenant != "" && r.Predicate.Tenant != f.tenant {
		return nil, cli.Hint(fmt.Errorf("%s: it is about %s, and not about tenant %q", file, about(r.Predicate), f.tenant), "ask for the receipt of this tenant")
	}
	if of := r.Predicate.Host; of != f.host && (of == "" || f.host != "" || f.tenant != "") {
		return nil, cli.Hint(fmt.Errorf("%s: it is about %s, and not about %s", file, about(r.Predicate), cmp.Or(f.host, "all hosts")),
			"--host names the host that it must be about")
	}
	in, err := f.logged(stdin, file, data, keys)
	if err != nil {
		return nil, err
	}
	return &verified{r.Key.ID(), r.Predicate.Until(), r.Predicate, in}, nil
}

// readKeys reads the public keys that are trusted.
func readKeys(stdin io.Reader, files []string) ([]receipt.PublicKey, error) {
	if len(files) == 0 {
		return nil, &cli.UsageError{Msg: "--key is missing", Hint: "name the file with the public key that signs receipts of the site"}
	}
	var keys []receipt.PublicKey
	for _, name := range files {
		text, err := cli.ReadBounded(stdin, name, receipt.MaxKeyFile)
		if err != nil {
			return nil, err
		}
		some, err := receipt.ParsePublicKeys(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		keys = append(keys, some...)
	}
	return keys, nil
}

// logged verifies the proof that a receipt is in the log; nil without a proof, if none was asked for.
func (f *flags) logged(stdin io.Reader, file string, data []byte, keys []receipt.PublicKey) (*logged, error) {
	name := f.proof
	if name == "" {
		name = file + translog.Extension
		if _, err := os.Stat(name); file == "-" || errors.Is(err, os.ErrNotExist) {
			if f.log != "" {
				return nil, &cli.UsageError{Msg: "there is no proof for --log to compare", Hint: "portcullis receipt log proof gets one, and --proof names it"}
			}
			return nil, nil
		}
	}
	proof, err := cli.ReadBounded(stdin, name, translog.MaxProof)
	if err != nil {
		return nil, err
	}
	at, err := translog.Verify(data, proof, keys)
	if err != nil {
		return nil, cli.Hint(fmt.Errorf("%s: %w", name, err), "the receipt is not shown to be in the log: ask for the proof again, and for the reason")
	}
	if f.log == "" {
		return &logged{at.Head.Origin, at.Index, at.Head.Size}, nil
	}
	kept, err := readState(f.log)
	if err != nil {
		return nil, err
	}
	if kept.Origin != at.Head.Origin || kept.Size == at.Head.Size && kept.Root != at.Head.Root {
		return nil, cli.Hint(fmt.Errorf("%s: %w: it is of log %q with %d receipts, and %s is of log %q with %d", name, translog.ErrHistory, at.Head.Origin,
			at.Head.Size, f.log, kept.Origin, kept.Size), forkHint)
	}
	return &logged{at.Head.Origin, at.Index, at.Head.Size}, nil
}

// about says what a receipt is about.
func about(p *receipt.Predicate) string {
	switch {
	case p.Host != "":
		return "host " + p.Host + " of tenant " + p.Tenant
	case p.Tenant != "":
		return "tenant " + p.Tenant
	}
	return "all tenants"
}

// words say verdicts to people.
var words = map[string]string{v1.Isolated: "isolated", v1.Leaks: "NOT ISOLATED", v1.IsolationUnknown: "not proven"}

// topologyText names the declared topology in force.
func topologyText(t *receipt.Topology) string {
	switch {
	case t.Digest == "":
		return "none declared"
	case t.Revision == 0:
		return t.Digest
	default:
		return fmt.Sprintf("revision %d, %s", t.Revision, t.Digest)
	}
}

// logText says where a receipt is in the log.
func logText(l *logged) string {
	if l == nil {
		return "no proof"
	}
	return fmt.Sprintf("leaf %d of %d in %s", l.Leaf, l.Size, l.Origin)
}

func show(w *cli.Columns, v *verified) {
	p, r := v.Predicate, &v.Predicate.Reading
	w.Text("%s: %s", about(p), words[p.Verdict])
	w.Row("Issued", cli.Stamp(p.Issued.At))
	w.Row("Counts until", cli.Stamp(v.Until))
	w.Row("Read", cli.Stamp(r.At))
	w.Row("Tables", r.Digest)
	w.Row("Topology", topologyText(&p.Topology))
	for _, e := range p.Keys.Epochs {
		w.Row("Epoch of "+e.Kind, fmt.Sprint(e.Epoch))
	}
	w.Row("Key", v.Key)
	w.Row("Log", logText(v.Log))
	w.Gap()
	w.Row("PAIR", "AND", "VERDICT", "HELD BY")
	for i := range p.Pairs {
		w.Row(p.Pairs[i].A, p.Pairs[i].B, words[p.Pairs[i].Verdict], p.Pairs[i].Held)
	}
	w.Gap()
	w.Row("MEMBER", "HOST", "TENANT", "DECLARED AT", "P_KEYS", "FOUND")
	for i := range p.Members.Ports {
		m := &p.Members.Ports[i]
		found := "no"
		if m.Found {
			found = "yes"
		}
		w.Row(cli.GUID(m.GUID), m.Host, m.Party, m.Place.String(), fmt.Sprint(m.PKeys), found)
	}
	w.Gap()
	w.Row("HOST", "ATTESTATION", "EVIDENCE OF", "ADAPTER", "FIRMWARE", "ASSURANCE", "LOCK", "EPOCH")
	for i := range p.Attestations {
		a := &p.Attestations[i]
		row := []string{a.Host, a.Status.String(), "none"}
		if !a.Evidence.IsZero() {
			row[2] = cli.Stamp(a.Evidence)
		}
		if len(a.Adapters) == 0 {
			w.Row(row...)
		}
		for _, d := range a.Adapters {
			w.Row(append(row, cli.GUID(d.GUID), d.Firmware, d.Assurance.String(), d.Lock.String(), strconv.FormatUint(d.LockEpoch, 10))...)
		}
	}
	w.Gap()
	if c := r.Counts; c != nil {
		w.Text("read with %s: %s of which %s; %d not read, %d missing, %d undeclared", cli.Count(c.Requests, "request"), cli.Count(c.Devices, "device"),
			cli.Count(c.Switches, "switch"), c.Unread, c.Missing, c.Undeclared)
	}
	w.Text("assumed:")
	for _, a := range r.Assumptions {
		w.Text("  %s", a)
	}
}

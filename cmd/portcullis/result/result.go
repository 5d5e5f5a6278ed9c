package result

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/attest/result"
	"portcullis/attest/result/token"
	"portcullis/cmd/portcullis/cli"
)

func resultCommand(env *cli.Env) *cobra.Command {
	c := cli.Group("result", "Verify attestation results of hosts, and manage the keys that sign them",
		resultVerify(env), resultKeys(env), resultRotate(env))
	c.Long = `Verify attestation results: signed tokens that say how a host was judged (portcullis host
result). They are for relying parties that trust the service and do not query it.`
	return c
}

// nonceOf reads a relying party's nonce; nil for none.
func nonceOf(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	n, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(n) < result.MinNonce || len(n) > result.MaxNonce {
		return nil, &cli.UsageError{
			Msg:  fmt.Sprintf("--nonce: want %d to %d bytes in base64 with padding", result.MinNonce, result.MaxNonce),
			Hint: `create one: --nonce "$(openssl rand -base64 32)"`,
		}
	}
	return n, nil
}

// HostResult returns the verb of a host that has a result about it signed.
func HostResult(env *cli.Env) *cobra.Command {
	var nonce, out string
	cmd := &cobra.Command{
		Use: "result HOST", Short: "Create a signed token that says how a host was judged", Args: cli.Operands("HOST"),
		Long: `Create a signed token for relying parties that says how the host was judged: what was accepted
and still counts. It is valid for ten minutes at most, and grants nothing at the service. --nonce
binds the token to a nonce of the relying party. "portcullis result verify" or any JOSE library
verifies it.`,
		Example: `  portcullis host result compute-01 --nonce "$(openssl rand -base64 32)" --out result.jwt`,

		ValidArgsFunction: env.CompleteHosts,
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := nonceOf(nonce)
			if err != nil {
				return err
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			r, err := c.Hosts().AttestationResult(cmd.Context(), args[0], n)
			if err != nil {
				return err
			}
			if out != "" {
				if err := renameio.WriteFile(out, []byte(r.Result+"\n"), 0o644); err != nil {
					return fmt.Errorf("write the result: %w", err)
				}
				fmt.Fprintf(env.Err, "portcullis: host %s is %s, status %s; %s until %s\n", cli.Plain(r.Host), cli.Plain(r.State), cli.Plain(r.Status), out, cli.Stamp(r.Expires))
				return nil
			}
			if !env.Tabular() {
				return env.Print(r, nil)
			}
			_, err = fmt.Fprintln(env.Out, cli.Plain(r.Result))
			return err
		},
	}
	cmd.Flags().StringVar(&nonce, "nonce", "", "8 to 64 bytes in base64, which the token must contain")
	cmd.Flags().StringVar(&out, "out", "", "file to write the token to (default: standard output)")
	return cmd
}

// verified is what "result verify" found.
type verified struct {
	Key    string         `json:"kid"`
	Claims *result.Claims `json:"claims"`
}

func resultVerify(env *cli.Env) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use: "verify FILE --keys JWKS", Short: "Verify an attestation result without the service", Args: cli.Operands("FILE"),
		Long: `Verify an attestation result without the service, and show what it says. These must hold:
  - one of the keys signed it, with ES256
  - it has our profile, and is about this host, by this issuer and with this nonce
  - it is in force
  - no status in it is better than its facts allow
FILE - is standard input.

The keys are those of /.well-known/jwks.json of the service. Get them over a connection that you
trust (portcullis result keys --jwks), and again when a key is unknown.

The exit status is 0 only if the status of the host is affirming; with --accept warning also for
a warning. Otherwise it is 3. A result that does not verify ends with 1.`,
		Example: `  portcullis result verify result.jwt --keys jwks.json --host compute-01 --issuer https://portcullis.example:8443`,
		RunE: func(_ *cobra.Command, args []string) error {
			accept, err := f.accepted()
			if err != nil {
				return err
			}
			v, err := f.verify(env.In, args[0])
			if err != nil {
				return err
			}
			if err := env.Print(v, func(w *cli.Columns) { showResult(w, v) }); err != nil {
				return err
			}
			if s := v.Claims.Status; s != result.Affirming && s != accept {
				fmt.Fprintf(env.Err, "portcullis: the result is genuine, and its status is %v\n", s)
				return cli.ErrGuard
			}
			return nil
		},
	}
	f.register(cmd)
	return cmd
}

// verifyFlags are what a relying party knows.
type verifyFlags struct {
	keys, nonce, host, issuer, at, accept string
	skew                                  time.Duration
}

func (f *verifyFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.keys, "keys", "", "JWK Set of the service")
	cmd.Flags().StringVar(&f.nonce, "nonce", "", "the nonce that was sent, in base64")
	cmd.Flags().StringVar(&f.host, "host", "", "host that the result must be about")
	cmd.Flags().StringVar(&f.issuer, "issuer", "", "issuer that the result must name")
	cmd.Flags().StringVar(&f.at, "at", "", "time to verify at, for example for an audit (default: now)")
	cmd.Flags().StringVar(&f.accept, "accept", "affirming", "lowest status to accept: affirming or warning")
	cmd.Flags().DurationVar(&f.skew, "skew", time.Minute, "how far the clocks of service and verifier may differ")
}

func (f *verifyFlags) accepted() (result.Tier, error) {
	switch f.accept {
	case "affirming":
		return result.Affirming, nil
	case "warning":
		return result.Warning, nil
	default:
		return 0, &cli.UsageError{Msg: fmt.Sprintf("--accept %q: want affirming or warning", cli.Plain(f.accept)), Hint: "none and contraindicated never count in favour of a host"}
	}
}

func (f *verifyFlags) verify(stdin io.Reader, file string) (*verified, error) {
	if f.keys == "" {
		return nil, &cli.UsageError{Msg: "--keys is missing", Hint: "portcullis result keys --jwks >jwks.json"}
	}
	if f.skew < 0 || f.skew > time.Hour {
		return nil, &cli.UsageError{Msg: fmt.Sprintf("--skew %v: want 0 to 1h", f.skew), Hint: "a minute is usual"}
	}
	e := result.Expect{Now: time.Now(), Skew: f.skew, Issuer: f.issuer, Host: f.host}
	var err error
	if e.Nonce, err = nonceOf(f.nonce); err != nil {
		return nil, err
	}
	if f.at != "" {
		if e.Now, err = cli.Moment("at", f.at); err != nil {
			return nil, err
		}
	}
	set, err := cli.ReadBounded(stdin, f.keys, token.MaxKeysSet)
	if err != nil {
		return nil, err
	}
	keys, err := token.ParseKeys(set)
	if err != nil {
		return nil, cli.Hint(fmt.Errorf("%s: %w", f.keys, err), "want the content of /.well-known/jwks.json of the service: portcullis result keys --jwks")
	}
	text, err := cli.ReadBounded(stdin, file, token.MaxSize+2)
	if err != nil {
		return nil, err
	}
	claims, kid, err := token.Verify(string(bytes.TrimSpace(text)), keys)
	if err != nil {
		return nil, cli.Hint(fmt.Errorf("%s: %w", file, err), "do not trust anything in it")
	}
	c, err := result.Decode(claims)
	if err == nil {
		err = c.Check(e)
	}
	if err != nil {
		return nil, cli.Hint(fmt.Errorf("%s: %s", file, strings.ReplaceAll(err.Error(), "\n", "; ")), "it is genuine, but not valid here: ask for another")
	}
	return &verified{kid, c}, nil
}

func showResult(w *cli.Columns, v *verified) {
	c := v.Claims
	w.Row("Host", c.Subject)
	w.Row("Status", c.Status.String())
	w.Row("State", string(c.Host.State))
	w.Row("Why", c.Host.Reason)
	for _, s := range c.Host.Weaknesses {
		w.Row("Weak in", s)
	}
	w.Row("Issuer", c.Issuer)
	w.Row("Key", v.Key)
	w.Row("Issued", cli.Stamp(time.Unix(c.IssuedAt, 0)))
	w.Row("Expires", cli.Stamp(time.Unix(c.Expires, 0)))
	w.Row("Nonce", base64.StdEncoding.EncodeToString(c.Nonce))
	w.Row("Attested", stampOf(c.Host.AttestedAt))
	w.Row("Handed over", stampOf(c.Host.SealedAt))
	w.Row("Assignment", strconv.FormatInt(c.Host.Epoch, 10))
	w.Row("EK SHA-256", c.Host.EK)
	w.Row("Policy", c.Host.Policy)
	w.Row("Reference", c.Host.Reference)
	w.Row("Statement", c.Host.Statement)
	if c.Audit != nil {
		w.Row("Audit log", auditText(c.Audit))
	}
	w.Gap()
	w.Row("APPRAISAL", "STATUS", "IDENTITY", "CONFIGURATION", "EXECUTABLES", "HARDWARE", "FIRMWARE", "ASSURANCE", "LOCK", "EPOCH")
	for _, label := range slices.Sorted(maps.Keys(c.Submods)) {
		s := c.Submods[label]
		row := []string{label, s.Status.String(), claim(s.Vector.Identity), claim(s.Vector.Configuration), claim(s.Vector.Executables), claim(s.Vector.Hardware)}
		row = append(row, adapterCells(s.Adapter)...)
		w.Row(row...)
	}
}

// auditText names the last entry of the audit log.
func auditText(a *result.Audit) string {
	if a.Seq == 0 {
		return "ends at the entry with hash " + a.Hash
	}
	return fmt.Sprintf("ends at entry %d with hash %s", a.Seq, a.Hash)
}

// adapterCells returns firmware, assurance, lock and its epoch.
func adapterCells(a *result.Adapter) []string {
	out := make([]string, 4)
	if a == nil {
		return out
	}
	if a.Firmware != nil {
		out[0], out[1] = a.Firmware.Version, a.Firmware.Assurance.String()
	}
	if a.Lock != nil {
		out[2], out[3] = a.Lock.Method.String()+", "+a.Lock.MLOCK.String(), strconv.FormatUint(a.Lock.Epoch, 10)
	}
	return out
}

// claim returns a value of AR4SI and its tier.
func claim(c result.Claim) string {
	if c == 0 {
		return ""
	}
	return fmt.Sprintf("%d %v", c, c.Tier())
}

func stampOf(seconds int64) string {
	if seconds == 0 {
		return ""
	}
	return cli.Stamp(time.Unix(seconds, 0))
}

func resultKeys(env *cli.Env) *cobra.Command {
	jwks := false
	cmd := &cobra.Command{
		Use: "keys", Short: "List the keys that sign attestation results", Args: cli.Operands(),
		Long: `List the keys that sign attestation results. --jwks prints their public halves as a JWK Set, which
is also public at /.well-known/jwks.json.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			if jwks {
				set, err := c.Results().JWKS(cmd.Context())
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(env.Out, cli.Plain(string(set)))
				return err
			}
			keys, err := c.Results().Keys(cmd.Context())
			if err != nil {
				return err
			}
			return env.Print(keys, func(w *cli.Columns) { showResultKeys(w, keys) })
		},
	}
	cmd.Flags().BoolVar(&jwks, "jwks", false, "print the public keys as a JWK Set")
	return cmd
}

func showResultKeys(w *cli.Columns, keys *v1.ResultKeys) {
	w.Row("KEY", "CREATED", "SIGNS FROM", "PUBLISHED UNTIL")
	for _, k := range keys.Keys {
		w.Row(k.ID, cli.Stamp(k.Created), cli.Stamp(k.Signs), cli.Stamp(k.Until))
	}
}

func resultRotate(env *cli.Env) *cobra.Command {
	var reason string
	var drop, yes bool
	cmd := &cobra.Command{
		Use: "rotate --reason WHY", Short: "Rotate the key that signs attestation results", Args: cli.Operands(),
		Long: `Rotate the key that signs attestation results. The new key is published at once, and signs ten
minutes later. The previous key stays published until its last token has expired. The service
rotates automatically, by age (results.key_life). Until the new key signs, no other rotation
begins.

Use --drop if a key was stolen, or if the root that opens the keys is lost. All earlier keys are
withdrawn and the new key signs at once. Earlier results are then refused wherever the keys are
fetched again.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if strings.TrimSpace(reason) == "" {
				return &cli.UsageError{Msg: "--reason is missing", Hint: "say why, for the audit log"}
			}
			if drop {
				if err := env.Confirm(yes, "all keys of attestation results are withdrawn, and results that they signed are refused"); err != nil {
					return err
				}
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			keys, err := c.Results().RotateKey(cmd.Context(), v1.ResultRotation{Drop: drop, Reason: reason})
			if err != nil {
				return err
			}
			if len(keys.Keys) == 0 {
				return errors.New("the service did not return a key")
			}
			return env.Print(keys, func(w *cli.Columns) { showResultKeys(w, keys) })
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "reason, for the audit log")
	cmd.Flags().BoolVar(&drop, "drop", false, "withdraw all earlier keys at once")
	cmd.Flags().BoolVar(&yes, "yes", false, "do it; without this, --drop only says what would be done")
	return cmd
}

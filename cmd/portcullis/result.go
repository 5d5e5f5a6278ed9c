package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/attest/result"
	"portcullis/attest/result/token"
	"portcullis/cmd/internal/input"
)

func (a *app) resultCommand() *cobra.Command {
	c := group("result", "Verify attestation results of hosts, and manage the keys that sign them",
		a.resultVerify(), a.resultKeys(), a.resultRotate())
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
		return nil, &usageError{
			msg:  fmt.Sprintf("--nonce: want %d to %d bytes in base64 with padding", result.MinNonce, result.MaxNonce),
			hint: `create one: --nonce "$(openssl rand -base64 32)"`,
		}
	}
	return n, nil
}

func (a *app) hostResult() *cobra.Command {
	var nonce, out string
	cmd := &cobra.Command{
		Use: "result HOST", Short: "Create a signed token that says how a host was judged", Args: operands("HOST"),
		Long: `Create a signed token for relying parties that says how the host was judged: what was accepted
and still counts. It is valid for ten minutes at most, and grants nothing at the service. --nonce
binds the token to a nonce of the relying party. "portcullis result verify" or any JOSE library
verifies it.`,
		Example: `  portcullis host result compute-01 --nonce "$(openssl rand -base64 32)" --out result.jwt`,

		ValidArgsFunction: a.completeHosts,
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := nonceOf(nonce)
			if err != nil {
				return err
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			r, err := c.AttestationResult(cmd.Context(), args[0], n)
			if err != nil {
				return err
			}
			if out != "" {
				if err := renameio.WriteFile(out, []byte(r.Result+"\n"), 0o644); err != nil {
					return fmt.Errorf("write the result: %w", err)
				}
				fmt.Fprintf(a.stderr, "portcullis: host %s is %s, status %s; %s until %s\n", plain(r.Host), plain(r.State), plain(r.Status), out, stamp(r.Expires))
				return nil
			}
			if a.output != formatTable {
				return a.print(r, nil)
			}
			_, err = fmt.Fprintln(a.stdout, plain(r.Result))
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

func (a *app) resultVerify() *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use: "verify FILE --keys JWKS", Short: "Verify an attestation result without the service", Args: operands("FILE"),
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
			v, err := f.verify(a.stdin, args[0])
			if err != nil {
				return err
			}
			if err := a.print(v, func(w *columns) { showResult(w, v) }); err != nil {
				return err
			}
			if s := v.Claims.Status; s != result.Affirming && s != accept {
				fmt.Fprintf(a.stderr, "portcullis: the result is genuine, and its status is %v\n", s)
				return errGuard
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
		return 0, &usageError{msg: fmt.Sprintf("--accept %q: want affirming or warning", plain(f.accept)), hint: "none and contraindicated never count in favour of a host"}
	}
}

func (f *verifyFlags) verify(stdin io.Reader, file string) (*verified, error) {
	if f.keys == "" {
		return nil, &usageError{msg: "--keys is missing", hint: "portcullis result keys --jwks >jwks.json"}
	}
	if f.skew < 0 || f.skew > time.Hour {
		return nil, &usageError{msg: fmt.Sprintf("--skew %v: want 0 to 1h", f.skew), hint: "a minute is usual"}
	}
	e := result.Expect{Now: time.Now(), Skew: f.skew, Issuer: f.issuer, Host: f.host}
	var err error
	if e.Nonce, err = nonceOf(f.nonce); err != nil {
		return nil, err
	}
	if f.at != "" {
		if e.Now, err = moment("at", f.at); err != nil {
			return nil, err
		}
	}
	set, err := readBounded(stdin, f.keys, token.MaxKeysSet)
	if err != nil {
		return nil, err
	}
	keys, err := token.ParseKeys(set)
	if err != nil {
		return nil, hint(fmt.Errorf("%s: %w", f.keys, err), "want the content of /.well-known/jwks.json of the service: portcullis result keys --jwks")
	}
	text, err := readBounded(stdin, file, token.MaxSize+2)
	if err != nil {
		return nil, err
	}
	claims, kid, err := token.Verify(string(bytes.TrimSpace(text)), keys)
	if err != nil {
		return nil, hint(fmt.Errorf("%s: %w", file, err), "do not trust anything in it")
	}
	c, err := result.Decode(claims)
	if err == nil {
		err = c.Check(e)
	}
	if err != nil {
		return nil, hint(fmt.Errorf("%s: %s", file, strings.ReplaceAll(err.Error(), "\n", "; ")), "it is genuine, but not valid here: ask for another")
	}
	return &verified{kid, c}, nil
}

// readBounded reads a file, or standard input for "-".
func readBounded(stdin io.Reader, file string, most int) ([]byte, error) {
	in := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	b, err := input.Read(in, file, int64(most))
	if err != nil {
		return nil, err
	}
	return b, nil
}

func showResult(w *columns, v *verified) {
	c := v.Claims
	w.row("Host", c.Subject)
	w.row("Status", c.Status.String())
	w.row("State", string(c.Host.State))
	w.row("Why", c.Host.Reason)
	for _, s := range c.Host.Weaknesses {
		w.row("Weak in", s)
	}
	w.row("Issuer", c.Issuer)
	w.row("Key", v.Key)
	w.row("Issued", stamp(time.Unix(c.IssuedAt, 0)))
	w.row("Expires", stamp(time.Unix(c.Expires, 0)))
	w.row("Nonce", base64.StdEncoding.EncodeToString(c.Nonce))
	w.row("Attested", stampOf(c.Host.AttestedAt))
	w.row("Handed over", stampOf(c.Host.SealedAt))
	w.row("Assignment", strconv.FormatInt(c.Host.Epoch, 10))
	w.row("EK SHA-256", c.Host.EK)
	w.row("Policy", c.Host.Policy)
	w.row("Reference", c.Host.Reference)
	w.row("Statement", c.Host.Statement)
	if c.Audit != nil {
		w.row("Audit log", auditText(c.Audit))
	}
	w.gap()
	w.row("APPRAISAL", "STATUS", "IDENTITY", "CONFIGURATION", "EXECUTABLES", "HARDWARE", "FIRMWARE", "ASSURANCE", "LOCK", "EPOCH")
	for _, label := range slices.Sorted(maps.Keys(c.Submods)) {
		s := c.Submods[label]
		row := []string{label, s.Status.String(), claim(s.Vector.Identity), claim(s.Vector.Configuration), claim(s.Vector.Executables), claim(s.Vector.Hardware)}
		row = append(row, adapterCells(s.Adapter)...)
		w.row(row...)
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
	return stamp(time.Unix(seconds, 0))
}

func (a *app) resultKeys() *cobra.Command {
	jwks := false
	cmd := &cobra.Command{
		Use: "keys", Short: "List the keys that sign attestation results", Args: operands(),
		Long: `List the keys that sign attestation results. --jwks prints their public halves as a JWK Set, which
is also public at /.well-known/jwks.json.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			if jwks {
				set, err := c.ResultJWKS(cmd.Context())
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(a.stdout, plain(string(set)))
				return err
			}
			keys, err := c.ResultKeys(cmd.Context())
			if err != nil {
				return err
			}
			return a.print(keys, func(w *columns) { showResultKeys(w, keys) })
		},
	}
	cmd.Flags().BoolVar(&jwks, "jwks", false, "print the public keys as a JWK Set")
	return cmd
}

func showResultKeys(w *columns, keys *v1.ResultKeys) {
	w.row("KEY", "CREATED", "SIGNS FROM", "PUBLISHED UNTIL")
	for _, k := range keys.Keys {
		w.row(k.ID, stamp(k.Created), stamp(k.Signs), stamp(k.Until))
	}
}

func (a *app) resultRotate() *cobra.Command {
	var reason string
	var drop, yes bool
	cmd := &cobra.Command{
		Use: "rotate --reason WHY", Short: "Rotate the key that signs attestation results", Args: operands(),
		Long: `Rotate the key that signs attestation results. The new key is published at once, and signs ten
minutes later. The previous key stays published until its last token has expired. The service
rotates automatically, by age (results.key_life). Until the new key signs, no other rotation
begins.

Use --drop if a key was stolen, or if the root that opens the keys is lost. All earlier keys are
withdrawn and the new key signs at once. Earlier results are then refused wherever the keys are
fetched again.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if strings.TrimSpace(reason) == "" {
				return &usageError{msg: "--reason is missing", hint: "say why, for the audit log"}
			}
			if drop {
				if err := a.confirm(yes, "all keys of attestation results are withdrawn, and results that they signed are refused"); err != nil {
					return err
				}
			}
			c, err := a.connect()
			if err != nil {
				return err
			}
			keys, err := c.RotateResultKey(cmd.Context(), v1.ResultRotation{Drop: drop, Reason: reason})
			if err != nil {
				return err
			}
			if len(keys.Keys) == 0 {
				return errors.New("the service did not return a key")
			}
			return a.print(keys, func(w *columns) { showResultKeys(w, keys) })
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "reason, for the audit log")
	cmd.Flags().BoolVar(&drop, "drop", false, "withdraw all earlier keys at once")
	cmd.Flags().BoolVar(&yes, "yes", false, "do it; without this, --drop only says what would be done")
	return cmd
}

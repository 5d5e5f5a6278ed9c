package firmware

import (
	"crypto/rsa"
	"fmt"
	"math/big"

	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"
	"portcullis/firmware/image"
	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/signkey"
	"portcullis/firmware/pin"
)

// verifiedFile is what "nvconfig verify" prints.
type verifiedFile struct {
	File    string `json:"file"`
	Verdict string `json:"verdict"` // valid, not signed, invalid
	Scheme  string `json:"scheme"`
	Key     string `json:"key,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

func nvconfigVerify(env *cli.Env) *cobra.Command {
	pins, public, uuid := "", "", ""
	cmd := &cobra.Command{
		Use: "verify FILE", Short: "Verify the signature of a file of settings with pinned keys", Args: cli.Operands("FILE"),
		Long: `Verify the signature of a file of settings with keys that the site pinned: the keys of --pins
that may sign vendor-nvconfig, or one public key (--public-key, with --key-uuid).

The exit status is 0 if one of them signed the file, and 1 otherwise. A digest is not a
signature. This does not say which keys an adapter trusts.`,
		RunE: func(_ *cobra.Command, args []string) error {
			keys, err := settingsKeys(env, pins, public, uuid)
			if err != nil {
				return err
			}
			s, err := readSettings(env, args[0])
			if err != nil {
				return err
			}
			if s.file == nil {
				return fmt.Errorf("%s: the text form has no signature", args[0])
			}
			v := verdictOf(args[0], s.file, keys)
			if err := env.Print(v, func(w *cli.Columns) { v.table(w) }); err != nil {
				return err
			}
			if v.Verdict != "valid" {
				return cli.ErrNo
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&pins, "pins", "", "YAML file of pinned keys, as portcullis firmware pin writes it")
	f.StringVar(&public, "public-key", "", "PEM file of one public key")
	f.StringVar(&uuid, "key-uuid", "", "UUID of that key")
	return cmd
}

func verdictOf(name string, f *nvconfig.File, keys []nvconfig.PinnedKey) *verifiedFile {
	v := &verifiedFile{File: name, Verdict: "valid", Scheme: f.Signature.Scheme.String()}
	if !f.Signature.Key.IsZero() {
		v.Key = f.Signature.Key.String()
	}
	if _, err := f.Verify(keys); err != nil {
		v.Verdict, v.Reason = "invalid", err.Error()
		if v.Key == "" {
			v.Verdict = "not signed"
		}
	}
	return v
}

func (v *verifiedFile) table(w *cli.Columns) {
	w.Text("%s: %s", v.File, v.Verdict)
	w.Text("%s%s", v.Scheme, map[bool]string{true: ", key " + v.Key}[v.Key != ""])
	if v.Reason != "" {
		w.Text("%s", v.Reason)
	}
}

// settingsKeys returns the keys that may sign settings.
func settingsKeys(env *cli.Env, pins, public, uuid string) ([]nvconfig.PinnedKey, error) {
	switch {
	case (pins == "") == (public == ""):
		return nil, &cli.UsageError{Msg: "want either --pins or --public-key", Hint: "a signature is verified with a pinned key only"}
	case public != "":
		id, err := nvconfig.ParseUUID(uuid)
		if err != nil {
			return nil, &cli.UsageError{Msg: "--key-uuid: " + err.Error()}
		}
		data, err := env.ReadFile(public, maxNVConfig)
		if err != nil {
			return nil, err
		}
		k, err := signkey.ParsePublic(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", public, err)
		}
		return []nvconfig.PinnedKey{{UUID: id, Public: k}}, nil
	}
	data, err := env.ReadFile(pins, maxNVConfig)
	if err != nil {
		return nil, err
	}
	set, err := pin.Parse(pins, data)
	if err != nil {
		return nil, err
	}
	var keys []nvconfig.PinnedKey
	for _, k := range set.Keys() {
		if k.Signs&image.SignsVendorConf != 0 {
			keys = append(keys, nvconfig.PinnedKey{UUID: nvconfig.UUID(k.UUID), Public: &rsa.PublicKey{N: new(big.Int).SetBytes(k.Modulus), E: int(k.Exponent)}})
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: none of its keys may sign vendor-nvconfig", pins)
	}
	return keys, nil
}

package firmware

import (
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"
	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/profile"
	"portcullis/firmware/nvconfig/signkey"
)

// buildFlags say for which adapters a file is, and which one it is.
type buildFlags struct {
	profile, psid, device, at, out string
	bind                           bindFlags
	version                        uint32
	ports                          int
	raw                            bool
}

func nvconfigBuild(env *cli.Env) *cobra.Command {
	var b buildFlags
	cmd := &cobra.Command{
		Use: "build", Short: "Build an unsigned file of the settings that the profile wants", Args: cli.Operands(),
		Long: `Build a file of the settings that the profile wants, for the adapters of one board
(--psid) or for one device (--device). It has a digest and no signature. Sign it with
"portcullis nvconfig sign" before an adapter takes it.

An item is written as a whole. An item with other settings beside the wanted ones needs the
factory values of the adapter, which are not known here. Such items are left out and reported.
The service builds complete files for adapters that were read.

A file for a board can be bound to one adapter and to its last challenge (--mac and
--challenge). Root on another host, or on this host later, cannot use such a file.`,
		Example: `  portcullis nvconfig build --psid MT_0000000838 --file-version 12 --out lock.bin`,
		RunE: func(*cobra.Command, []string) error {
			return build(env, b)
		},
	}
	f := cmd.Flags()
	profileFlag(cmd, &b.profile)
	f.StringVar(&b.psid, "psid", "", "PSID of the boards that the file is for")
	f.StringVar(&b.device, "device", "", "id of the device that the file is for, 64 hexadecimal digits, instead of a PSID")
	b.bind.on(f)
	f.Uint32Var(&b.version, "file-version", 0, "version of the file, higher than that of the last one")
	f.StringVar(&b.at, "time", "", "time of the file, such as 2026-01-15T11:22:33Z (default: now)")
	f.IntVar(&b.ports, "ports", 1, "how many ports the adapter has")
	f.BoolVar(&b.raw, "raw", false, "write the text form of mstconfig set_raw, settings only")
	f.StringVar(&b.out, "out", "", "file to write (default: standard output)")
	return cmd
}

func build(env *cli.Env, b buildFlags) error {
	p, err := readProfile(env, b.profile)
	if err != nil {
		return err
	}
	order, err := b.order()
	if err != nil {
		return err
	}
	items, left, err := p.Unsigned(order)
	if err != nil {
		return err
	}
	for _, l := range left {
		fmt.Fprintf(env.Err, "portcullis: left out: %s: %s\n", l.Parameter, cli.Plain(l.Why))
	}
	if b.raw {
		settings := slices.DeleteFunc(items, func(i nvconfig.Item) bool {
			return i.Address.Class() == nvconfig.FileItem || i.Address == items[0].Address
		})
		return env.ToFile(b.out, func(w io.Writer) error { return writeAll(w, []byte(nvconfig.FormatRaw(settings))) })
	}
	data, err := nvconfig.Seal(items)
	if err != nil {
		return err
	}
	return toBinary(env, b.out, data)
}

func (b buildFlags) order() (o profile.Order, err error) {
	o.Card, o.Version, o.Time = profile.Card{PSID: b.psid, Ports: b.ports}, b.version, time.Now().UTC().Truncate(time.Second)
	if b.version == 0 {
		return o, &cli.UsageError{Msg: "--file-version is missing", Hint: "count up from the last file of these adapters"}
	}
	if b.ports < 1 || b.ports > 254 {
		return o, &cli.UsageError{Msg: fmt.Sprintf("--ports %d: want 1 to 254", b.ports)}
	}
	if (b.psid == "") == (b.device == "") {
		return o, &cli.UsageError{Msg: "want either --psid or --device", Hint: "a file for any adapter is not made"}
	}
	if b.device != "" {
		id, err := hex.DecodeString(b.device)
		if err != nil || len(id) != nvconfig.DeviceIDSize {
			return o, &cli.UsageError{Msg: fmt.Sprintf("--device %q: want %d hexadecimal digits", b.device, 2*nvconfig.DeviceIDSize)}
		}
		o.Card.Device = [nvconfig.DeviceIDSize]byte(id)
	}
	if o.Challenge, err = b.bind.challenge(); err != nil {
		return o, err
	}
	if b.at != "" {
		if o.Time, err = time.Parse(time.RFC3339, b.at); err != nil {
			return o, &cli.UsageError{Msg: fmt.Sprintf("--time %q: want such as 2026-01-15T11:22:33Z", b.at)}
		}
	}
	return o, nil
}

func writeAll(w io.Writer, b []byte) error {
	_, err := w.Write(b)
	return err
}

// toBinary writes bytes that no terminal is for.
func toBinary(env *cli.Env, name string, data []byte) error {
	if f, ok := env.Out.(*os.File); ok && name == "" && cli.IsTerminal(f) {
		return &cli.UsageError{Msg: "a terminal cannot show the file", Hint: "name a file: --out FILE"}
	}
	return env.ToFile(name, func(w io.Writer) error { return writeAll(w, data) })
}

func nvconfigSign(env *cli.Env) *cobra.Command {
	key, uuid, out := "", "", ""
	var bind bindFlags
	cmd := &cobra.Command{
		Use: "sign FILE", Short: "Sign a file of settings with the site's key", Args: cli.Operands("FILE"),
		Long: `Sign a file of settings with the site's key, RSA of 2048 or 4096 bits. A signature
that is already there is replaced.

The key is a PEM file, or stays in a PKCS#11 token, for which OpenSC's pkcs11-tool is run:
pkcs11:token=LABEL;id=%01?module-path=/FILE.so&pin-source=/FILE. Other users must not be able to
read the PEM file or the PIN file.

Only settings that the host cannot change are signed (priority OEM or MLNX, ovr_en 0). A token
of the vendor is never signed: a holder of such a file can open the adapter with it.

--mac and --challenge bind the signed file to one adapter and its last challenge.
"mstconfig -tkn CRCS challenge_request" creates the challenge.`,
		RunE: func(_ *cobra.Command, args []string) error {
			id, err := nvconfig.ParseUUID(uuid)
			if err != nil {
				return &cli.UsageError{Msg: "--key-uuid: " + err.Error(), Hint: "the adapter finds the key by its UUID"}
			}
			if key == "" {
				return &cli.UsageError{Msg: "--key is missing", Hint: "name a PEM file or a pkcs11: URI"}
			}
			s, err := readSettings(env, args[0])
			if err != nil {
				return err
			}
			if err := mayBeSigned(s); err != nil {
				return err
			}
			if err := bind.add(s); err != nil {
				return err
			}
			signer, err := signkey.Open(key, signkey.Options{})
			if err != nil {
				return err
			}
			data, err := nvconfig.Sign(s.items, signer, id)
			if err != nil {
				return err
			}
			return toBinary(env, out, data)
		},
	}
	f := cmd.Flags()
	f.StringVar(&key, "key", "", "private key: PEM file or pkcs11: URI")
	f.StringVar(&uuid, "key-uuid", "", "UUID of the key pair")
	bind.on(f)
	f.StringVar(&out, "out", "", "file to write (default: standard output)")
	return cmd
}

// mayBeSigned refuses what the site's key must not sign.
func mayBeSigned(s *settingsFile) error {
	if s.file == nil {
		return cli.Hint(fmt.Errorf("the text form does not say what the file is and which adapters it is for"), "build a file that can be signed with: portcullis nvconfig build")
	}
	if s.file.Component != nvconfig.OEMConfig {
		return cli.Hint(fmt.Errorf("wrong kind of file: %v", s.file.Component), "only OEM NVCONFIG files of settings are signed")
	}
	for _, i := range s.file.Settings() {
		if !i.Locked() {
			return cli.Hint(fmt.Errorf("%v has priority %v and ovr_en %v: the host can change it", i.Address, i.Priority, i.OverrideEnabled),
				"portcullis nvconfig build makes settings that the host cannot change")
		}
	}
	return nil
}

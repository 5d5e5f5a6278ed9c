package sm

import (
	"bytes"
	"encoding/hex"

	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/mad"
)

// maxHexDump bounds the text of a hex dump of one MAD.
const maxHexDump = 64 << 10

func madCommand(env *cli.Env) *cobra.Command {
	return cli.Group("mad", "Decode management datagrams, without a service", madDecode(env))
}

func madDecode(env *cli.Env) *cobra.Command {
	var secrets bool
	cmd := &cobra.Command{
		Use:   "decode [FILE|-]",
		Short: "Explain a MAD given as a hex dump",
		Long: `Explain a MAD given as a hex dump: plain digits, or the output of xxd,
hexdump -C, od -A x -t x1, tcpdump -XX or tshark -x. Without FILE, or with -, the
dump is read from standard input.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Operands("FILE")(cmd, args)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			name := "-"
			if len(args) == 1 {
				name = args[0]
			}
			return decode(env, name, secrets)
		},
	}
	cmd.Flags().BoolVar(&secrets, "secrets", false, "print M_Keys and SM_Keys too")
	return cmd
}

func decode(env *cli.Env, name string, secrets bool) error {
	text, err := env.ReadFile(name, maxHexDump)
	if err != nil {
		return err
	}
	b, err := mad.ParseHex(text)
	if err != nil {
		return cli.Hint(err, "want the hex dump of one MAD, 24 to 256 bytes")
	}
	var out bytes.Buffer
	if err := mad.Explain(&out, b, mad.DumpOptions{Secrets: secrets}); err != nil {
		return err
	}
	if !env.Tabular() {
		return env.Print(map[string]string{"bytes": hex.EncodeToString(b), "text": out.String()}, nil)
	}
	_, err = env.Out.Write([]byte(cli.PlainLines(out.String())))
	return err
}

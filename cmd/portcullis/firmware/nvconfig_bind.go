package firmware

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"portcullis/cmd/portcullis/cli"
	"portcullis/firmware/nvconfig"
)

// bindFlags name the adapter that a file is bound to, and its challenge.
type bindFlags struct{ mac, nonce string }

func (b *bindFlags) on(f *pflag.FlagSet) {
	f.StringVar(&b.mac, "mac", "", "base MAC of the adapter that the file is bound to, as its challenge names it, with --challenge")
	f.StringVar(&b.nonce, "challenge", "", "the adapter's last challenge, 64 hexadecimal digits")
}

// challenge reads them; nil: the file is bound to no challenge.
func (b *bindFlags) challenge() (*nvconfig.Challenge, error) {
	if b.mac == "" && b.nonce == "" {
		return nil, nil
	}
	if b.mac == "" || b.nonce == "" {
		return nil, &cli.UsageError{Msg: "--mac and --challenge belong together", Hint: "mstconfig -d DEVICE -tkn CRCS challenge_request shows both"}
	}
	mac, err := strconv.ParseUint(b.mac, 16, 64)
	if err != nil || len(b.mac) != 12 && len(b.mac) != 16 || mac == 0 {
		return nil, &cli.UsageError{Msg: fmt.Sprintf("--mac %q: want 12 or 16 hexadecimal digits, not all zeros", b.mac)}
	}
	nonce, err := hex.DecodeString(b.nonce)
	if err != nil || len(nonce) != 32 || [32]byte(nonce) == [32]byte{} {
		return nil, &cli.UsageError{Msg: fmt.Sprintf("--challenge %q: want 64 hexadecimal digits, not all zeros", b.nonce)}
	}
	c := nvconfig.NewChallenge(mac, [32]byte(nonce))
	return &c, nil
}

// add binds a file that will be signed. It does not replace another binding.
func (b *bindFlags) add(s *settingsFile) error {
	c, err := b.challenge()
	if c == nil || err != nil {
		return err
	}
	if s.file.Bound() {
		return cli.Hint(fmt.Errorf("the file is already bound to a challenge"), "make a file that is not bound: portcullis nvconfig build")
	}
	unique, err := nvconfig.ForChallenges(*c)
	if err != nil {
		return err
	}
	whom := len(s.file.PSIDs()) + len(s.file.DeviceIDs())
	s.items = slices.Insert(slices.Clone(s.items), 1+whom, unique)
	return nil
}

package ibsimlab

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"portcullis/fabricsm/ib"
)

// keyWord is one entry of the table that "smpquery pkeys" prints.
var keyWord = regexp.MustCompile(`0x[0-9a-f]{4}\b`)

// PKeys returns the valid P_Keys that smpquery reads from the node, attached at another one:
// those of a channel adapter or, where switchPort is not 0, of a port of a switch. The
// directed route is in the notation of infiniband-diags, for example "0,1,33". A key of
// zero is not sent.
func (c Client) PKeys(ctx context.Context, attached, route string, switchPort ib.PortNum, key ib.MKey) ([]ib.PKey, error) {
	args := []string{"-D", "pkeys", route}
	if !key.IsZero() {
		args = append([]string{"--m_key", fmt.Sprintf("0x%016x", key.Reveal())}, args...)
	}
	if switchPort != 0 {
		args = append(args, strconv.Itoa(int(switchPort)))
	}
	out, err := c.Diag(ctx, attached, "smpquery", args...)
	if err != nil {
		return nil, err
	}
	return parsePKeys(string(out))
}

// parsePKeys reads the entries of a table that "smpquery pkeys" printed, without those that
// are empty. Output that has no table is an error.
func parsePKeys(out string) ([]ib.PKey, error) {
	if !strings.Contains(out, "pkeys capacity for this port") {
		return nil, fmt.Errorf("no P_Key table in what smpquery printed: %q", out)
	}
	var keys []ib.PKey
	for _, line := range strings.Split(out, "\n") {
		_, row, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		for _, w := range keyWord.FindAllString(row, -1) {
			k, err := ib.ParsePKey(w)
			if err != nil {
				return nil, err
			}
			if k.Valid() {
				keys = append(keys, k)
			}
		}
	}
	return keys, nil
}

package main

import (
	"os"
	"strings"
	"testing"

	"portcullis/api/fabric/query"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/keys/keyfile"
)

// TestKeysLend: one key is lent to a file, for a time that is asked of the service,
// and none is printed.
func TestKeysLend(t *testing.T) {
	s := newSite(t, keys.ModeDerived)
	all, err := os.ReadFile(s.path("state/facts"))
	if err != nil {
		t.Fatal(err)
	}
	var one []string // the vault, and the record of one device
	seenKey := false
	for line := range strings.Lines(string(all)) {
		isKey := strings.Contains(line, `"key/m_key"`)
		if strings.Contains(line, `"kind":"vault"`) || isKey && !seenKey {
			one = append(one, strings.TrimSpace(line))
			seenKey = seenKey || isKey
		}
	}
	k := &keyKeeper{Observer: query.New(query.Options{}), facts: one}
	ask := " --socket " + k.serve(t)
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"keys lend 0x1 --out @key", cli.ExitUsage, "--root is needed"},
		{"keys lend 0x1 --root @root", cli.ExitUsage, "--out is needed"},
		{"keys lend 0x1 --root @root --out @key --for 25h", cli.ExitUsage, "want 1s to 24h"},
		{"keys lend x --root @root --out @key", cli.ExitUsage, "x"},
		{"keys lend 0x1 --root @root --out @key --for 10m --to smpquery" + ask, cli.ExitOK, "has the key of leaf1 in clear until"},
		{"keys lend 0x1 --root @root --out @key" + ask, cli.ExitError, "--return ends that"},
	} {
		if out := s.do(tt.code, tt.args); !strings.Contains(out, tt.want) {
			t.Errorf("%s: said %s, want %q in it", tt.args, out, tt.want)
		}
		if k.lent.To == "smpquery" && k.lent != (v1.KeyLoan{GUID: 1, Seconds: 600, To: "smpquery"}) {
			t.Errorf("asked for %+v", k.lent)
		}
	}
	data, err := os.ReadFile(s.path("key"))
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := keyfile.Parse("guid2mkey", data); err != nil || len(entries) != 1 || len(s.scan.Find(data)) == 0 {
		t.Errorf("%d keys in the file, %v", len(entries), err)
	}
	if info, err := os.Stat(s.path("key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, want mode 0600: %v", info, err)
	}
	s.do(cli.ExitOK, "keys lend 0x1 --return"+ask)
	if k.lent.Seconds != 0 {
		t.Errorf("the end of a loan was asked for as %+v", k.lent)
	}
	k.facts = []string{one[0]}
	s.do(cli.ExitError, "keys lend 0x1 --root @root --out @other"+ask)
	s.scan.Clean(t, "what was said", []byte(s.said.String()))
}

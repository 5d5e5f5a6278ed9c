package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"portcullis/api/fabric/query"
	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/driver/factfile"
	"portcullis/fabricsm/driver/keystore"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/vault"
)

// TestKeysSAKey: the SA_Key in force comes sealed, goes into a file, and is printed
// nowhere.
func TestKeysSAKey(t *testing.T) {
	s := newSite(t, keys.ModeRandom)
	files, err := factfile.Open(s.path("state"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	root, err := vault.FileRoot(s.path("root"))
	if err != nil {
		t.Fatal(err)
	}
	store, err := keystore.Open(files, root, rand.NewChaCha8([32]byte{9}))
	if err != nil {
		t.Fatal(err)
	}
	const key = 0x8f3ac91d27b6e504
	rec := keys.Record{Kind: keys.SAKey, Current: keys.Held{Key: keys.New(key), Epoch: 3, Origin: keys.OriginRandom, Since: time.Unix(1000, 0).UTC()}}
	if err := store.Save([]sm.Fact{sm.KeyFactOf(rec)}); err != nil {
		t.Fatal(err)
	}
	stored, err := files.Load()
	if err != nil {
		t.Fatal(err)
	}
	k := &keyKeeper{Observer: query.New(query.Options{})}
	for i := range stored {
		if f := &stored[i]; f.Kind == sm.FactVault || f.Kind == sm.KeyFact(keys.SAKey) {
			line, err := json.Marshal(f)
			if err != nil {
				t.Fatal(err)
			}
			k.facts = append(k.facts, string(line))
		}
	}
	ask := " --socket " + k.serve(t)
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"keys sa-key --out @sa", cli.ExitUsage, "--root is needed"},
		{"keys sa-key --root @root", cli.ExitUsage, "--out is needed"},
		{"keys sa-key --root @root --out @sa --to saquery" + ask, cli.ExitOK, "has SA_Key 3 in clear"},
		{"keys sa-key --root @root --out @sa" + ask, cli.ExitError, "exists"},
	} {
		out := s.do(tt.code, tt.args)
		if !strings.Contains(out, tt.want) {
			t.Errorf("%s: said %s, want %q in it", tt.args, out, tt.want)
		}
		if strings.Contains(strings.ToLower(out), "8f3ac91d27b6e504") {
			t.Errorf("%s: prints the key", tt.args)
		}
	}
	data, err := os.ReadFile(s.path("sa"))
	if want := fmt.Sprintf("0x%016x\n", uint64(key)); err != nil || string(data) != want {
		t.Errorf("the file has %q, %v", data, err)
	}
	if info, err := os.Stat(s.path("sa")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, want mode 0600: %v", info, err)
	}
}

package main

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api"
	"portcullis/api/fabric/query"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/keys/keyfile"
)

// keyKeeper is a fabric that has keys, as far as the interface shows.
type keyKeeper struct {
	*query.Observer
	api.FabricOperator
	keys  v1.FabricKeys
	left  int // looks until they were given back
	stays int // devices that keep theirs
	moved v1.KeyMove
	lent  v1.KeyLoan
	gone  ib.GUID
	facts []string // stored, sealed

	rehearsed v1.KeyRehearsal
}

func (k *keyKeeper) SealedKeys(context.Context, string) (*v1.SealedKeys, error) {
	return &v1.SealedKeys{Facts: k.facts}, nil
}

func (k *keyKeeper) LendKey(_ context.Context, _ string, l v1.KeyLoan) (*v1.LentKey, error) {
	k.lent = l
	out := &v1.LentKey{FabricKey: v1.FabricKey{GUID: l.GUID, At: "leaf1"}, Facts: []string{}}
	if l.Seconds > 0 {
		out.Lent, out.Facts = time.Unix(1000, 0), k.facts
	}
	return out, nil
}

func (k *keyKeeper) LendSAKey(context.Context, string, v1.SAKeyLoan) (*v1.SealedKeys, error) {
	return &v1.SealedKeys{Facts: k.facts}, nil
}

func (k *keyKeeper) RecordRehearsal(_ context.Context, _ string, r v1.KeyRehearsal) (*v1.KeyRehearsed, error) {
	k.rehearsed = r
	return &v1.KeyRehearsed{KitMade: r.KitMade, Listed: r.Listed, Keys: r.Keys, Devices: r.Devices, By: "ops"}, nil
}

func (k *keyKeeper) RetireKeys(_ context.Context, _ string, r v1.KeyRetirement) (*v1.FabricKeys, error) {
	if r.GUID == 1 {
		return nil, &refusal.Error{Code: "key_in_use", Status: refusal.Conflict, Detail: "it is seen as leaf1", Hint: "take the device away first"}
	}
	k.gone = r.GUID
	now := k.keys
	return &now, nil
}

func (k *keyKeeper) Keys(context.Context) (*v1.FabricKeys, error) {
	if k.left--; k.keys.Releasing && k.left <= 0 {
		k.keys.Released = true
		k.keys.Devices = map[string]int{"returned": 7 - k.stays, "withheld": k.stays}
	}
	now := k.keys
	return &now, nil
}

func (k *keyKeeper) DeviceKeys(context.Context, v1.PageQuery) (*v1.Page[v1.FabricKey], error) {
	return &v1.Page[v1.FabricKey]{Settled: true, Items: []v1.FabricKey{
		{GUID: 1, At: "leaf1", Kind: "m_key", State: "held", Epoch: 3, Origin: "derived", Age: 90000, Dual: true},
		{GUID: 2, At: "h1/1", Kind: "m_key", State: "held", Origin: "imported", Age: 400000, Old: "taken over", Place: ib.Place{Switch: 1, Port: 4}},
	}}, nil
}

func (k *keyKeeper) ReleaseKeys(_ context.Context, _ string, r v1.KeyRelease) (*v1.FabricKeys, error) {
	k.keys.Releasing, k.keys.Released = !r.Resume, false
	now := k.keys
	return &now, nil
}

func (k *keyKeeper) MoveKey(_ context.Context, _ string, m v1.KeyMove) (*v1.FabricKey, error) {
	if m.GUID == 1 {
		return nil, &refusal.Error{Code: "key_not_withheld", Status: refusal.Conflict, Detail: "the key is not withheld", Hint: "look"}
	}
	k.moved = m
	return &v1.FabricKey{GUID: m.GUID, At: m.To, Kind: "m_key", State: "changing"}, nil
}

// TestFabricKeys: keys are listed, moved, given back and given out again by
// commands, which say what they cannot do.
func TestFabricKeys(t *testing.T) {
	k := &keyKeeper{
		Observer: query.New(query.Options{}), left: 2,
		keys: v1.FabricKeys{
			Managed: true, Places: "seen", Devices: map[string]int{"held": 6, "withheld": 1}, Old: map[string]int{"taken over": 1}, Oldest: 400000, Median: 90000,
			Rotation: v1.KeyRotation{Period: 86400, Epoch: 3, Began: time.Unix(0, 0)},
		},
	}
	socket := k.serve(t)
	for _, tt := range []struct {
		args string
		code int
		want []string // in this order
	}{
		{"fabric keys", cli.ExitOK, []string{"set on devices whose place is seen", "6 held, 1 withheld", "1 taken over", "4d15h at most", "every 24h0m0s; epoch 3", "leaf1", "h1/1", "taken over"}},
		{"fabric keys --old", cli.ExitOK, []string{"OLD", "h1/1"}},
		{"fabric keys -o json", cli.ExitOK, []string{`"managed": true`, `"items"`, `"guid": "0x0000000000000001"`}},
		{"fabric keys move x", cli.ExitUsage, []string{"x"}},
		{"fabric keys move 0x1", cli.ExitRefused, []string{"not withheld", "look"}},
		{"fabric keys move 0x2 leaf1/4", cli.ExitOK, []string{"leaf1/4", "changing"}},
		{"fabric keys retire 0x3", cli.ExitUsage, []string{"can no longer be managed", "--yes"}},
		{"fabric keys retire 0x1 --yes", cli.ExitRefused, []string{"seen as leaf1", "take the device away"}},
		{"fabric keys retire 0x3 --yes", cli.ExitOK, []string{"keys of 0x0000000000000003 are destroyed", "6 held"}},
		{"fabric release-keys", cli.ExitUsage, []string{"removes the protection", "--yes"}},
		{"fabric release-keys --yes", cli.ExitOK, []string{"removed from devices", "7 returned"}},
		{"fabric release-keys --resume", cli.ExitOK, []string{"set on devices"}},
	} {
		out := runKeys(t, socket, tt.args, tt.code)
		at := 0
		for _, w := range tt.want {
			i := strings.Index(out[at:], w)
			if i < 0 {
				t.Errorf("%s: no %q behind byte %d in\n%s", tt.args, w, at, out)
				break
			}
			at += i
		}
	}
	if want := (v1.KeyMove{GUID: 2, To: "leaf1/4"}); k.moved != want {
		t.Errorf("moved %+v, want %+v", k.moved, want)
	}
	if k.gone != 3 {
		t.Errorf("retired %v", k.gone)
	}
	k.stays = 2
	if out := runKeys(t, socket, "fabric release-keys --yes", cli.ExitError); !strings.Contains(out, "2 devices did not answer") {
		t.Errorf("with devices that stay: %s", out)
	}
}

func runKeys(t *testing.T, socket, args string, code int) string {
	t.Helper()
	var out bytes.Buffer
	if got := run(t.Context(), append(strings.Fields(args), "--socket", socket), nil, &out, &out); got != code {
		t.Errorf("%s: exit code %d, want %d\n%s", args, got, code, &out)
	}
	return out.String()
}

// serve answers on a socket until the test ends.
func (k *keyKeeper) serve(t *testing.T) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := api.NewLocal(api.LocalOptions{Fabric: k, Operator: k, Version: "v0", Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry()})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.ServeLocal(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return socket
}

// TestKeysOfTheService checks that kits, digests and exports made from the service's stored facts equal those made from a
// file of facts, and that only an export shows a key.
func TestKeysOfTheService(t *testing.T) {
	s := newSite(t, keys.ModeDerived)
	facts, err := os.ReadFile(s.path("state/facts"))
	if err != nil {
		t.Fatal(err)
	}
	facts = append(facts, `{"kind":"behind","guid":"0x0000000000000a01","port":3,"behind":"0x0000000000000a02"}`+"\n"...)
	s.write("state/facts", string(facts))
	k := &keyKeeper{Observer: query.New(query.Options{}), facts: strings.Split(strings.TrimSpace(string(facts)), "\n")}
	ask := " --socket " + k.serve(t)
	made := regexp.MustCompile(`"([a-z]+": "20[^"]*Z|seal": "[0-9a-f]{64})"`)
	var said []string
	for _, from := range []string{" --facts @state/facts", ask} {
		said = append(said, made.ReplaceAllString(s.do(cli.ExitOK, "keys digests --root @root"+from), ""))
	}
	if said[0] != said[1] || !strings.Contains(said[0], "m_key") {
		t.Errorf("digests of the file and of the service differ:\n%s\n%s", said[0], said[1])
	}
	s.do(cli.ExitOK, "keys escrow create --root @root --recipients @recipients --out @of-service"+ask)
	s.write("digests", s.do(cli.ExitOK, "keys digests --root @root"+ask))
	s.do(cli.ExitOK, "keys rehearse @of-service --identity @identity --digests @digests")
	s.do(cli.ExitOK, "keys export --root @root --out @clear"+ask)
	data, err := os.ReadFile(s.path("clear/guid2mkey"))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := keyfile.Parse("guid2mkey", data)
	if err != nil || len(entries) != 30 || len(s.scan.Find(data)) == 0 {
		t.Errorf("%d keys, %v", len(entries), err)
	}
	s.do(cli.ExitOK, "keys export --root @root --out @of-file --facts @state/facts")
	var links [2]string
	for i, dir := range []string{"clear", "of-file"} {
		data, err := os.ReadFile(s.path(dir + "/neighbors"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := keyfile.ParseNeighbors("neighbors", data); err != nil {
			t.Error(err)
		}
		links[i] = string(data)
	}
	if links[0] != links[1] || !strings.Contains(links[0], "0x0000000000000a01:3 0x0000000000000a02:0") {
		t.Errorf("neighbours of the service and of the file differ:\n%s\n%s", links[0], links[1])
	}
	for name, want := range map[string]os.FileMode{"clear": 0o700, "clear/guid2mkey": 0o600, "clear/neighbors": 0o600} {
		if info, err := os.Stat(s.path(name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, want mode %v", name, err, want)
		}
	}
	s.scan.Clean(t, "what was said", []byte(s.said.String()))
}

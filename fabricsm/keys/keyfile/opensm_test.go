package keyfile_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/keys/keyfile"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/simtest"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// TestFilesOfOpenSM has the real OpenSM put an M_Key on all devices of a fabric, and reads the files in its cache
// directory. Then OpenSM reads the files that we wrote from them, and writes the same again.
func TestFilesOfOpenSM(t *testing.T) {
	ibsimtest.Need(t, "opensm")
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 4, Radix: 4})
	if err != nil {
		t.Fatal(err)
	}
	lab := simtest.Serve(t, sim.New(l)) // ibsim keeps no M_Keys
	cache, conf := t.TempDir(), filepath.Join(t.TempDir(), "opensm.conf")
	text := "m_key 0x5eed0c0ffee01234\nm_key_protection_level 1\nm_key_lease_period 60\nm_key_lookup TRUE\nsm_key 0x0000000000000001\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	opensm := func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := lab.OpenSM(ctx, "sm", cache, "-F", conf); err != nil {
			t.Fatal(err)
		}
	}
	opensm()
	entries, links := readCache(t, cache)
	if len(entries) == 0 || len(links) == 0 {
		t.Fatalf("OpenSM left %d keys and %d neighbours", len(entries), len(links))
	}
	o, err := keyfile.ParseOptions(conf, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	key, single := o.Single()
	if !single {
		t.Fatal("the options have no single M_Key")
	}
	for _, e := range entries {
		if e.Key != key {
			t.Errorf("%v has another key than m_key", e.GUID)
		}
	}
	cabled := map[keyfile.Port]keyfile.Port{}
	for _, l := range links {
		cabled[l.From] = l.To
	}
	for from, to := range cabled {
		if cabled[to] != from {
			t.Errorf("%v is cabled to %v, and that to %v", from, to, cabled[to])
		}
	}

	write(t, filepath.Join(cache, "guid2mkey"), keyfile.Format(entries))
	write(t, filepath.Join(cache, "neighbors"), keyfile.FormatNeighbors(links))
	opensm()
	again, linksAgain := readCache(t, cache)
	byGUID := func(in []keyfile.Entry) map[ib.GUID]keys.Key {
		out := map[ib.GUID]keys.Key{}
		for _, e := range in {
			out[e.GUID] = e.Key
		}
		return out
	}
	if !cmp.Equal(byGUID(entries), byGUID(again)) || len(links) != len(linksAgain) {
		t.Errorf("OpenSM did not understand what we wrote: %d and %d keys, %d and %d neighbours", len(entries), len(again), len(links), len(linksAgain))
	}
}

func readCache(t *testing.T, dir string) ([]keyfile.Entry, []keyfile.Link) {
	t.Helper()
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			list, _ := os.ReadDir(dir)
			t.Fatal(err, fmt.Sprint(list))
		}
		return data
	}
	entries, err := keyfile.Parse("guid2mkey", read("guid2mkey"))
	if err != nil {
		t.Fatal(err)
	}
	links, err := keyfile.ParseNeighbors("neighbors", read("neighbors"))
	if err != nil {
		t.Fatal(err)
	}
	return entries, links
}

func write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

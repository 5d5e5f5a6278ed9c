package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/opensmconf/movein"
	"portcullis/fabricsm/opensmconf/verdict"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// moved plans the move of a site, and writes its files into a directory.
func moved(t *testing.T, dir string, site *movein.Site) *movein.Plan {
	t.Helper()
	p, err := movein.Make(site)
	if err != nil {
		t.Fatal(err)
	}
	files := p.Files
	if p.Root {
		secret := []byte(strings.Repeat("0123456789abcdeffedcba9876543210", 2) + "\n")
		files = append(files, movein.OutFile{Name: movein.RootName, Data: secret, Secret: true})
	}
	for _, f := range files {
		name := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// siteIn reads the files of directories.
func siteIn(t *testing.T, dirs ...string) *movein.Site {
	t.Helper()
	site := &movein.Site{Kind: movein.OpenSM, Files: make(map[string][]byte)}
	for _, dir := range dirs {
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if !e.Type().IsRegular() {
				continue
			}
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			site.Files[e.Name()] = data
		}
	}
	return site
}

// TestMoveInIsGood: portcullisd --check accepts what the import of a site writes, with every file that it names.
func TestMoveInIsGood(t *testing.T) {
	t.Parallel()
	site := siteIn(t, "testdata/movein")
	site.Port = "ibsim:lab/H1"
	dir := filepath.Join(t.TempDir(), "etc")
	var out, errs strings.Builder
	if code := run(t.Context(), []string{"init", "--dir", dir, "--names", "fabric.example"}, time.Now, nil, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	p := moved(t, dir, site)
	for i := range p.Items {
		if it := &p.Items[i]; it.Loses {
			t.Errorf("%s %s: %s", it.Place(), it.Setting, it.Text)
		}
	}
	file := filepath.Join(dir, "portcullisd.yaml")
	if code := run(t.Context(), []string{"--config", file, "--check"}, time.Now, nil, &out, &errs); code != 0 {
		text, _ := os.ReadFile(file)
		t.Errorf("exit code %d: %s\n%s", code, &errs, text)
	}
}

// TestMoveInFromOpenSM: the real OpenSM has ruled a fabric with M_Keys. Ours takes it over with what the import of its
// configuration and of its cache wrote: every LID stays, and every device gets a key of its own.
func TestMoveInFromOpenSM(t *testing.T) {
	t.Parallel()
	ibsimtest.Need(t, "opensm")
	f := servedKeyFabric(t, sim.Modern())
	cache := f.opensm(t, "m_key 0x5eed0c0ffee01234\nm_key_protection_level 2\nm_key_lease_period 60\n")
	write(t, filepath.Join(cache, "partitions.conf"), "Default=0x7fff : ALL=limited, SELF=full;\n")
	site := siteIn(t, cache)
	site.Port = "ibsim:" + f.client.Socket + "/sm"
	before := f.lids()
	dir := t.TempDir()
	p := moved(t, dir, site)
	for _, want := range []string{"guid2lid", "guid2mkey", "neighbors"} {
		found := false
		for i := range p.Items {
			it := &p.Items[i]
			if it.File == want && (it.Verdict == verdict.Taken || it.Verdict == verdict.Changed) {
				found = true
			}
			if it.Loses {
				t.Errorf("%s %s: %s", it.Place(), it.Setting, it.Text)
			}
		}
		if !found {
			t.Errorf("%s was not taken", want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, errs strings.Builder
	args := []string{"sm", "--config", filepath.Join(dir, "portcullisd.yaml"), "--state-dir", filepath.Join(dir, "state"), "--once"}
	if code := run(ctx, args, time.Now, nil, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, &out, &errs)
	}
	f.held(t, opensmKey)
	if d := cmp.Diff(before, f.lids()); d != "" {
		t.Errorf("LIDs (-before +after):\n%s", d)
	}
}

// TestMoveInGrantsNoMore: the real OpenSM has ruled with a partition file that ours cannot apply as written. After the move
// no port has a P_Key that OpenSM did not have it have, and lost are only those that the plan says are lost.
func TestMoveInGrantsNoMore(t *testing.T) {
	t.Parallel()
	ibsimtest.Need(t, "opensm")
	f := servedKeyFabric(t, sim.Modern())
	var hosts []keyedPort
	for _, p := range f.endPorts() {
		if node, _, _ := strings.Cut(p.at, "/"); f.list.Find(node).Type == ib.NodeCA && node != "sm" {
			hosts = append(hosts, p)
		}
	}
	if len(hosts) < 3 {
		t.Fatalf("%d hosts", len(hosts))
	}
	rules := filepath.Join(t.TempDir(), "partitions.conf")
	write(t, rules, fmt.Sprintf(`Default=0x7fff, ipoib : ALL=full, SELF=full;
A=0x1, defmember=full : %v, %v, %v=limited;
B=0x2 : ALL=full;
C=0x3 : %v=full, ALL_SWITCHES=full;
D=0x4 : ALL_CAS=full;
`, hosts[0].guid, hosts[1].guid, hosts[2].guid, hosts[1].guid))
	keysOf := func() map[string][]ib.PKey {
		out := make(map[string][]ib.PKey)
		for _, p := range f.endPorts() {
			if node, _, _ := strings.Cut(p.at, "/"); f.list.Find(node).Type == ib.NodeCA {
				out[p.at] = f.PKeys(node, 1)
			}
		}
		return out
	}
	cache := f.opensm(t, "partition_config_file "+rules+"\n")
	before := keysOf()
	site := siteIn(t, cache, filepath.Dir(rules))
	site.Port = "ibsim:" + f.client.Socket + "/sm"
	dir := t.TempDir()
	p := moved(t, dir, site)
	var lost []string
	for i := range p.Items {
		if it := &p.Items[i]; it.Loses {
			lost = append(lost, it.Place()+" "+string(it.Verdict))
		}
	}
	if want := "partitions.conf:1 unsafe, partitions.conf:2 unsupported"; strings.Join(lost, ", ") != want {
		t.Errorf("lost are %q, want %s", lost, want)
	}
	var out, errs strings.Builder
	args := []string{"sm", "--config", filepath.Join(dir, "portcullisd.yaml"), "--partitions", filepath.Join(dir, "partitions.conf"), "--state-dir", filepath.Join(dir, "state"), "--once"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if code := run(ctx, args, time.Now, nil, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, &out, &errs)
	}
	after := keysOf()
	for at, had := range before {
		for _, k := range after[at] {
			if !slices.Contains(had, k) && !slices.Contains(had, k.Full()) {
				t.Errorf("%s has %v, and OpenSM had it have %v", at, k, had)
			}
		}
		for _, k := range had {
			if slices.Contains(after[at], k) || at == hosts[2].at && k.Base() == 1 || k.Base() == ib.DefaultPKeyLimited && at != "sm/1" {
				continue
			}
			t.Errorf("%s lost %v, and has %v", at, k, after[at])
		}
	}
	if !slices.Contains(after["sm/1"], ib.DefaultPKeyLimited.Full()) || slices.Contains(after[hosts[0].at], ib.DefaultPKeyLimited.Full()) {
		t.Errorf("P_Keys of the manager %v, of a host %v", after["sm/1"], after[hosts[0].at])
	}
}

package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys/keystest"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// opensmKey is the M_Key of the OpenSM that is taken over from.
const opensmKey = 0x5eed_0c0f_fee0_1234

// opensm brings a fabric up once with the real OpenSM, and returns the directory in which it keeps what it knows.
func (f *keyFabric) opensm(t *testing.T, options string) (cache string) {
	t.Helper()
	cache = t.TempDir()
	conf := filepath.Join(cache, "opensm.conf")
	write(t, conf, options)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := f.client.OpenSM(ctx, "sm", cache, "-F", conf); err != nil {
		t.Fatal(err)
	}
	return cache
}

// TestTakeOverFromOpenSM: the real OpenSM has locked a fabric. Ours takes it over, by the one key of its configuration or
// by the files it keeps. It assigns every device a key of its own, and removes the keys on request. Then an OpenSM that
// knows no key brings the fabric up again.
func TestTakeOverFromOpenSM(t *testing.T) {
	t.Parallel()
	ibsimtest.Need(t, "opensm", "smpquery")
	for name, device := range map[string]sim.Device{"plain": {}, "modern": sim.Modern()} {
		for _, by := range []string{"import", "import_options"} {
			t.Run(name+" by "+by, func(t *testing.T) {
				t.Parallel()
				takeOverFabric(t, device, by)
			})
		}
	}
}

func takeOverFabric(t *testing.T, device sim.Device, by string) {
	f := servedKeyFabric(t, device)
	cache := f.opensm(t, "m_key 0x5eed0c0ffee01234\nm_key_protection_level 2\nm_key_lease_period 60\n")
	for _, p := range f.endPorts() {
		if p.key != opensmKey || p.level != 2 {
			t.Fatalf("%s: OpenSM gave no key of level 2", p.at)
		}
	}
	from := cache
	if by == "import_options" {
		from = filepath.Join(cache, "opensm.conf")
	}
	s := setKeys(t, "m_key_enable: enable", by+": "+from)
	s.once(t, f)
	f.held(t, opensmKey)

	d, c := s.run(t, f)
	f.held(t, opensmKey)
	k, err := c.Keys().Get(t.Context())
	if err != nil || k.Devices["held"] != len(f.endPorts()) || len(k.Old) > 0 {
		t.Errorf("keys stand as %+v, %v", k, err)
	}
	released(t, c)
	d.stop()
	s.once(t, f) // a restart issues none
	for _, p := range f.endPorts() {
		if p.key != 0 || p.level != 0 {
			t.Errorf("%s has a key after the release, level %d", p.at, p.level)
		}
	}
	f.opensm(t, "m_key 0x0\n")
	for _, p := range f.endPorts() {
		if p.key != 0 || p.state != ib.PortActive {
			t.Errorf("%s under OpenSM: has a key: %v, is %v", p.at, p.key != 0, p.state)
		}
	}

	d, c = s.run(t, f)
	if _, err := c.Keys().Release(t.Context(), v1.KeyRelease{Resume: true}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "keys after they were resumed", func() (bool, string) {
		k, err := c.Keys().Get(t.Context())
		return err == nil && k.Devices["held"] == len(f.endPorts()), strings.Join(strings.Fields(d.lines.String()), " ")
	})
	f.held(t, opensmKey)
}

// TestSmpqueryNeedsOurKey: unchanged diagnostics read a fabric of ours under the
// keys of an export, and nothing without.
func TestSmpqueryNeedsOurKey(t *testing.T) {
	t.Parallel()
	ibsimtest.Need(t, "smpquery")
	f := servedKeyFabric(t, sim.Modern())
	s := setKeys(t, "m_key_enable: auto")
	s.once(t, f)
	f.held(t)
	for i, p := range f.endPorts() {
		route := map[string]string{"h1/1": "0,1,2", "leaf1/0": "0,1"}[p.at]
		if route == "" {
			continue
		}
		for _, tt := range []struct {
			name    string
			key     uint64
			answers bool
		}{{"the right key", p.key, true}, {"that of another device", f.endPorts()[(i+1)%4].key, false}, {"no key", 0, false}} {
			op := []string{"-D", "nodeinfo", route}
			if tt.key != 0 {
				op = append([]string{"--m_key", "0x" + strings.ToLower(keystest.Hex(tt.key))}, op...)
			}
			out, err := f.client.Diag(t.Context(), "sm", "smpquery", op...)
			if (err == nil) != tt.answers {
				t.Errorf("%s with %s: %v\n%s", p.at, tt.name, err, out)
			}
		}
	}
}

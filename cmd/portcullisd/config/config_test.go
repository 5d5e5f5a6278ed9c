package config

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"portcullis/api"
	"portcullis/attest"
	"portcullis/fabricsm/strictyaml"
)

// The reference configuration holds every key, with its default.
func TestReferenceConfig(t *testing.T) {
	t.Parallel()
	got, err := Parse("default.yaml", Reference)
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.File = "default.yaml"
	if d := cmp.Diff(got, want, cmp.AllowUnexported(Config{}, LIDs{}, QoS{}), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("reference configuration and built-in defaults differ (-reference +built-in):\n%s", d)
	}
	root, err := strictyaml.Document("reference", Reference, maxConfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keysOf("", reflect.TypeFor[Config]()) {
		path := strings.Split(key, ".")
		if strictyaml.LineOf(root, path...) == strictyaml.LineOf(root, path[:len(path)-1]...) {
			t.Errorf("the reference configuration lacks %s", key)
		}
	}
}

// keysOf lists the keys of a configuration type, "fabric.port" and so on.
func keysOf(prefix string, t reflect.Type) []string {
	var keys []string
	for f := range t.Fields() {
		name := f.Tag.Get("yaml")
		if name == "" {
			continue
		}
		if f.Type.Kind() == reflect.Struct {
			keys = append(keys, keysOf(prefix+name+".", f.Type)...)
			continue
		}
		keys = append(keys, prefix+name)
	}
	return keys
}

func TestEveryReferenceKeyIsExplained(t *testing.T) {
	t.Parallel()
	lines := strings.Split(string(Reference), "\n")
	explained := false
	for i, line := range lines {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "":
			explained = false
		case strings.HasPrefix(trimmed, "#"):
			explained = true
		case strings.HasSuffix(trimmed, ":"):
			explained = false // a section: each of its keys is explained
		case !explained:
			t.Errorf("line %d: %s has no comment above it", i+1, trimmed)
		}
	}
}

func TestConfigMistakes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in string
		want     []string // one for each line of the error, in order
	}{
		{"unknown keys", "listn: a\nfabric:\n  prt: b\n", []string{"c.yaml:1: unknown key listn", "c.yaml:3: unknown key prt"}},
		{"type", "fabric: {priority: high}\n", []string{"c.yaml:1: "}},
		{"duration without unit", "admission: {window: 60}\n", []string{"c.yaml:1: "}},
		{"doubled key", "listen: a:1\nlisten: b:2\n", []string{"c.yaml:2: mapping key \"listen\" already defined"}},
		{"syntax", "roles: [api\nlisten: x\n", []string{"c.yaml:2: "}},
		{"two documents", "listen: a:1\n---\nlisten: b:1\n", []string{"c.yaml"}},
		{"list", "- listen\n", []string{"c.yaml:1: "}},
		{"values", "listen: here\nroles: [api, web]\nchannel_binding: maybe\nfabric:\n  priority: 16\n  timeout: 1ms\n", []string{
			"c.yaml:1: listen: ", "c.yaml:2: roles: ", "c.yaml:3: channel_binding: ", "c.yaml:5: fabric.priority: ", "c.yaml:6: fabric.timeout: ",
		}},
		{"roles twice", "roles: [sm, sm]\n", []string{"c.yaml:1: roles: sm is named twice"}},
		{"no roles", "roles: []\n", []string{"c.yaml:1: roles: is empty"}},
		{"rate", "limits: {requests: 0, attestations: .nan, tokens: -1, strangers: 0, refusals: 0}\n", []string{
			"c.yaml:1: limits.requests", "c.yaml:1: limits.attestations", "c.yaml:1: limits.refusals", "c.yaml:1: limits.strangers", "c.yaml:1: limits.tokens",
		}},
		{"far from any key", "limits: {xxxxxx: 1}\n", []string{"c.yaml:1: unknown key xxxxxx; the keys here are connections, requests, attestations, refusals, strangers, tokens"}},
		{"key of another section", "window: 3\nfabric: {smps: {hoq_life: 3}}\n", []string{
			"c.yaml:1: unknown key window; did you mean fabric.smps.window?", "c.yaml:2: unknown key hoq_life; did you mean fabric.ports.hoq_life?",
		}},
		{"keys, types and values", "fabric:\n  prioriti: 3\n  ports:\n    max_mtu: 1000\n    hoq_life: x\nlistn: a\n", []string{
			"c.yaml:2: unknown key prioriti; did you mean priority?", "c.yaml:4: fabric.ports.max_mtu: 1000: want 256",
			"c.yaml:5: ", "c.yaml:6: unknown key listn; did you mean listen?",
		}},
		{"umad", "fabric: {port: 'umad:mlx5_0/1'}\n", []string{"c.yaml:1: fabric.port: \"umad:mlx5_0/1\": \"mlx5_0/1\" is not the name of a device"}},
		{"simulated by the service", "fabric: {port: 'sim:a.net'}\n", []string{"c.yaml:1: fabric.port: \"sim:a.net\": want umad:DEVICE[:PORT] or ibsim:SOCKET/NODE"}},
		{"port without node", "fabric: {port: 'ibsim:sim'}\n", []string{"c.yaml:1: fabric.port: "}},
		{"port without socket", "fabric: {port: 'ibsim:/n'}\n", []string{"c.yaml:1: fabric.port: "}},
		{"rules of ports", "fabric:\n  ports:\n    link_speed: FAST\n    rules:\n    - {guid: 0x10, port: 1, max_mtu: 7}\n    - {guid: 0x10, port: 1, link_width: 3x}\n    - {guid: 0x11, disabled: true}\n    - {prt: 7}\n", []string{
			"c.yaml:3: fabric.ports.link_speed: link speed \"FAST\": want one of SDR, ", "c.yaml:5: fabric.ports.rules.0.max_mtu: 7: want 256",
			"c.yaml:6: fabric.ports.rules.1.link_width: link width \"3x\"", "c.yaml:6: fabric.ports.rules.1.guid: 0x0000000000000010 port 1 has a rule already, number 1",
			"c.yaml:7: fabric.ports.rules.2.disabled: want the port of a switch", "c.yaml:8: unknown key prt; did you mean port?", "c.yaml:8: fabric.ports.rules.3.guid: ",
		}},
		{"enforcement", "fabric: {enforcement: hoped}\n", []string{"c.yaml:1: fabric.enforcement: \"hoped\": want one of"}},
		{"P_Key range", "admission: {pkey_first: '0x0009', pkey_last: '0x0001'}\n", []string{"c.yaml:1: admission.pkey_first: "}},
		{"drift", "verify: {drift: {stray: mend, leaving: fence}}\n", []string{`c.yaml:1: verify.drift.stray: "mend" is none of list, report, correct, fence`}},
		{"history", "history: {keep: 10m, size: 4}\n", []string{"c.yaml:1: history.keep: 10m0s: want 1h0m0s to 168h0m0s", "c.yaml:1: history.size: 4: want 8 to 4096"}},
		{"examinations", "verify: {every: 10s, rate: 20000}\n", []string{"c.yaml:1: verify.every: 10s: want 1m0s to 720h0m0s", "c.yaml:1: verify.rate: 20000: want 10 to 10000"}},
		{"rule for GUIDs", "admission: {guid_conflict: ignore}\n", []string{"c.yaml:1: admission.guid_conflict: \"ignore\": want keep or withdraw"}},
		{"full P_Key", "admission: {pkey_reserved: ['0x8001']}\n", []string{"c.yaml:1: admission.pkey_reserved: 0x8001"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("c.yaml", []byte(tt.in))
			if err == nil {
				t.Fatal("accepted")
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(tt.want) {
				t.Fatalf("got %d problems, want %d:\n%v", len(lines), len(tt.want), err)
			}
			for i, want := range tt.want {
				if !strings.HasPrefix(lines[i], want) {
					t.Errorf("problem %q, want %q", lines[i], want)
				}
			}
		})
	}
}

// TestTypesInMistakes: a value of a wrong type is reported with the type that it should have.
func TestTypesInMistakes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"- listen\n":                                "c.yaml:1: cannot construct !!seq into config",
		"fabric: 3\n":                               "c.yaml:1: cannot construct !!int `3` into fabricConfig",
		"tls: 3\n":                                  "c.yaml:1: cannot construct !!int `3` into tlsConfig",
		"host_certificates: a\n":                    "c.yaml:1: cannot construct !!str `a` into hostCertificatesConfig",
		"roles: [[]]\n":                             "c.yaml:1: cannot construct !!seq into role",
		"fabric: {sa: config.SA}\n":                 "c.yaml:1: cannot construct !!str `config.SA` into saConfig",
		"fabric: {sa: {limits: 1}}\n":               "c.yaml:1: cannot construct !!int `1` into saLimits",
		"fabric: {ports: {rules: [1]}}\n":           "c.yaml:1: cannot construct !!int `1` into ruleConfig",
		"fabric: {health: {noisy: []}}\n":           "c.yaml:1: cannot construct !!seq into healthRule",
		"fabric: {lids: 1}\n":                       "c.yaml:1: cannot construct !!int `1` into lidsConfig",
		"attestation: {ek: 1}\nchannel_binding: {}": "c.yaml:1: ",
	} {
		_, err := Parse("c.yaml", []byte(in))
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "into config.") {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}

func TestEmptyConfigMeansDefaults(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"", "\n", "# nothing\n  # at all\n"} {
		c, err := Parse("c.yaml", []byte(in))
		if err != nil || c.Listen != Default().Listen {
			t.Errorf("%q: %+v, %v; want the defaults", in, c, err)
		}
	}
}

func TestPathsAreRelativeToTheFile(t *testing.T) {
	t.Parallel()
	c := &Config{File: "/etc/portcullis/portcullisd.yaml"}
	for in, want := range map[string]string{"": "", "tls/a.pem": "/etc/portcullis/tls/a.pem", "/x/a.pem": "/x/a.pem"} {
		if got := c.Path(in); got != want {
			t.Errorf("path(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzConfig(f *testing.F) {
	f.Add(Reference)
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("fabric: {port: \"ibsim:\\0/\"}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("c.yaml", data)
		if (c == nil) == (err == nil) {
			t.Fatalf("parseConfig = %v, %v; want one of them", c, err)
		}
	})
}

// Every file that is missing or wrong is reported, in one go.
func TestLoadPartsReportsEveryFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "tokens.yaml"), "tokens:\n- {name: a}\n")
	write(t, filepath.Join(dir, "sm.key"), "12345\n")
	write(t, filepath.Join(dir, "roots.pem"), "nothing\n")
	c, err := Parse(filepath.Join(dir, "c.yaml"), []byte("fabric: {sm_key_file: sm.key}\nattestation: {ek: {roots: [roots.pem]}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = ReadFiles(c)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"server.pem: no such file", "role is missing", "roots.pem", "sm.key: want 0x"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "12345") {
		t.Errorf("error holds the key: %v", err)
	}
}

func TestPolicyFollowsTheConfiguration(t *testing.T) {
	t.Parallel()
	c := Default()
	if p, closed, err := loadPolicy(c); err != nil || closed == "" || p.Check() == nil {
		t.Errorf("without roots: %v, %q, %v; want a policy that refuses and the reason", p, closed, err)
	}
	c.Attestation.EK.Mode, c.ChannelBinding, c.Attestation.AgentPCR = "pinned", api.ChannelOff, 14
	p, closed, err := loadPolicy(c)
	if err != nil || closed != "" {
		t.Fatalf("pinned: %q, %v", closed, err)
	}
	if p.Mode != "pinned" || p.Channel != "none" || p.AgentPCR != 14 || len(p.PCRs) != 8 || p.SessionLife != c.Attestation.SessionLife {
		t.Errorf("policy %+v does not follow the configuration", p)
	}
	c.Attestation.AgentPCR = 16
	if _, _, err := loadPolicy(c); err == nil || !strings.Contains(err.Error(), "agent PCR 16") {
		t.Errorf("agent PCR 16: %v, want a refusal", err)
	}
	for _, mode := range []attest.EKMode{attest.EKPinnedChain, "pinnd"} {
		c.Attestation.EK.Mode, c.Attestation.AgentPCR = mode, 16
		if _, _, err := loadPolicy(c); err == nil {
			t.Errorf("mode %s without roots, agent PCR 16: accepted, want a refusal", mode)
		}
	}
}

func TestSMKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		in   string
		want uint64 // 0: an error
	}{
		"good": {"0x1122334455667788\n", 0x1122334455667788}, "short": {"0x1", 1}, "zero": {"0x0", 0},
		"no prefix": {"11", 0}, "long": {"0x11223344556677889", 0}, "empty": {"", 0}, "word": {"0xsecret", 0},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			write(t, file, tt.in)
			key, err := loadSMKey(file)
			if (err == nil) != (tt.want != 0) || key.Reveal() != tt.want {
				t.Errorf("loadSMKey = %v, want key %v", err, tt.want != 0)
			}
		})
	}
	if key, err := loadSMKey(""); err != nil || !key.IsZero() {
		t.Errorf("no file: %v, %v; want no key", key, err)
	}
}

package trust_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa/trust"
)

func TestDefaultsAreStrict(t *testing.T) {
	want := trust.Options{
		Model: true, MaxGroups: 128, MaxServices: 32, MaxSubscriptions: 32, CheckSGID: true,
		ReservedNames: []string{"SHArP."}, KeyPeriod: 24 * time.Hour, KeyGrace: time.Hour,
	}
	got := trust.DefaultOptions()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if err := got.Check(); err != nil {
		t.Error(err)
	}
}

const lax = `# of opensm.conf
guid 0x0
sa_key 0x1
sa_enhanced_trust_model FALSE
sa_etm_allow_untrusted_guidinfo_rec	TRUE
sa_etm_allow_guidinfo_rec_by_vf true
sa_etm_allow_untrusted_proxy_requests TRUE # all
sa_etm_max_num_mcgs 0
sa_etm_max_num_srvcs 0x10
sa_etm_max_num_event_subs 7
sa_rate_threshold 100
sa_check_sgid_spoofing FALSE
service_name2key_map_file /etc/opensm/service_keys
sa_reserved_service_names SHArP., Boot
sa_key_update 60
sa_key_grace 5
sa_trusted_guids 0x0002c90300a1b2c3,0x0002c90300ffee00
`

func TestParseOptions(t *testing.T) {
	want := trust.Options{
		AliasesUntrusted: true, AliasesByAlias: true, ProxyUntrusted: true, MaxServices: 16, MaxSubscriptions: 7, Threshold: 100,
		ServiceKeyFile: "/etc/opensm/service_keys", ReservedNames: []string{"SHArP.", "Boot"},
		KeyPeriod: time.Hour, KeyGrace: 5 * time.Minute, TrustedSources: []ib.GUID{hostGUID, otherGUID},
	}
	got, err := trust.ParseOptions("opensm.conf", []byte(lax), trust.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	nulled := got
	for line := range strings.Lines(lax) {
		if name, _, _ := strings.Cut(strings.Fields(line)[0], " "); strings.HasPrefix(name, "s") && name != "sa_key" {
			if known, err := nulled.Set(name, "(null)"); !known || err != nil {
				t.Errorf("%s (null): known %v, %v", name, known, err)
			}
		}
	}
	if d := cmp.Diff(trust.DefaultOptions(), nulled); d != "" {
		t.Errorf("(null) is not the default (-want +got):\n%s", d)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var again trust.Options
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(got, again); d != "" {
		t.Errorf("JSON changes options (-want +got):\n%s", d)
	}
}

// TestOptionsAsYAML reads options as the configuration of the service has them.
func TestOptionsAsYAML(t *testing.T) {
	got := trust.DefaultOptions()
	if err := yaml.Unmarshal([]byte("sa_etm_max_num_mcgs: 7\nsa_check_sgid_spoofing: false\nsa_key_update: 90m\nsa_trusted_guids: [0x0002c90300a1b2c3]\n"), &got); err != nil {
		t.Fatal(err)
	}
	want := trust.DefaultOptions()
	want.MaxGroups, want.CheckSGID, want.KeyPeriod, want.TrustedSources = 7, false, 90*time.Minute, []ib.GUID{hostGUID}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestOptionsRefuse: each error names the place, the option, the value and the expected values.
func TestOptionsRefuse(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"sa_enhanced_trust_model maybe", `f:1: sa_enhanced_trust_model "maybe": want TRUE or FALSE`},
		{"\nsa_etm_max_num_mcgs -1", `f:2: sa_etm_max_num_mcgs "-1": want 0 to 1048576`},
		{"sa_etm_max_num_srvcs many", `sa_etm_max_num_srvcs "many": want 0 to 1048576`},
		{"sa_etm_max_num_event_subs 99999999", `sa_etm_max_num_event_subs "99999999": want 0 to 1048576`},
		{"sa_rate_threshold 1000001", `sa_rate_threshold "1000001": want 0 to 1000000`},
		{"sa_check_sgid_spoofing", `sa_check_sgid_spoofing "": want TRUE or FALSE`},
		{"sa_key_update 999999999", `sa_key_update "999999999": want 0 to 527040 minutes`},
		{"sa_key_grace 1441", `f: sa_key_grace 24h1m0s: want less than sa_key_update, 24h0m0s`},
		{"sa_trusted_guids fish", `sa_trusted_guids "fish": GUID "fish"`},
		{"sa_trusted_guids 0x0", `sa_trusted_guids 0x0000000000000000: no port has this GUID`},
		{"sa_trusted_guids " + strings.Repeat("0x1,", 300), `sa_trusted_guids: 300 GUIDs; want at most 256`},
		{"sa_reserved_service_names " + strings.Repeat("a", 65), `sa_reserved_service_names "aaa`},
		{"sa_enhanced_trust_mode FALSE", `f:1: option "sa_enhanced_trust_mode" is not known`},
		{"sa_etm_max_num_x 1\nsa_rate_threshold x", "f:1: option \"sa_etm_max_num_x\" is not known\nf:2: sa_rate_threshold"},
	} {
		o := trust.DefaultOptions()
		got, err := trust.ParseOptions("f", []byte(tt.text), o)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.40q: %v, want %s", tt.text, err, tt.want)
		}
		if d := cmp.Diff(o, got); d != "" {
			t.Errorf("%.40q changed options (-want +got):\n%s", tt.text, d)
		}
	}
	if _, err := trust.ParseOptions("f", make([]byte, trust.MaxOptionsSize+1), trust.Options{}); !errors.Is(err, trust.ErrTooLarge) {
		t.Errorf("a file that is too large: %v", err)
	}
}

func FuzzOptions(f *testing.F) {
	f.Add([]byte(lax))
	f.Add([]byte("sa_key_update 1\nsa_key_grace 0\nsa_reserved_service_names ,,\n"))
	f.Add([]byte("sa_trusted_guids 0002:c903:00a1:b2c3 # x\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := trust.ParseOptions("f", data, trust.DefaultOptions())
		if err != nil {
			return
		}
		if err := o.Check(); err != nil {
			t.Errorf("%q was taken: %v", data, err)
		}
	})
}

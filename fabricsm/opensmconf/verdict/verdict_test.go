package verdict_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/opensmconf"
	"portcullis/fabricsm/opensmconf/verdict"
	"portcullis/packaging/testenv"
)

// TestEveryOptionOfOpenSM has the real OpenSM write all of its options. Each has a row whose default is OpenSM's, and asks
// for nothing while it is at that.
func TestEveryOptionOfOpenSM(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "opensm.conf")
	cmd := exec.CommandContext(t.Context(), testenv.Program(t, "opensm"), "--create-config", file)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("opensm: %v\n%s", err, out)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	settings, err := opensmconf.Parse("opensm.conf", data)
	if err != nil || len(settings) < 150 {
		t.Fatalf("%d options, %v", len(settings), err)
	}
	for _, s := range settings {
		o, ok := verdict.Find(s.Name)
		if !ok {
			t.Errorf("OpenSM's option %s has no verdict", s.Name)
			continue
		}
		if (s.Name == "sm_key" || s.Name == "sa_key") && s.Value == "0x0000000000000001" {
			continue // its default is not safe
		}
		if !o.IsUsual(s.Value) {
			t.Errorf("%s: OpenSM's default is %q, the table says %q", s.Name, s.Value, o.Usual)
		}
		if j := o.Judge(s.Value); j.Loses || j.To != "" || j.Class == verdict.Unknown {
			t.Errorf("%s %s, OpenSM's default, is judged as %+v", s.Name, s.Value, j)
		}
	}
}

func TestTableIsSound(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, o := range verdict.Options() {
		found, ok := verdict.Find(strings.TrimSuffix(o.Name, "*"))
		switch {
		case seen[o.Name]:
			t.Errorf("%s has two rows", o.Name)
		case !o.Prefix() && (!ok || found.Name != o.Name):
			t.Errorf("%s is found as %q", o.Name, found.Name)
		case o.Text == "" && o.Class != verdict.Taken && o.Form != verdict.Planned:
			t.Errorf("%s: the verdict %s has no reason", o.Name, o.Class)
		case o.Class == verdict.Taken && (o.Key == "" || o.Form == verdict.None):
			t.Errorf("%s is taken to no key, or in no form", o.Name)
		case o.Class != verdict.Taken && o.Class != verdict.Changed && o.Form != verdict.None:
			t.Errorf("%s is %s and has a form", o.Name, o.Class)
		case o.Most < o.Least:
			t.Errorf("%s takes %d to %d", o.Name, o.Least, o.Most)
		case o.With != "" && !has(o.With):
			t.Errorf("%s depends on %s, which has no row", o.Name, o.With)
		}
		seen[o.Name] = true
	}
}

func TestUFMTableIsSound(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, o := range verdict.UFM() {
		found, ok := verdict.FindUFM(strings.ToUpper(o.Name))
		if seen[o.Name] || !ok || found.Name != o.Name || o.Text == "" && o.Form != verdict.Planned {
			t.Errorf("%+v is found as %q", o, found.Name)
		}
		seen[o.Name] = true
	}
	for value, want := range map[string]string{"yes": "TRUE", "True": "TRUE", "off": "FALSE", "0x1": "0x1"} {
		if got := verdict.UFMTruth(value); got != want {
			t.Errorf("%s is %s, want %s", value, got, want)
		}
	}
}

func has(name string) bool {
	o, ok := verdict.Find(name)
	return ok && o.Name == name
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, value string
		want        verdict.Judgement
	}{
		{"lmc", "2", verdict.Judgement{Class: verdict.Taken, Key: "fabric.lmc", To: "2"}},
		{"lmc", "8", verdict.Judgement{Class: verdict.Unknown, Key: "fabric.lmc", Text: "8: fabric.lmc takes 0 to 7; set it by hand", Loses: true}},
		{"lmc", "two", verdict.Judgement{Class: verdict.Unknown, Key: "fabric.lmc", Text: "want a number of at most 32 bits: decimal, 0x and hexadecimal digits, or 0 and octal ones", Loses: true}},
		{"max_op_vls", "3", verdict.Judgement{Class: verdict.Taken, Key: "fabric.ports.max_vls", To: "4"}},
		{"max_op_vls", "6", verdict.Judgement{Class: verdict.Unknown, Key: "fabric.ports.max_vls", Text: "code 6 of a number of virtual lanes: want 1 to 5", Loses: true}},
		{"max_neighbor_mtu", "4", verdict.Judgement{Class: verdict.Taken, Key: "fabric.ports.max_mtu", To: "2048"}},
		{"transaction_timeout", "0x64", verdict.Judgement{Class: verdict.Taken, Key: "fabric.timeout", To: "100ms"}},
		{"no_clients_rereg", "TRUE", verdict.Judgement{Class: verdict.Taken, Key: "fabric.ports.reregister", To: "false"}},
		{"cc_key_enable", "2", verdict.Judgement{Class: verdict.Taken, Key: "fabric.keys.cc_key_enable", To: "enable"}},
		{"subnet_prefix", "0xfec0000000000001", verdict.Judgement{Class: verdict.Taken, Key: "fabric.ports.prefix", To: `"0xfec0000000000001"`}},
		{"sm_priority", "0x0", verdict.Judgement{Class: verdict.Changed, Key: "fabric.priority", Text: "it is at OpenSM's default; here 14"}},
		{"sm_priority", "3", verdict.Judgement{Class: verdict.Taken, Key: "fabric.priority", To: "3"}},
		{"lmc_esp0", "true", verdict.Judgement{
			Class: verdict.Changed, Key: "fabric.ports.lmc_port0",
			Text: "OpenSM takes anything but TRUE for FALSE, so FALSE was in force; check what was meant; OpenSM's default is the default here",
		}},
		{"part_enforce", "off", verdict.Judgement{Class: verdict.Unsafe, Key: "fabric.enforcement", Text: "switches enforce P_Keys in both directions, always", Loses: true}},
		{"console", "local", verdict.Judgement{Class: verdict.Unsafe, Key: "fabric.watch.socket", Text: "a socket of mode 0600 shows the fabric: portcullis sm top --socket"}},
		{"perfmgr", "(null)", verdict.Judgement{Class: verdict.NotNeeded, Text: "it is at OpenSM's default, which asks for nothing"}},
		{"ar_mode", "2", verdict.Judgement{Class: verdict.Unsupported, Text: "switches route by their tables alone: adaptive routing is left off, and a broken link waits for new tables", Loses: true}},
	} {
		o, ok := verdict.Find(tt.name)
		if !ok {
			t.Fatalf("%s has no row", tt.name)
		}
		if d := cmp.Diff(tt.want, o.Judge(tt.value)); d != "" {
			t.Errorf("%s %s (-want +got):\n%s", tt.name, tt.value, d)
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"m_key_protecton_level": "m_key_protection_level", "smkey": "sm_key", "LMC": "lmc", "route_engine": "routing_engine",
		"entirely_different_option": "", strings.Repeat("x", 5000): "",
	} {
		if got := verdict.Nearest(name); got != want {
			t.Errorf("%.30s is near %q, want %q", name, got, want)
		}
	}
}

func TestNearestUFM(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"topoconfig_enable": "topoconfig_enabled", "m_key_perport": "m_key_per_port", "max_hosts_in_the_room": ""} {
		if got := verdict.NearestUFM(name); got != want {
			t.Errorf("%s is near %q, want %q", name, got, want)
		}
	}
}

func FuzzJudge(f *testing.F) {
	f.Add("m_key", "0x1")
	f.Add("hm_x", "TRUE")
	f.Fuzz(func(t *testing.T, name, value string) {
		o, ok := verdict.Find(name)
		if !ok {
			verdict.Nearest(name)
			return
		}
		j := o.Judge(value)
		if !ok || j.Class == "" || j.To != "" && j.Key == "" || strings.ContainsAny(j.To, "\n#") {
			t.Errorf("%s %q: %+v", name, value, j)
		}
		if o.Secret && len(value) > 12 && strings.Contains(j.Text+j.To, value) {
			t.Errorf("%s: the value is shown: %+v", name, j)
		}
	})
}

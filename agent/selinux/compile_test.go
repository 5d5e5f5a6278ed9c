package selinux

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/packaging/parttest"
)

// compile has secilc make a policy of the module, a base and more statements.
func compile(t *testing.T, module string, more string) (policy string, err error) {
	t.Helper()
	secilc := parttest.Program(t, "secilc")
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	policy = filepath.Join(dir, "policy.33")
	out, err := exec.Command(secilc, "-M", "true", "-c", "33", "-o", policy, "-f", os.DevNull,
		"testdata/base.cil", file("portcullis.cil", module), file("more.cil", more)).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return policy, nil
}

// ask has a program of setools print what the policy says.
func ask(t *testing.T, program string, args ...string) []string {
	t.Helper()
	out, err := exec.Command(parttest.Program(t, program), args...).Output()
	if err != nil {
		t.Fatalf("%s %v: %v", program, args, err)
	}
	var lines []string
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

func keep(lines []string, prefix string) []string {
	return slices.DeleteFunc(lines, func(s string) bool { return !strings.HasPrefix(s, prefix) })
}

// The binary policy says what was meant, entry by entry, read by programs that
// are not ours.
func TestCompiledAndReadBack(t *testing.T) {
	module, err := twoTenants().CIL()
	if err != nil {
		t.Fatal(err)
	}
	policy, err := compile(t, module, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		got, want []string
	}{
		{keep(ask(t, "seinfo", policy, "--ibpkeycon", "-x"), "ibpkeycon"), []string{
			"ibpkeycon fe80:: 0x1 system_u:object_r:portcullis_pkey_t:s0:c10,c27",
			"ibpkeycon fe80:: 0x12 system_u:object_r:portcullis_pkey_t:s0:c1.c2",
			"ibpkeycon fe80:: 0x7fff system_u:object_r:portcullis_default_pkey_t:s0",
			"ibpkeycon fe80:: 0x8001 system_u:object_r:portcullis_pkey_t:s0:c10,c27",
			"ibpkeycon fe80:: 0x8012 system_u:object_r:portcullis_pkey_t:s0:c1.c2",
			"ibpkeycon fe80:: 0xffff system_u:object_r:portcullis_default_pkey_t:s0",
		}},
		{keep(ask(t, "seinfo", policy, "--ibendportcon", "-x"), "ibendportcon"), []string{
			"ibendportcon mlx5_0 1 system_u:object_r:portcullis_endport_t:s0",
			"ibendportcon mlx5_0 2 system_u:object_r:portcullis_endport_t:s0",
			"ibendportcon mlx5_1 1 system_u:object_r:portcullis_endport_t:s0",
		}},
		{ask(t, "sesearch", "-A", "-c", "infiniband_pkey,infiniband_endport", policy), []string{
			"allow container_t portcullis_pkey_t:infiniband_pkey access;",
			"allow kernel_t portcullis_default_pkey_t:infiniband_pkey access;",
			"allow kernel_t portcullis_pkey_t:infiniband_pkey access;",
			"allow opensm_t portcullis_default_pkey_t:infiniband_pkey access;",
			"allow opensm_t portcullis_endport_t:infiniband_endport manage_subnet;",
		}},
		{keep(ask(t, "seinfo", policy, "--constrain", "-x"), "mlsconstrain"), []string{
			"mlsconstrain infiniband_pkey access (h1 dom h2 or ( t1 == kernel_t ) or ( t2 != portcullis_pkey_t ));",
		}},
	} {
		if d := cmp.Diff(tt.want, tt.got); d != "" {
			t.Errorf("read back (-want +got):\n%s", d)
		}
	}
}

// A policy in which another domain may manage the subnet does not come to be.
func TestOneManager(t *testing.T) {
	p := twoTenants()
	module, err := p.CIL()
	if err != nil {
		t.Fatal(err)
	}
	const rule = "(allow other_t portcullis_endport_t (infiniband_endport (manage_subnet)))"
	if _, err := compile(t, module, rule); err == nil || !strings.Contains(err.Error(), "neverallow") {
		t.Errorf("a second manager: %v, want it refused by the neverallow", err)
	}
	p.Manager = ""
	if module, err = p.CIL(); err != nil {
		t.Fatal(err)
	}
	policy, err := compile(t, module, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, "sesearch", "-A", "-c", "infiniband_endport", policy); len(got) != 0 {
		t.Errorf("without a manager: %q", got)
	}
	if _, err := compile(t, module, rule); err == nil || !strings.Contains(err.Error(), "neverallow") {
		t.Errorf("a manager where nobody is one: %v, want it refused by the neverallow", err)
	}
}

// The compiler takes what we refuse, and makes something else of it: that is why.
func TestCompilerDoesNotCheck(t *testing.T) {
	const label = "(system_u object_r portcullis_default_pkey_t ((s0) (s0)))"
	module, err := (&Policy{Prefix: twoTenants().Prefix, Kernel: "kernel_t"}).CIL()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, statement, becomes string }{
		{"17 bits", "(ibpkeycon fe80:: 0x10000 " + label + ")", `fe80:: 0x0 `},
		{"lower half of the prefix", "(ibpkeycon fe80::1 0x8003 " + label + ")", `fe80:: 0x8003 `},
		{"a range backwards", "(ibpkeycon fe80:: (0x8010 0x8001) " + label + ")", `fe80:: 0x8010-0x8001 `},
	} {
		policy, err := compile(t, module, tt.statement)
		if err != nil {
			t.Errorf("%s: secilc refuses it now (%v): our own check may be no longer needed", tt.name, err)
			continue
		}
		lines := keep(ask(t, "seinfo", policy, "--ibpkeycon", "-x"), "ibpkeycon")
		if !slices.ContainsFunc(lines, func(s string) bool { return regexp.MustCompile(regexp.QuoteMeta(tt.becomes)).MatchString(s) }) {
			t.Errorf("%s: no label %q among %q", tt.name, tt.becomes, lines)
		}
	}
}

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

	"portcullis/agent/selinux/policydb"
	"portcullis/packaging/testenv"
)

// compile has secilc make a policy of the module, a base and more statements.
func compile(t *testing.T, module, more string, options ...string) (policy string, err error) {
	t.Helper()
	return compileOn(t, "testdata/base.cil", module, more, options...)
}

func compileOn(t *testing.T, base, module, more string, options ...string) (policy string, err error) {
	t.Helper()
	secilc := testenv.Program(t, "secilc")
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	policy = filepath.Join(dir, "policy.33")
	args := append([]string{"-M", "true", "-c", "33", "-o", policy, "-f", os.DevNull}, options...)
	out, err := exec.Command(secilc, append(args, base, file("portcullis.cil", module), file("more.cil", more))...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return policy, nil
}

// ask has a program of setools print what the policy says.
func ask(t *testing.T, program string, args ...string) []string {
	t.Helper()
	out, err := exec.Command(testenv.Program(t, program), args...).Output()
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
			"allow opensm_t portcullis_default_pkey_t:infiniband_pkey access;",
			"allow opensm_t portcullis_endport_t:infiniband_endport manage_subnet;",
			"allow portcullis_kernel_agents portcullis_default_pkey_t:infiniband_pkey access;",
			"allow portcullis_kernel_agents portcullis_endport_t:infiniband_endport manage_subnet;",
			"allow portcullis_kernel_agents portcullis_pkey_t:infiniband_pkey access;",
			"allow portcullis_users portcullis_pkey_t:infiniband_pkey access;",
		}},
		{keep(ask(t, "seinfo", policy, "-a", "portcullis_users", "-x"), "container"), []string{"container_t"}},
		// The policy has no systemd_modules_load_t, and takes the module all the same.
		{keep(ask(t, "seinfo", policy, "-a", "portcullis_kernel_agents", "-x"), "k"), []string{"kernel_t", "kmod_t"}},
		{keep(ask(t, "seinfo", policy, "-a", "portcullis_kernel_agents", "-x"), "u"), []string{"udev_t"}},
		{keep(ask(t, "seinfo", policy, "--constrain", "-x"), "mlsconstrain"), []string{
			"mlsconstrain infiniband_pkey access (h1 dom h2 or ( t1 == portcullis_kernel_agents ) or ( t2 != portcullis_pkey_t ));",
		}},
		{keep(ask(t, "seinfo", policy, "--constrain", "-x"), "constrain"), []string{
			"constrain infiniband_endport manage_subnet (t2 != portcullis_endport_t or ( t1 == opensm_t ) or ( t1 == portcullis_kernel_agents ));",
			"constrain infiniband_pkey access (t2 != portcullis_default_pkey_t or ( t1 == opensm_t ) or ( t1 == portcullis_kernel_agents ));",
			"constrain infiniband_pkey access (t2 != portcullis_pkey_t or ( t1 == portcullis_kernel_agents ) or ( t1 == portcullis_users ));",
		}},
	} {
		if d := cmp.Diff(tt.want, tt.got); d != "" {
			t.Errorf("read back (-want +got):\n%s", d)
		}
	}
}

// managers are the types that may manage the subnet by a policy, as setools resolves them.
func managers(t *testing.T, policy string) []string {
	t.Helper()
	agents := slices.DeleteFunc(ask(t, "seinfo", policy, "-a", attrKernel, "-x"), func(line string) bool {
		return !strings.HasSuffix(line, "_t")
	})
	var found []string
	for _, rule := range ask(t, "sesearch", "-A", "-t", TypeEndPort, "-c", "infiniband_endport", "-p", "manage_subnet", policy) {
		if who := strings.Fields(rule)[1]; who == attrKernel {
			found = append(found, agents...)
		} else {
			found = append(found, who)
		}
	}
	slices.Sort(found)
	return found
}

// The kernel's own agents get what they need on the adapter's ports, in the domain of
// each program that loads drivers, and no other domain but the manager's does.
func TestManagers(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Policy)
		want   []string
	}{
		"those of reference policies": {func(*Policy) {}, []string{"kernel_t", "kmod_t", "opensm_t", "udev_t"}},
		"no manager":                  {func(p *Policy) { p.Manager = "" }, []string{"kernel_t", "kmod_t", "udev_t"}},
		"the operator's":              {func(p *Policy) { p.Loaders = []Domain{"devlink_t"} }, []string{"devlink_t", "kernel_t", "opensm_t"}},
		"the kernel alone":            {func(p *Policy) { p.Loaders = []Domain{} }, []string{"kernel_t", "opensm_t"}},
	} {
		p := twoTenants()
		tt.change(p)
		module, err := p.CIL()
		if err != nil {
			t.Fatal(err)
		}
		policy, err := compile(t, module, "")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := cmp.Diff(tt.want, managers(t, policy)); d != "" {
			t.Errorf("%s: who may manage the subnet (-want +got):\n%s", name, d)
		}
		const rule = "(allow other_t portcullis_endport_t (infiniband_endport (manage_subnet)))"
		if _, err := compile(t, module, rule); err == nil || !strings.Contains(err.Error(), "neverallow") {
			t.Errorf("%s, and another: %v, want it refused by the neverallow", name, err)
		}
	}
	p := twoTenants()
	p.Loaders = []Domain{"mistyped_t"}
	module, err := p.CIL()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := compile(t, module, ""); err == nil || !strings.Contains(err.Error(), "Failed to resolve") {
		t.Errorf("a loader that the policy does not have: %v, want it refused", err)
	}
}

// TestDefaultUsers checks that containers of the reference policy are the users if the operator names none and the policy
// has them: Debian's has none.
func TestDefaultUsers(t *testing.T) {
	base, err := os.ReadFile("testdata/base.cil")
	if err != nil {
		t.Fatal(err)
	}
	without := filepath.Join(t.TempDir(), "base.cil")
	if err := os.WriteFile(without, regexp.MustCompile(`(?m)^.*container_t.*$`).ReplaceAll(base, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	p := twoTenants()
	p.Users = nil
	module, err := p.CIL()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		base string
		want []string
		said string // by Judge; "" nothing
	}{
		{"testdata/base.cil", []string{"container_t"}, ""},
		{without, []string{}, "no domain may use partitions of tenants"},
	} {
		file, err := compileOn(t, tt.base, module, "")
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tt.want, keep(ask(t, "seinfo", file, "-a", attrUsers, "-x"), "container")); d != "" {
			t.Errorf("%s: users (-want +got):\n%s", tt.base, d)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		read, err := policydb.Read(data)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Judge(read); tt.said == "" && err != nil || tt.said != "" && (err == nil || !strings.Contains(err.Error(), tt.said)) {
			t.Errorf("%s: judged %v, want %q", tt.base, err, tt.said)
		}
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

package selinux

import (
	"os"
	"strings"
	"testing"

	"portcullis/agent/selinux/policydb"
	"portcullis/fabricsm/ib"
)

// judge has a policy compiled without a look at neverallow rules, as semodule does
// where semanage.conf says expand-check=0, and judged.
func judge(t *testing.T, want *Policy, module, more string) error {
	t.Helper()
	file, err := compile(t, module, more, "-N")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := policydb.Read(data)
	if err != nil {
		t.Fatal(err)
	}
	return want.Judge(got)
}

// TestJudge checks that mistakes that a compiler accepts silently, and rules that another module adds, are found in the
// policy.
func TestJudge(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, more string
		change     func(p *Policy) // of the intended policy, after the module was written
		edit       func(module string) string
		want       string // "" none
	}{
		{name: "as written"},
		{
			name: "another manager", more: "(allow other_t portcullis_endport_t (infiniband_endport (manage_subnet)))",
			want: "a rule of another module lets domain other_t send subnet management packets, though a constraint denies it: find it with",
		},
		{
			name: "another in the attribute", more: "(typeattributeset portcullis_kernel_agents (other_t))",
			want: "a rule of another module lets domain other_t use partitions of tenants: find it with",
		},
		{
			name: "a user of the default partition", more: "(allow container_t portcullis_default_pkey_t (infiniband_pkey (access)))",
			want: "lets domain container_t use the default partition, though a constraint denies it",
		},
		{
			name: "under a boolean", more: "(boolean b false) (booleanif b (true (allow other_t portcullis_pkey_t (infiniband_pkey (access)))))",
			want: "lets domain other_t use partitions of tenants, though a constraint denies it",
		},
		{
			name: "a permissive domain", more: "(typepermissive container_t)",
			want: "domain container_t is permissive: nothing is denied to it",
		},
		{
			name: "the kernel's agents left out", edit: without("(allow portcullis_kernel_agents portcullis_endport_t"),
			want: "domain kernel_t may not send subnet management packets, but must be able to",
		},
		{
			name: "no constraint on other domains", edit: without("(constrain (infiniband_endport"),
			want: "no constraint stops container_t and other types when a rule allows them to send subnet management packets",
		},
		{
			name: "no constraint on categories", edit: without("(mlsconstrain "),
			want: `P_Key 0x8001: a process of domain container_t with the categories ["c27"] is allowed it by the constraints, and must be denied`,
		},
		{
			name: "a constraint of another", more: "(mlsconstrain (infiniband_pkey (access)) (eq l1 l2))",
			want: "a process of domain kernel_t with the categories [] is denied it by the constraints",
		},
		{
			name: "a label less", edit: without("(ibpkeycon fe80:: 0x0001"),
			want: `P_Key 0x0001 has the label "", want "portcullis_pkey_t:s0:c10,c27"`,
		},
		{
			name: "a label more", more: "(ibpkeycon fe80:: 0x8077 (system_u object_r portcullis_pkey_t ((s0) (s0))))",
			want: "P_Key 0x8077 has the label portcullis_pkey_t:s0, want none",
		},
		{
			name: "another tenant's categories", change: func(p *Policy) { p.Partitions[0].Categories = []Category{1, 2} },
			want: `P_Key 0x8001 has the label "portcullis_pkey_t:s0:c10,c27", want "portcullis_pkey_t:s0:c1,c2"`,
		},
		{
			name: "a range", more: "(ibpkeycon fe80:: (0x20 0x2f) (system_u object_r portcullis_pkey_t ((s0) (s0))))",
			want: "P_Keys 0x0020 to 0x002f have one label",
		},
		{
			name: "another prefix", more: "(ibpkeycon fec0:: 0x8001 (system_u object_r portcullis_pkey_t ((s0) (s0))))",
			want: "of subnet prefix fec0::/64 have the label portcullis_pkey_t:s0, but the fabric's prefix is fe80::/64",
		},
		{
			name: "a port without label", change: func(p *Policy) { p.EndPorts = append(p.EndPorts, EndPort{"mlx5_9", 1}) },
			want: `port 1 of device mlx5_9 has the label "", want "portcullis_endport_t:s0"`,
		},
		{
			name: "another module's", edit: func(string) string { return "" },
			want: "the module is not in it",
		},
		{
			name: "what is wanted is wrong", change: func(p *Policy) { p.Partitions[0].PKey = ib.PKey(0) },
			want: "its base is 0",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := twoTenants()
			module, err := p.CIL()
			if err != nil {
				t.Fatal(err)
			}
			if tt.edit != nil {
				module = tt.edit(module)
			}
			if tt.change != nil {
				tt.change(p)
			}
			switch err := judge(t, p, module, tt.more); {
			case tt.want == "" && err != nil:
				t.Errorf("judged: %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("judged: %v, want %q", err, tt.want)
			}
		})
	}
}

// without takes a module's statements away that begin with something.
func without(start string) func(string) string {
	return func(module string) string {
		var kept strings.Builder
		for line := range strings.Lines(module) {
			if !strings.HasPrefix(line, start) {
				kept.WriteString(line)
			}
		}
		return kept.String()
	}
}

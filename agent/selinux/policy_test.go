package selinux

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
)

func twoTenants() *Policy {
	return &Policy{
		Prefix: netip.MustParsePrefix("fe80::/64"), Manager: "opensm_t", Users: []Domain{"container_t"}, Kernel: "kernel_t",
		Partitions: []Partition{{0x8001, []Category{27, 10}}, {0x0012, []Category{1, 2}}},
		EndPorts:   []EndPort{{"mlx5_1", 1}, {"mlx5_0", 2}, {"mlx5_0", 1}},
	}
}

const twoTenantsCIL = `; Made by portcullis-agent selinux. Do not edit it: make it again.
(type portcullis_pkey_t)
(roletype object_r portcullis_pkey_t)
(type portcullis_default_pkey_t)
(roletype object_r portcullis_default_pkey_t)
(type portcullis_endport_t)
(roletype object_r portcullis_endport_t)
(typeattribute portcullis_kernel_agents)
(typeattributeset portcullis_kernel_agents (kernel_t))
(optional portcullis_loader_kmod_t (typeattributeset portcullis_kernel_agents (kmod_t)))
(optional portcullis_loader_systemd_modules_load_t (typeattributeset portcullis_kernel_agents (systemd_modules_load_t)))
(optional portcullis_loader_udev_t (typeattributeset portcullis_kernel_agents (udev_t)))
(typeattribute portcullis_users)
(typeattributeset portcullis_users (container_t))
(allow opensm_t portcullis_default_pkey_t (infiniband_pkey (access)))
(allow portcullis_kernel_agents portcullis_default_pkey_t (infiniband_pkey (access)))
(constrain (infiniband_pkey (access)) (or (or (neq t2 portcullis_default_pkey_t) (eq t1 opensm_t)) (eq t1 portcullis_kernel_agents)))
(allow portcullis_kernel_agents portcullis_pkey_t (infiniband_pkey (access)))
(allow portcullis_users portcullis_pkey_t (infiniband_pkey (access)))
(constrain (infiniband_pkey (access)) (or (or (neq t2 portcullis_pkey_t) (eq t1 portcullis_kernel_agents)) (eq t1 portcullis_users)))
(mlsconstrain (infiniband_pkey (access)) (or (or (dom h1 h2) (eq t1 portcullis_kernel_agents)) (neq t2 portcullis_pkey_t)))
(allow opensm_t portcullis_endport_t (infiniband_endport (manage_subnet)))
(allow portcullis_kernel_agents portcullis_endport_t (infiniband_endport (manage_subnet)))
(constrain (infiniband_endport (manage_subnet)) (or (or (neq t2 portcullis_endport_t) (eq t1 opensm_t)) (eq t1 portcullis_kernel_agents)))
(typeattribute portcullis_others)
(typeattributeset portcullis_others (not (or (opensm_t) (portcullis_kernel_agents))))
(neverallow portcullis_others portcullis_endport_t (infiniband_endport (manage_subnet)))
(ibpkeycon fe80:: 0x7fff (system_u object_r portcullis_default_pkey_t ((s0) (s0))))
(ibpkeycon fe80:: 0xffff (system_u object_r portcullis_default_pkey_t ((s0) (s0))))
(ibpkeycon fe80:: 0x0001 (system_u object_r portcullis_pkey_t ((s0 (c10 c27)) (s0 (c10 c27)))))
(ibpkeycon fe80:: 0x8001 (system_u object_r portcullis_pkey_t ((s0 (c10 c27)) (s0 (c10 c27)))))
(ibpkeycon fe80:: 0x0012 (system_u object_r portcullis_pkey_t ((s0 (c1 c2)) (s0 (c1 c2)))))
(ibpkeycon fe80:: 0x8012 (system_u object_r portcullis_pkey_t ((s0 (c1 c2)) (s0 (c1 c2)))))
(ibendportcon mlx5_0 1 (system_u object_r portcullis_endport_t ((s0) (s0))))
(ibendportcon mlx5_0 2 (system_u object_r portcullis_endport_t ((s0) (s0))))
(ibendportcon mlx5_1 1 (system_u object_r portcullis_endport_t ((s0) (s0))))
`

func TestCIL(t *testing.T) {
	p := twoTenants()
	got, err := p.CIL()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(twoTenantsCIL, got); d != "" {
		t.Errorf("module (-want +got):\n%s", d)
	}
	p.Partitions[0], p.Partitions[1] = p.Partitions[1], p.Partitions[0]
	p.EndPorts[0], p.EndPorts[2] = p.EndPorts[2], p.EndPorts[0]
	if again, err := p.CIL(); err != nil || again != got {
		t.Errorf("another order of the lists gives another module: %v\n%s", err, again)
	}
}

func TestManyPartitions(t *testing.T) {
	p := twoTenants()
	p.Partitions = nil
	for k := ib.PKey(1); k <= 1000; k++ {
		p.Partitions = append(p.Partitions, Partition{PKey: k})
	}
	text, err := p.CIL()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"0x0001", "0x8001", "0x03e8", "0x83e8"} {
		if n := strings.Count(text, "(ibpkeycon fe80:: "+k+" "); n != 1 {
			t.Errorf("%s is labelled %d times", k, n)
		}
	}
	if n := strings.Count(text, "ibpkeycon"); n != 2002 {
		t.Errorf("%d labels, want 2002", n)
	}
}

// TestRefused checks that each mistake that compilers accept and change is refused here.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		change     func(*Policy)
	}{
		{"a P_Key without a base", "base is 0", func(p *Policy) { p.Partitions[0].PKey = 0x8000 }},
		{"the default partition as a tenant's", "default partition", func(p *Policy) { p.Partitions[0].PKey = 0x7FFF }},
		{"two labels for one P_Key, in its two forms", "labelled twice", func(p *Policy) { p.Partitions[1].PKey = 0x0001 }},
		{"a prefix with lower bits", "lower 64 bits", func(p *Policy) { p.Prefix = netip.MustParsePrefix("fe80::1/64") }},
		{"a longer prefix", "upper 64 bits", func(p *Policy) { p.Prefix = netip.MustParsePrefix("fe80::/65") }},
		{"a prefix of IPv4", "upper 64 bits", func(p *Policy) { p.Prefix = netip.MustParsePrefix("10.0.0.0/8") }},
		{"no prefix", "upper 64 bits", func(p *Policy) { p.Prefix = netip.Prefix{} }},
		{"the zero prefix", "no fabric has it", func(p *Policy) { p.Prefix = netip.MustParsePrefix("::/64") }},
		{"port 0", "want 1 to 255", func(p *Policy) { p.EndPorts[0].Port = 0 }},
		{"a port twice", "labelled twice", func(p *Policy) { p.EndPorts[0] = p.EndPorts[1] }},
		{"a long device name", "device", func(p *Policy) { p.EndPorts[0].Device = strings.Repeat("m", 64) }},
		{"a device name that ends the statement", "device", func(p *Policy) { p.EndPorts[0].Device = "mlx5_0 1 (x))\n(allow a b" }},
		{"a domain that ends the statement", "managing domain", func(p *Policy) { p.Manager = "x)(allow a b (c (d)))" }},
		{"no domain of the kernel", "domain of the kernel", func(p *Policy) { p.Kernel = "" }},
		{"a user that is the kernel's", "reaches every partition", func(p *Policy) { p.Users = []Domain{"kernel_t"} }},
		{"a user that loads drivers", "reaches every partition", func(p *Policy) { p.Common = []Domain{"udev_t"} }},
		{"a loader that ends the statement", "domain that loads drivers", func(p *Policy) { p.Loaders = []Domain{"x) (a"} }},
		{"a user twice", "named twice", func(p *Policy) { p.Users = []Domain{"a_t", "a_t"} }},
		{"a category that no policy has", "want 0 to 1023", func(p *Policy) { p.Partitions[0].Categories = []Category{1024} }},
		{"a category twice", "named twice", func(p *Policy) { p.Partitions[0].Categories = []Category{1, 1} }},
		{"too many labels", "a policy holds", func(p *Policy) {
			p.Partitions = make([]Partition, maxEntries)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := twoTenants()
			tt.change(p)
			text, err := p.CIL()
			if err == nil || !strings.Contains(err.Error(), tt.want) || text != "" {
				t.Errorf("error %v, want one with %q; text of %d bytes", err, tt.want, len(text))
			}
		})
	}
	for version, fine := range map[int]bool{30: false, 31: true, 33: true} {
		if err := CheckVersion(version); (err == nil) != fine {
			t.Errorf("policy version %d: %v", version, err)
		}
	}
}

const intent = `
subnet_prefix: fe80:0:0:0::/64
manager: opensm_t
users: [container_t]
tenants: {blue: [10, 27], red: [1, 2]}
partitions:
- {p_key: 0x0012, tenant: red}
- {p_key: 0x0001, tenant: blue}
`

func TestIntent(t *testing.T) {
	in, err := ParseIntent("labels.yaml", []byte(intent))
	if err != nil {
		t.Fatal(err)
	}
	p, err := in.Policy([]TenantPartition{{0x8001, "blue"}}, twoTenants().EndPorts)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.CIL(); err != nil || got != twoTenantsCIL {
		t.Errorf("%v\n%s", err, cmp.Diff(twoTenantsCIL, got))
	}
}

func TestIntentRefused(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"an unknown field", "tenant: {}", "tenant"},
		{"a P_Key of 17 bits", "partitions: [{p_key: 0x10000, tenant: blue}]", "0x10000"},
		{"a negative category", "tenants: {blue: [-1]}", "-1"},
		{"two documents", "manager: a_t\n---\nmanager: b_t\n", "more than one document"},
		{"a tenant without categories", "partitions: [{p_key: 0x0001, tenant: blue}]", "no categories"},
		{"one P_Key of two tenants", "tenants: {blue: [1], red: [2]}\npartitions: [{p_key: 0x0001, tenant: blue}, {p_key: 0x8001, tenant: red}]", "belongs to tenant"},
		{"a tenant within another", "tenants: {blue: [1, 2], red: [1]}", "could use the partitions of that"},
		{"two tenants with the same categories", "tenants: {blue: [1, 2], red: [2, 1]}", "could use the partitions of that"},
		{"too long", "#" + strings.Repeat("x", maxIntent), "labels.yaml: more than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in, err := ParseIntent("labels.yaml", []byte(tt.text))
			if err == nil {
				_, err = in.Policy(nil, nil)
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func FuzzIntent(f *testing.F) {
	f.Add([]byte(intent))
	f.Add([]byte("tenants: {a: [0]}\npartitions: [{p_key: 0x7fff, tenant: a}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := ParseIntent("fuzz", data)
		if err != nil {
			return
		}
		p, err := in.Policy(nil, nil)
		if err != nil {
			return
		}
		text, err := p.CIL()
		if err != nil {
			t.Fatalf("a policy that was checked has no text: %v", err)
		}
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, ";") && strings.Count(line, "(") != strings.Count(line, ")") {
				t.Fatalf("%q does not close what it opens", line)
			}
		}
	})
}

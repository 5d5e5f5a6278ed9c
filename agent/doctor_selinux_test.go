package agent

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/agent/checklist"
	"portcullis/agent/selinux"
	"portcullis/packaging/testenv"
)

// labelled compiles a policy with a module that labels one port, without the statements
// that begin with something.
func labelled(t *testing.T, without string) string {
	t.Helper()
	p := selinux.Policy{
		Prefix: netip.MustParsePrefix("fe80::/64"), Kernel: "kernel_t", EndPorts: []selinux.EndPort{{Device: "mlx5_0", Port: 1}},
	}
	module, err := p.CIL()
	if err != nil {
		t.Fatal(err)
	}
	var kept strings.Builder
	for line := range strings.Lines(module) {
		if without == "" || !strings.HasPrefix(line, without) {
			kept.WriteString(line)
		}
	}
	dir := t.TempDir()
	text, policy := filepath.Join(dir, "module.cil"), filepath.Join(dir, "policy")
	if err := os.WriteFile(text, []byte(kept.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(testenv.Program(t, "secilc"), "-M", "true", "-c", "33", "-o", policy, "-f", os.DevNull, "selinux/testdata/base.cil", text).CombinedOutput()
	if err != nil {
		t.Fatalf("secilc: %v: %s", err, out)
	}
	b, err := os.ReadFile(policy)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestDoctorSELinux(t *testing.T) {
	t.Parallel()
	base, err := exec.Command(testenv.Program(t, "secilc"), "-M", "true", "-c", "33", "-o", "/dev/stdout", "-f", os.DevNull, "selinux/testdata/base.cil").Output()
	if err != nil {
		t.Fatalf("secilc: %v", err)
	}
	ours := labelled(t, "")
	const checks, none = "0 T security_ib_pkey_access\n", "0 T security_inode_create\n"
	for name, tt := range map[string]struct {
		files  map[string]string
		result checklist.Result
		says   []string
	}{
		"off": {nil, checklist.OK, []string{"SELinux is off"}},
		"no labels, and no checks": {
			map[string]string{"sys/fs/selinux/enforce": "1", "sys/fs/selinux/policy": string(base), "proc/kallsyms": none},
			checklist.OK,
			[]string{"no labels", "would enforce none"},
		},
		"no labels": {
			map[string]string{"sys/fs/selinux/enforce": "1", "sys/fs/selinux/policy": string(base), "proc/kallsyms": checks},
			checklist.OK,
			[]string{"no labels of portcullis-agent selinux"},
		},
		"enforced": {
			map[string]string{"sys/fs/selinux/enforce": "1", "sys/fs/selinux/policy": ours, "proc/kallsyms": checks},
			checklist.OK,
			[]string{"2 labels of P_Keys and 1 of ports, enforced by the kernel"},
		},
		"a kernel that looks at no label": {
			map[string]string{"sys/fs/selinux/enforce": "1", "sys/fs/selinux/policy": ours, "proc/kallsyms": none},
			checklist.Warning,
			[]string{"built without CONFIG_SECURITY_INFINIBAND", "linux-image-cloud-amd64"},
		},
		"a kernel of which nothing is known": {
			map[string]string{"sys/fs/selinux/enforce": "1", "sys/fs/selinux/policy": ours, "proc/sys/kernel/osrelease": "6.1"},
			checklist.Warning,
			[]string{"cannot find out whether the kernel checks them"},
		},
		"permissive": {
			map[string]string{"sys/fs/selinux/enforce": "0", "sys/fs/selinux/policy": ours, "proc/kallsyms": checks},
			checklist.Warning,
			[]string{"permissive and denies nothing", "setenforce 1"},
		},
		"as Debian delivers it": {
			map[string]string{"sys/fs/selinux/enforce": "1", "sys/fs/selinux/policy": ours, "proc/kallsyms": checks, "etc/selinux/semanage.conf": "expand-check=0\n"},
			checklist.Warning,
			[]string{"expand-check=0 in /etc/selinux/semanage.conf", "portcullis-agent selinux --check"},
		},
		"a module of before": {
			map[string]string{"sys/fs/selinux/enforce": "1", "sys/fs/selinux/policy": labelled(t, "(allow portcullis_kernel_agents portcullis_endport_t"), "proc/kallsyms": checks},
			checklist.Warning,
			[]string{"kernel_t may not manage the ports", "write the module again"},
		},
		"no policy": {
			map[string]string{"sys/fs/selinux/enforce": "1", "proc/kallsyms": checks},
			checklist.Warning,
			[]string{"cannot find out whether the policy labels partitions"},
		},
	} {
		root := t.TempDir()
		for file, text := range tt.files {
			file = filepath.Join(root, file)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		d := &doctor{config: &Config{Sysfs: filepath.Join(root, "sys"), Procfs: filepath.Join(root, "proc")}, root: root}
		d.selinux()
		got := d.checks[0]
		if len(d.checks) != 1 || got.Name != checkSELinux || got.Result != tt.result {
			t.Errorf("%s: %+v, want %s", name, d.checks, tt.result)
		}
		for _, part := range tt.says {
			if !strings.Contains(got.Detail+"; "+got.Hint, part) {
				t.Errorf("%s: %q, %q, want it to say %q", name, got.Detail, got.Hint, part)
			}
		}
	}
}

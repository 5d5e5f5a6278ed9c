//go:build vm

package vm

import (
	_ "embed"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/packaging/vm/disk"
	"portcullis/packaging/vm/inside/adapter"
	"portcullis/packaging/vm/machine"
)

//go:embed testdata/lab.cil
var labDomains string

// labels are the decisions of the machine's operator. The users include the domains that the reference policy has for
// containers and virtual machines.
const labels = `manager: lab_sm_t
users: [lab_tenant_t, container_t, svirt_t]
tenants:
  red: [1, 2]
  blue: [3, 4]
partitions:
- {p_key: 0x0012, tenant: red}
- {p_key: 0x0013, tenant: blue}
`

// otherLabels assigns other categories to red's partition.
const otherLabels = `manager: lab_sm_t
users: [lab_tenant_t, container_t, svirt_t]
tenants:
  red: [5, 6]
  blue: [3, 4]
partitions:
- {p_key: 0x0012, tenant: red}
- {p_key: 0x0013, tenant: blue}
`

// hostJSON is the host as the service has it: two adapters, whose ports have these GUIDs in the fabric.
const hostJSON = `{"id": "storage-1", "hcas": [
	{"ports": [{"guid": "0x0020000000000011"}]},
	{"ports": [{"guid": "0x0020000000000021"}]}
]}
`

// TestSELinux boots a machine that enforces Debian's reference policy and the module of portcullis-agent from the first moment.
func TestSELinux(t *testing.T) {
	lab(t, 130)
	s := newSuite(t, "./inside/selinux")
	seed, tests := s.seed(t, ".")
	root := systemRoot(t)
	policy, err := root.SELinux(disk.Unchecked, labModules(t, root, seed, labels)...)
	must(t, err)
	must(t, seed.File(adapter.Module, adapterModule(t)))
	seed.Data("/suite/other.yaml", otherLabels, 0o644)
	must(t, policy.Install(seed))
	machine.Run(t, machine.Spec{
		Name: "selinux", Kernel: debian(t).Image(), Initrd: initramfs(t), Memory: 2048, Append: "security=selinux enforcing=1",
		Drives: []machine.Drive{rootDrive(t), seedDrive(t, seed)},
	}, tests)
}

// TestSELinuxNeverallow installs the same modules with a semodule that checks neverallow rules. The lab's has a rule that ours forbids.
func TestSELinuxNeverallow(t *testing.T) {
	lab(t, 10)
	root := systemRoot(t)
	_, err := root.SELinux(disk.Checked, labModules(t, root, &disk.Seed{}, labels)...)
	if err == nil || !strings.Contains(err.Error(), "neverallow check failed") || !strings.Contains(err.Error(), "lab_rogue_t") {
		t.Errorf("semodule with expand-check=1: %v, want that it refuses the rule of lab_rogue_t", err)
	}
}

// labModules returns what the lab adds to Debian's policy; the module of the operator's labels is the last.
func labModules(t testing.TB, root disk.Root, seed *disk.Seed, labels string) []disk.Module {
	t.Helper()
	return []disk.Module{
		{Name: "container", Priority: 400, Text: cached(t, disk.ContainerModule)},
		{Name: "lab", Priority: 400, Text: labDomains},
		{Name: "portcullis", Priority: 300, Text: labelModule(t, root, seed, labels)},
	}
}

// labelModule returns the module that the agent of a root file system writes for labels, and puts it and its inputs into a
// seed. The kernel's files are those that the machine will have.
func labelModule(t testing.TB, root disk.Root, seed *disk.Seed, labels string) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		must(t, os.WriteFile(file, []byte(text), 0o644))
		seed.Data("/suite/"+name, text, 0o644)
		return file
	}
	bin := func(name string) string { return filepath.Join(root.Dir, "usr/bin", name) }
	tree := filepath.Join(dir, "tree")
	command(t, bin("portcullis-sim"), "sysfs", write("fabric.net", adapter.Netlist), "--hca", "sm", "--hca", "h1", "--out", tree)
	module := command(t, bin("portcullis-agent"), "selinux", "--sysfs", filepath.Join(tree, "sys"),
		"--host-file", write("host.json", hostJSON), "--labels", write("labels.yaml", labels))
	write("portcullis.cil", module)
	return module
}

// TestSELinuxKernels shows that Debian's kernel for all machines looks at no label, other than the one for clouds.
func TestSELinuxKernels(t *testing.T) {
	lab(t, 5)
	k := debian(t)
	release := strings.Replace(k.Release, "-cloud", "", 1)
	headers := debianPackage(t, "linux-headers-"+release)
	for file, want := range map[string]bool{
		k.Config(): true,
		filepath.Join(headers, "usr/src/linux-headers-"+release, ".config"): false,
	} {
		config, err := os.ReadFile(file)
		must(t, err)
		if got := strings.Contains(string(config), "\nCONFIG_SECURITY_INFINIBAND=y\n"); got != want {
			t.Errorf("%s has CONFIG_SECURITY_INFINIBAND: %v, want %v", file, got, want)
		}
		if !strings.Contains(string(config), "\nCONFIG_SECURITY_SELINUX=y\n") {
			t.Errorf("%s has no SELinux", file)
		}
	}
}

// systemRoot returns the root file system with our packages.
func systemRoot(t testing.TB) disk.Root {
	t.Helper()
	k, ours := debian(t), debs(t)
	return cached(t, func(cache string) (disk.Root, error) { return disk.BuildRoot(cache, k, ours) })
}

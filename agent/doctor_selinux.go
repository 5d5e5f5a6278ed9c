package agent

import (
	"fmt"
	"slices"
	"strings"

	"portcullis/agent/selinux"
	"portcullis/agent/selinux/live"
	"portcullis/agent/selinux/policydb"
)

// selinux looks whether labels of partitions do what they are there for. A host without
// labels needs none of it.
func (d *doctor) selinux() {
	system := live.System{Sysfs: d.config.Sysfs, Procfs: d.config.Procfs, Root: d.root}
	mode, err := system.Mode()
	switch {
	case err != nil:
		d.warn(checkSELinux, "", "cannot find out what SELinux does: %v", err)
		return
	case mode == live.Off:
		d.ok(checkSELinux, "SELinux is off; labels of partitions have no effect")
		return
	}
	policy, source, err := system.Policy()
	if err != nil {
		d.warn(checkSELinux, "run as root", "cannot find out whether the policy labels partitions: %s: %v", source, err)
		return
	}
	checks, kernel, err := system.Checks()
	if !policy.HasType(selinux.TypeEndPort) {
		switch {
		case err == nil && !checks:
			d.ok(checkSELinux, "the policy has no labels of portcullis-agent selinux, and this kernel would enforce none (%s)", kernel)
		default:
			d.ok(checkSELinux, "the policy has no labels of portcullis-agent selinux")
		}
		return
	}
	problems, hints := d.labels(system, mode, policy)
	switch {
	case err != nil:
		problems = append(problems, fmt.Sprintf("cannot find out whether the kernel checks them: %v", err))
		hints = append(hints, "run as root, or look for CONFIG_SECURITY_INFINIBAND in the kernel's configuration")
	case !checks:
		problems = append(problems, fmt.Sprintf("the kernel was built without CONFIG_SECURITY_INFINIBAND and checks no label (%s)", kernel))
		hints = append(hints, "boot a kernel that has it; on Debian linux-image-cloud-amd64 does, linux-image-amd64 does not")
	}
	if len(problems) > 0 {
		d.warn(checkSELinux, strings.Join(hints, "; "), "partitions have labels, but %s", strings.Join(problems, "; "))
		return
	}
	d.ok(checkSELinux, "%d labels of P_Keys and %d of ports, enforced by the kernel", len(policy.PKeys), len(policy.EndPorts))
}

// labels looks at a policy that has our labels.
func (d *doctor) labels(system live.System, mode live.Mode, policy *policydb.Policy) (problems, hints []string) {
	if mode == live.Permissive {
		problems = append(problems, "SELinux is permissive and denies nothing")
		hints = append(hints, "setenforce 1, and SELINUX=enforcing in /etc/selinux/config")
	}
	if kernel := selinux.DefaultIntent().Kernel; len(policy.EndPorts) > 0 && !slices.Contains(policy.Allowed(policydb.ClassEndPort, policydb.ManageSubnet, selinux.TypeEndPort), string(kernel)) {
		problems = append(problems, fmt.Sprintf("%s may not manage the ports, so the kernel opens none of them when the adapter appears", kernel))
		hints = append(hints, "write the module again with portcullis-agent selinux, and install it")
	}
	if checks, err := system.ChecksNeverallow(); err == nil && !checks {
		problems = append(problems, "semodule lets other modules add rules that ours forbids (expand-check=0 in /etc/selinux/semanage.conf)")
		hints = append(hints, "set expand-check=1, and run portcullis-agent selinux --check")
	}
	return problems, hints
}

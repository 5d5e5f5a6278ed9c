package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"portcullis/agent"
	"portcullis/agent/hca/sysfs"
	"portcullis/agent/selinux"
	"portcullis/agent/selinux/policydb"
	v1 "portcullis/api/v1"
	"portcullis/cmd/internal/input"
	"portcullis/fabricsm/ib"
)

// selinuxFlags are those of the command.
type selinuxFlags struct {
	host, labels, output, sysfs, policy string
	version                             int
	check                               bool
}

func (a *app) selinuxCommand() *cobra.Command {
	f := selinuxFlags{sysfs: a.settings.flags.Sysfs, policy: "/sys/fs/selinux/policy", version: 33}
	c := &cobra.Command{
		Use: "selinux", Short: "Write SELinux labels for this host's partitions and ports, as CIL", Args: noArguments,
		Long: `Write SELinux labels for this host's partitions and ports, as a module in CIL.

The service names the partitions ("portcullis host show HOST --json"). A file of the
site names the domains and categories that may use them. From the host itself come
only the names of its devices and its P_Key tables: each entry must have a label. See
/usr/share/doc/portcullis-agent/understand/selinux.md.

With --check no module is written. The policy that the kernel has loaded, or that of
--policy, is compared with the module: the labels, and which domains may use a
partition or send subnet management packets, whichever module allows it. semodule does
not compare this if semanage.conf says expand-check=0, as Debian's does.`,
		Example: "  portcullis-agent selinux --host-file host.json --labels labels.yaml --output portcullis.cil\n" +
			"  semodule -X 300 -i portcullis.cil\n" +
			"  portcullis-agent selinux --host-file host.json --labels labels.yaml --check",
	}
	c.Flags().StringVar(&f.host, "host-file", "", `output of "portcullis host show HOST --json"`)
	c.Flags().StringVar(&f.labels, "labels", "", "domains, categories of tenants and further partitions (YAML)")
	c.Flags().StringVar(&f.output, "output", "", "file to write the module to (default: standard output)")
	c.Flags().StringVar(&f.sysfs, "sysfs", f.sysfs, "where sysfs is mounted")
	c.Flags().IntVar(&f.version, "policy-version", f.version, "version of the policy that the module is for, at least 31")
	c.Flags().BoolVar(&f.check, "check", false, "compare a compiled policy with the module, which is not written")
	c.Flags().StringVar(&f.policy, "policy", f.policy, "the compiled policy that --check reads")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if f.check && f.output != "" {
			return misuse(cmd, "--check writes nothing: leave --output out")
		}
		policy, err := f.module(cmd)
		if err != nil {
			return err
		}
		if f.check {
			return f.judge(a, policy)
		}
		text, err := policy.CIL()
		if err != nil {
			return err
		}
		if f.output == "" {
			_, err = fmt.Fprint(a.stdout, text)
			return err
		}
		if err := renameio.WriteFile(f.output, []byte(text), 0o644); err != nil {
			return &agent.Error{Class: agent.ClassOther, Err: fmt.Errorf("write module: %w", err), Hint: "make room, or name another file with --output"}
		}
		return nil
	}
	return c
}

// judge compares the compiled policy with the module.
func (f *selinuxFlags) judge(a *app, want *selinux.Policy) error {
	data, err := input.ReadFile(f.policy, policydb.MaxSize)
	if err != nil {
		return &agent.Error{Class: agent.ClassOther, Err: fmt.Errorf("compiled policy: %w", err), Hint: "run as root on a host with SELinux, or name a compiled policy with --policy"}
	}
	got, err := policydb.Read(data)
	if err == nil {
		err = want.Judge(got)
	}
	if err != nil {
		return &agent.Error{Class: agent.ClassOther, Err: fmt.Errorf("policy %s: %w", f.policy, err), Hint: "install the module that this command writes, and remove what other modules allow; semodule -lfull lists modules"}
	}
	_, err = fmt.Fprintf(a.stdout, "%s matches the module: %d partitions, %d end ports\n", f.policy, len(want.Partitions), len(want.EndPorts))
	return err
}

// module makes what the module is to say.
func (f *selinuxFlags) module(cmd *cobra.Command) (*selinux.Policy, error) {
	if f.host == "" {
		return nil, misuse(cmd, "--host-file is missing: use the output of portcullis host show HOST --json")
	}
	if err := selinux.CheckVersion(f.version); err != nil {
		return nil, misuse(cmd, "%w", err)
	}
	intent, err := f.intent()
	if err != nil {
		return nil, misuse(cmd, "%w", err)
	}
	host, err := readHost(f.host)
	if err != nil {
		return nil, misuse(cmd, "%w", err)
	}
	ports, tables, err := f.ports(host)
	if err != nil {
		return nil, &agent.Error{Class: agent.ClassHCA, Err: err}
	}
	var own []selinux.TenantPartition
	if host.Status.PKey != 0 {
		own = append(own, selinux.TenantPartition{PKey: host.Status.PKey, Tenant: host.Tenant})
	}
	policy, err := intent.Policy(own, ports)
	if err != nil {
		return nil, misuse(cmd, "%w", err)
	}
	if err := policy.CheckTables(tables); err != nil {
		return nil, &agent.Error{Class: agent.ClassHCA, Err: err, Hint: "name the partition under partitions in the file of --labels, or find out why the port has it"}
	}
	return policy, nil
}

func (f *selinuxFlags) intent() (*selinux.Intent, error) {
	if f.labels == "" {
		return selinux.DefaultIntent(), nil
	}
	data, err := input.ReadFile(f.labels, input.Large)
	if err != nil {
		return nil, fmt.Errorf("labels: %w", err)
	}
	return selinux.ParseIntent(f.labels, data)
}

func readHost(name string) (*v1.Host, error) {
	data, err := input.ReadFile(name, input.Large)
	if err != nil {
		return nil, fmt.Errorf("host file: %w", err)
	}
	var h v1.Host
	if err := json.Unmarshal(data, &h); err != nil {
		return nil, fmt.Errorf("host file %s: %w", name, err)
	}
	if h.ID == "" || len(h.HCAs) == 0 {
		return nil, fmt.Errorf("host file %s: no host with adapters is in it: want the output of \"portcullis host show HOST --json\"", name)
	}
	return &h, nil
}

// ports finds the devices that have the GUIDs of the host's ports, and the content of their P_Key tables.
func (f *selinuxFlags) ports(h *v1.Host) ([]selinux.EndPort, map[selinux.EndPort][]ib.PKey, error) {
	tree, err := sysfs.Open(f.sysfs)
	if err != nil {
		return nil, nil, err
	}
	defer tree.Close()
	devices, err := tree.RDMADevices()
	if err = errors.Join(append(tree.Problems(), err)...); err != nil {
		return nil, nil, err
	}
	at := map[ib.GUID]selinux.EndPort{}
	tables := map[selinux.EndPort][]ib.PKey{}
	for _, d := range devices {
		for _, p := range d.Ports {
			if p.LinkLayer != sysfs.LinkInfiniBand {
				continue
			}
			e := selinux.EndPort{Device: d.Name, Port: p.Num}
			at[p.GUID], tables[e] = e, p.PKeys
		}
	}
	var ports []selinux.EndPort
	var missing []error
	for _, a := range h.HCAs {
		for _, p := range a.Ports {
			e, ok := at[p.GUID]
			if !ok {
				missing = append(missing, fmt.Errorf("no device of this host has the port GUID %v, which host %q has in inventory", p.GUID, h.ID))
				continue
			}
			ports = append(ports, e)
		}
	}
	return ports, tables, errors.Join(missing...)
}

package selinux

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"

	"portcullis/fabricsm/ib"
)

// Policy is what a module says.
type Policy struct {
	Prefix     netip.Prefix // of the subnet, 64 bits, for example fe80::/64
	Partitions []Partition
	EndPorts   []EndPort
	// Manager is the one domain that may send subnet management packets. With "" no domain may.
	Manager Domain
	// Users may use the partitions whose categories they have. nil stands for those of
	// DefaultUsers that the policy has.
	Users []Domain
	// Kernel is the domain of the kernel itself. Its agents (subnet management of the
	// adapter, CM, SA, IPoIB) need the end ports and every partition.
	Kernel Domain
	// Loaders are the other domains whose programs load adapters' drivers: agents that
	// a driver registers meanwhile have their label, and need the same. Such a program
	// puts code into the kernel, so it gains nothing by it. nil stands for those of
	// DefaultLoaders that the policy has.
	Loaders []Domain
	// Common may use the default partition too: domains that query subnet administration themselves. Kernel and Manager
	// always may.
	Common []Domain
}

// Partition is a P_Key and whose it is.
type Partition struct {
	PKey ib.PKey // either membership: both forms are labelled
	// Categories are those of the tenant's processes, for example 10 and 27 of
	// s0:c10,c27. None: every user domain.
	Categories []Category
}

// EndPort is a port of an adapter by the names that the kernel uses.
type EndPort struct {
	Device string // for example mlx5_0
	Port   ib.PortNum
}

// Category is one of an MCS or MLS policy: 0 to 1023.
type Category uint16

func (c Category) String() string { return fmt.Sprintf("c%d", uint16(c)) }

// Domain is the type of processes, for example opensm_t.
type Domain string

// DefaultLoaders returns the domains of the programs that load drivers in the
// reference policies of Debian, Fedora and Red Hat: udev, modprobe (also when the
// kernel starts it) and systemd-modules-load.
func DefaultLoaders() []Domain { return []Domain{"kmod_t", "systemd_modules_load_t", "udev_t"} }

// DefaultUsers returns the domains of containers in the reference policies of Fedora
// and Red Hat, and of upstream. Debian's does not have them.
func DefaultUsers() []Domain { return []Domain{"container_t"} }

// Bounds of the content of a policy.
const (
	MaxCategory = 1023
	maxEndPort  = 255
	// maxEntries is how many labels a policy may have: P_Keys, each in two forms.
	maxEntries = 65535
)

var (
	domainName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)
	deviceName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)
)

// MinVersion is the first policy version with labels for InfiniBand. For an older one the compilers omit all of them
// without a message.
const MinVersion = 31

// CheckVersion refuses a policy version that cannot hold labels.
func CheckVersion(version int) error {
	if version < MinVersion {
		return fmt.Errorf("policy version %d: labels for InfiniBand begin with version %d; an older compiler drops them silently", version, MinVersion)
	}
	return nil
}

// Check refuses what the compilers would take and change. All problems are given.
func (p *Policy) Check() error {
	errs := []error{p.checkPrefix(), p.checkDomains(), p.checkPartitions(), p.checkEndPorts()}
	return errors.Join(errs...)
}

func (p *Policy) checkPrefix() error {
	a := p.Prefix.Addr()
	switch {
	case !a.IsValid() || !a.Is6() || a.Is4In6() || a.Zone() != "" || p.Prefix.Bits() != 64:
		return fmt.Errorf("subnet prefix %v: want the upper 64 bits of an IPv6 address, for example fe80::/64", p.Prefix)
	case p.Prefix.Masked() != p.Prefix:
		return fmt.Errorf("subnet prefix %v: its lower 64 bits are not 0, and the compiler would drop them", p.Prefix)
	case a.IsUnspecified():
		return errors.New("subnet prefix ::/64: no fabric has it")
	}
	return nil
}

func (p *Policy) checkDomains() error {
	var errs []error
	check := func(what string, d Domain) {
		if !domainName.MatchString(string(d)) {
			errs = append(errs, fmt.Errorf("%s %q: want the type of a domain, lower-case letters, digits and _, for example opensm_t", what, clip(string(d))))
		}
	}
	if p.Manager != "" {
		check("managing domain", p.Manager)
	}
	check("domain of the kernel", p.Kernel)
	for _, list := range []struct {
		what    string
		domains []Domain
	}{{"user domain", p.Users}, {"domain of the default partition", p.Common}, {"domain that loads drivers", p.Loaders}} {
		for i, d := range list.domains {
			check(list.what, d)
			if slices.Contains(list.domains[:i], d) {
				errs = append(errs, fmt.Errorf("%s %q is named twice", list.what, clip(string(d))))
			}
		}
	}
	agents := p.Loaders
	if agents == nil {
		agents = DefaultLoaders()
	}
	agents = append(slices.Clone(agents), p.Kernel)
	for _, d := range slices.Concat(p.Users, p.Common) {
		if slices.Contains(agents, d) {
			errs = append(errs, fmt.Errorf("domain %q loads drivers or is the kernel's, and so reaches every partition: it cannot be a user's", clip(string(d))))
		}
	}
	return errors.Join(errs...)
}

func (p *Policy) checkPartitions() error {
	var errs []error
	seen := make(map[ib.PKey]bool)
	for _, part := range p.Partitions {
		base := part.PKey.Base()
		switch {
		case base == 0:
			errs = append(errs, fmt.Errorf("P_Key %v: its base is 0, which is no partition", part.PKey))
		case base == ib.DefaultPKeyFull.Base():
			errs = append(errs, fmt.Errorf("P_Key %v is the default partition, which has a label of its own", part.PKey))
		case seen[base]:
			errs = append(errs, fmt.Errorf("P_Key %v is labelled twice, and the compiler would drop the second label silently", part.PKey))
		}
		seen[base] = true
		for i, c := range part.Categories {
			if c > MaxCategory {
				errs = append(errs, fmt.Errorf("P_Key %v: category %d, want 0 to %d", part.PKey, uint16(c), MaxCategory))
			}
			if slices.Contains(part.Categories[:i], c) {
				errs = append(errs, fmt.Errorf("P_Key %v: category %v is named twice", part.PKey, c))
			}
		}
	}
	if n := 2 * (len(p.Partitions) + 1); n > maxEntries {
		errs = append(errs, fmt.Errorf("%d labels, a policy holds %d", n, maxEntries))
	}
	return errors.Join(errs...)
}

func (p *Policy) checkEndPorts() error {
	var errs []error
	seen := make(map[EndPort]bool)
	for _, e := range p.EndPorts {
		switch {
		case !deviceName.MatchString(e.Device):
			errs = append(errs, fmt.Errorf("device %q: want a name as in /sys/class/infiniband, at most 63 lower-case letters, digits and _", clip(e.Device)))
		case e.Port == 0 || int(e.Port) > maxEndPort:
			errs = append(errs, fmt.Errorf("port %d of device %s: want 1 to %d; the kernel refuses the whole policy otherwise", e.Port, e.Device, maxEndPort))
		case seen[e]:
			errs = append(errs, fmt.Errorf("port %d of device %s is labelled twice", e.Port, e.Device))
		}
		seen[e] = true
	}
	return errors.Join(errs...)
}

// ordered returns partitions by P_Key and end ports by name, so that one policy has one text.
func (p *Policy) ordered() ([]Partition, []EndPort) {
	parts, ports := slices.Clone(p.Partitions), slices.Clone(p.EndPorts)
	slices.SortFunc(parts, func(a, b Partition) int { return cmp.Compare(a.PKey.Base(), b.PKey.Base()) })
	slices.SortFunc(ports, func(a, b EndPort) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Port, b.Port))
	})
	return parts, ports
}

func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}

// joined joins errors in an order that does not depend on that of a map.
func joined(errs []error) error {
	slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

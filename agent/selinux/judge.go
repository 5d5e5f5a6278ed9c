package selinux

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"portcullis/agent/selinux/policydb"
	"portcullis/fabricsm/ib"
)

// Judge compares a compiled policy with the intended module: the labels, which domains may use a partition or manage the
// subnet, whatever module allows it, and that categories count. It returns every difference. Compilers drop labels and
// ignore neverallow rules without an error, and modules of others can add rules.
func (p *Policy) Judge(c *policydb.Policy) error {
	if err := p.Check(); err != nil {
		return err
	}
	if !c.HasType(TypeEndPort) {
		return fmt.Errorf("the policy has no type %s: the module is not in it", TypeEndPort)
	}
	return errors.Join(p.judgePKeys(c), p.judgeEndPorts(c), p.judgeDomains(c), p.judgeCategories(c))
}

// labelText names a label for comparison and for people.
func labelText(object string, categories []string) string {
	if len(categories) == 0 {
		return object + ":s0"
	}
	return object + ":s0:" + strings.Join(categories, ",")
}

func names(categories []Category) []string {
	categories = slices.Clone(categories)
	slices.Sort(categories)
	var list []string
	for _, c := range categories {
		list = append(list, c.String())
	}
	return list
}

func (p *Policy) judgePKeys(c *policydb.Policy) error {
	want := map[uint32]string{}
	label := func(k ib.PKey, text string) {
		want[uint32(k.Limited())], want[uint32(k.Full())] = text, text
	}
	label(ib.DefaultPKeyFull, labelText(TypeDefault, nil))
	for _, part := range p.Partitions {
		label(part.PKey, labelText(TypePKey, names(part.Categories)))
	}
	got := map[uint32]string{}
	var errs []error
	for _, l := range c.PKeys {
		text := labelText(l.Type, l.Categories)
		switch {
		case l.Prefix != p.Prefix:
			if l.Type == TypePKey || l.Type == TypeDefault {
				errs = append(errs, fmt.Errorf("P_Keys 0x%04x to 0x%04x of subnet prefix %v have the label %s, but the fabric's prefix is %v", l.Low, l.High, l.Prefix, text, p.Prefix))
			}
		case l.Low != l.High:
			errs = append(errs, fmt.Errorf("P_Keys 0x%04x to 0x%04x have one label, %s: the module labels each P_Key separately", l.Low, l.High, text))
		case want[l.Low] == "":
			errs = append(errs, fmt.Errorf("P_Key 0x%04x has the label %s, want none", l.Low, text))
		case got[l.Low] == "": // the kernel takes the first
			got[l.Low] = text
		}
	}
	for k, text := range want {
		if got[k] != text {
			errs = append(errs, fmt.Errorf("P_Key 0x%04x has the label %q, want %q", k, got[k], text))
		}
	}
	return joined(errs)
}

func (p *Policy) judgeEndPorts(c *policydb.Policy) error {
	type port struct {
		device string
		number uint32
	}
	got := map[port]string{}
	for _, l := range c.EndPorts {
		if at := (port{l.Device, l.Port}); got[at] == "" {
			got[at] = labelText(l.Type, l.Categories)
		}
	}
	want := labelText(TypeEndPort, nil)
	var errs []error
	for _, e := range p.EndPorts {
		if text := got[port{e.Device, uint32(e.Port)}]; text != want {
			errs = append(errs, fmt.Errorf("port %d of device %s has the label %q, want %q", e.Port, e.Device, text, want))
		}
	}
	return joined(errs)
}

// kernelAgents returns the domains of the kernel's agents that a policy has.
func (p *Policy) kernelAgents(c *policydb.Policy) []Domain {
	list := []Domain{p.Kernel}
	if p.Loaders != nil {
		return append(list, p.Loaders...)
	}
	for _, d := range DefaultLoaders() {
		if c.HasType(string(d)) {
			list = append(list, d)
		}
	}
	return list
}

// users returns the domains that may use partitions and that a policy has.
func (p *Policy) users(c *policydb.Policy) []Domain {
	if p.Users != nil {
		return p.Users
	}
	return slices.DeleteFunc(DefaultUsers(), func(d Domain) bool { return !c.HasType(string(d)) })
}

// judgeDomains wants each permission with the domains that are to have it, and with no
// other.
func (p *Policy) judgeDomains(c *policydb.Policy) error {
	agents := p.kernelAgents(c)
	always := slices.Clone(agents)
	if p.Manager != "" {
		always = append(always, p.Manager)
	}
	var errs []error
	if p.Users == nil && len(p.users(c)) == 0 {
		errs = append(errs, fmt.Errorf("no domain may use partitions of tenants: the policy has none of %v; name domains under users", DefaultUsers()))
	}
	for _, may := range []struct {
		class, permission, object, what string
		want                            []Domain
	}{
		{policydb.ClassEndPort, policydb.ManageSubnet, TypeEndPort, "send subnet management packets", always},
		{policydb.ClassPKey, policydb.Access, TypePKey, "use partitions of tenants", slices.Concat(agents, p.users(c))},
		{policydb.ClassPKey, policydb.Access, TypeDefault, "use the default partition", slices.Concat(always, p.Common)},
	} {
		got := c.Allowed(may.class, may.permission, may.object)
		for _, d := range sorted(may.want) {
			switch {
			case !slices.Contains(got, string(d)):
				errs = append(errs, fmt.Errorf("domain %s may not %s, but must be able to", d, may.what))
			case slices.Contains(agents, d):
			case c.Permissive(string(d)):
				errs = append(errs, fmt.Errorf("domain %s is permissive: nothing is denied to it", d))
			}
		}
		for _, d := range got {
			if !slices.Contains(may.want, Domain(d)) {
				denied, err := c.Constrained(may.class, may.permission, d, may.object, nil, nil)
				errs = append(errs, foreign(d, may.what, may.class, denied))
				if err != nil {
					errs = append(errs, err)
				}
			}
		}
		if err := judgeOthers(c, may.class, may.permission, may.object, may.what, may.want); err != nil {
			errs = append(errs, err)
		}
	}
	return joined(errs)
}

// foreign is the error of a rule of another module, which the constraint denies or not.
func foreign(domain, what, class string, denied bool) error {
	all := ""
	if denied {
		all = ", though a constraint denies it"
	}
	return fmt.Errorf("a rule of another module lets domain %s %s%s: find it with \"sesearch -A -s %s -c %s\"", domain, what, all, domain, class)
}

// judgeOthers tries the constraint that keeps a permission from all domains but those
// that are to have it, whatever rules there are.
func judgeOthers(c *policydb.Policy, class, permission, object, what string, want []Domain) error {
	for _, d := range c.Types() {
		if slices.Contains(want, Domain(d)) {
			continue
		}
		denied, err := c.Constrained(class, permission, d, object, nil, nil)
		if err != nil {
			return err
		}
		if !denied {
			return fmt.Errorf("no constraint stops %s and other types when a rule allows them to %s; write the module again and install it", d, what)
		}
	}
	return nil
}

// judgeCategories tries the constraint: a process that lacks one category of a
// partition must not use it, one with all must, and the kernel's agents always.
func (p *Policy) judgeCategories(c *policydb.Policy) error {
	var errs []error
	try := func(d Domain, part Partition, process []string, denied bool) {
		got, err := c.Constrained(policydb.ClassPKey, policydb.Access, string(d), TypePKey, process, names(part.Categories))
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("P_Key %v: %w", part.PKey, err))
		case got != denied:
			errs = append(errs, fmt.Errorf("P_Key %v: a process of domain %s with the categories %q is %s it by the constraints, and must be %s", part.PKey, d, process, state(got), state(denied)))
		}
	}
	for _, part := range p.Partitions {
		all := names(part.Categories)
		for _, d := range p.users(c) {
			try(d, part, all, false)
			for i := range all {
				try(d, part, slices.Delete(slices.Clone(all), i, i+1), true)
			}
		}
		for _, d := range p.kernelAgents(c) {
			try(d, part, nil, false)
		}
	}
	return joined(errs)
}

func state(denied bool) string {
	if denied {
		return "denied"
	}
	return "allowed"
}

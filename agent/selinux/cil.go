package selinux

import (
	"fmt"
	"slices"
	"strings"

	"portcullis/fabricsm/ib"
)

// Types of the module. None has the attributes that reference policies assign to such types: with those, every unconfined
// domain would reach every partition.
const (
	TypePKey    = "portcullis_pkey_t"         // P_Keys of tenants
	TypeDefault = "portcullis_default_pkey_t" // the default partition
	TypeEndPort = "portcullis_endport_t"
)

// CIL returns the module's text. Equal policies have equal texts, whatever the order of their lists.
func (p *Policy) CIL() (string, error) {
	if err := p.Check(); err != nil {
		return "", err
	}
	w := &writer{prefix: p.Prefix.Addr().String()}
	w.line("; Made by portcullis-agent selinux. Do not edit it: make it again.")
	for _, t := range []string{TypePKey, TypeDefault, TypeEndPort} {
		w.line("(type %s)", t)
		w.line("(roletype object_r %s)", t)
	}
	p.rules(w)
	parts, ports := p.ordered()
	w.pkey(ib.DefaultPKeyFull, TypeDefault, nil)
	for _, part := range parts {
		w.pkey(part.PKey, TypePKey, part.Categories)
	}
	for _, e := range ports {
		w.line("(ibendportcon %s %d %s)", e.Device, e.Port, contextOf(TypeEndPort, nil))
	}
	return w.String(), nil
}

// Attributes of the module.
const (
	// attrKernel are the domains that the kernel's own agents run under: that of the
	// kernel, and those that load drivers.
	attrKernel = "portcullis_kernel_agents"
	attrUsers  = "portcullis_users"  // of partitions
	attrOthers = "portcullis_others" // every type but the manager and attrKernel
)

// agents names the domains of the kernel's own agents. An agent has the label of the
// task that registered it, and that is the one in which the adapter's driver found
// the adapter: a thread of the kernel, or a program that loads modules.
func (p *Policy) agents(w *writer) {
	w.line("(typeattribute %s)", attrKernel)
	w.line("(typeattributeset %s (%s))", attrKernel, p.Kernel)
	w.members(attrKernel, "loader", p.Loaders, DefaultLoaders())
}

// members puts domains into an attribute. For none named, those of usual are taken that the policy has.
func (w *writer) members(attribute, what string, named, usual []Domain) {
	if named == nil {
		for _, d := range usual {
			// A policy that has no such type goes without this block.
			w.line("(optional portcullis_%s_%s (typeattributeset %s (%s)))", what, d, attribute, d)
		}
		return
	}
	for _, d := range sorted(named) {
		w.line("(typeattributeset %s (%s))", attribute, d)
	}
}

// rules writes the permissions of each domain.
func (p *Policy) rules(w *writer) {
	p.agents(w)
	w.line("(typeattribute %s)", attrUsers)
	w.members(attrUsers, "user", p.Users, DefaultUsers())
	always := []Domain{attrKernel}
	if p.Manager != "" {
		always = append(always, p.Manager)
	}
	w.only("infiniband_pkey", "access", TypeDefault, append(slices.Clone(always), p.Common...))
	w.only("infiniband_pkey", "access", TypePKey, []Domain{attrKernel, attrUsers})
	// A process has to have every category of a P_Key. No reference policy says so
	// for this class: without it categories would mean nothing here.
	w.line("(mlsconstrain (infiniband_pkey (access)) (or (or (dom h1 h2) (eq t1 %s)) (neq t2 %s)))", attrKernel, TypePKey)
	// The kernel's agent for QP0 answers the requests of the Subnet Manager to this adapter. Without it the kernel opens no
	// management port for any process.
	w.only("infiniband_endport", "manage_subnet", TypeEndPort, always)
	others := fmt.Sprintf("(not (%s))", attrKernel)
	if p.Manager != "" {
		others = fmt.Sprintf("(not (or (%s) (%s)))", p.Manager, attrKernel)
	}
	// A rule for another domain is refused, by a compiler that checks neverallow rules.
	w.line("(typeattribute %s)", attrOthers)
	w.line("(typeattributeset %s %s)", attrOthers, others)
	w.line("(neverallow %s %s (infiniband_endport (manage_subnet)))", attrOthers, TypeEndPort)
}

// only grants a permission on a type to domains or attributes, and denies it to all others. A constraint applies in
// addition to all rules, and no rule of another module lifts it.
func (w *writer) only(class, permission, object string, domains []Domain) {
	domains = sorted(domains)
	condition := fmt.Sprintf("(neq t2 %s)", object)
	for _, d := range domains {
		w.line("(allow %s %s (%s (%s)))", d, object, class, permission)
		// Nested to the left: the kernel evaluates expressions of small depth alone.
		condition = fmt.Sprintf("(or %s (eq t1 %s))", condition, d)
	}
	w.line("(constrain (%s (%s)) %s)", class, permission, condition)
}

func sorted(list []Domain) []Domain {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

type writer struct {
	strings.Builder
	prefix string
}

func (w *writer) line(format string, args ...any) {
	fmt.Fprintf(&w.Builder, format, args...)
	w.WriteByte('\n')
}

// pkey labels both forms of a P_Key: the kernel looks up the value as it is in the port's table, including membership.
func (w *writer) pkey(k ib.PKey, object string, categories []Category) {
	for _, form := range []ib.PKey{k.Limited(), k.Full()} {
		w.line("(ibpkeycon %s 0x%04x %s)", w.prefix, uint16(form), contextOf(object, categories))
	}
}

func contextOf(object string, categories []Category) string {
	level := "(s0)"
	if len(categories) > 0 {
		sorted := slices.Clone(categories)
		slices.Sort(sorted)
		var names []string
		for _, c := range sorted {
			names = append(names, c.String())
		}
		level = "(s0 (" + strings.Join(names, " ") + "))"
	}
	return fmt.Sprintf("(system_u object_r %s (%s %s))", object, level, level)
}

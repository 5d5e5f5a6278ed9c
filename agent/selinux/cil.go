package selinux

import (
	"fmt"
	"slices"
	"strings"

	"portcullis/fabricsm/ib"
)

// Types of the module. None has the attributes that reference policies give to
// such types: with those, every unconfined domain would reach every partition.
const (
	TypePKey    = "portcullis_pkey_t"         // P_Keys of tenants
	TypeDefault = "portcullis_default_pkey_t" // the default partition
	TypeEndPort = "portcullis_endport_t"
)

// CIL gives the module's text. Equal policies have equal texts, whatever the
// order of their lists.
func (p *Policy) CIL() (string, error) {
	if err := p.Check(); err != nil {
		return "", err
	}
	w := &writer{prefix: p.Prefix.Addr().String()}
	w.line("; Made by portcullis-agent selinux. Make it anew instead of editing it.")
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

// rules says who may what.
func (p *Policy) rules(w *writer) {
	access := func(list []Domain, object string) {
		list = slices.Clone(list)
		slices.Sort(list)
		for _, d := range slices.Compact(list) {
			w.line("(allow %s %s (infiniband_pkey (access)))", d, object)
		}
	}
	always := []Domain{p.Kernel}
	if p.Manager != "" {
		always = append(always, p.Manager)
	}
	access(append(slices.Clone(always), p.Common...), TypeDefault)
	access(append(slices.Clone(p.Users), p.Kernel), TypePKey)
	// A process has to have every category of a P_Key. No reference policy says so
	// for this class: without it categories would mean nothing here.
	w.line("(mlsconstrain (infiniband_pkey (access)) (or (or (dom h1 h2) (eq t1 %s)) (neq t2 %s)))", p.Kernel, TypePKey)
	if p.Manager == "" {
		w.line("(neverallow domain_of_portcullis %s (infiniband_endport (manage_subnet)))", TypeEndPort)
		w.line("(typeattribute domain_of_portcullis)")
		w.line("(typeattributeset domain_of_portcullis (all))")
		return
	}
	w.line("(allow %s %s (infiniband_endport (manage_subnet)))", p.Manager, TypeEndPort)
	// Whoever adds a rule for another domain gets no policy.
	w.line("(typeattribute not_manager_of_portcullis)")
	w.line("(typeattributeset not_manager_of_portcullis (not (%s)))", p.Manager)
	w.line("(neverallow not_manager_of_portcullis %s (infiniband_endport (manage_subnet)))", TypeEndPort)
}

type writer struct {
	strings.Builder
	prefix string
}

func (w *writer) line(format string, args ...any) {
	fmt.Fprintf(&w.Builder, format, args...)
	w.WriteByte('\n')
}

// pkey labels both forms of a P_Key: what the kernel looks up is the value as it
// stands in the port's table, membership and all.
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

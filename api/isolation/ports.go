package isolation

import (
	"fmt"
	"slices"
	"strings"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/proof/reader"
)

// unnamed is why a port is not proven where no value of its own is to blame.
const unnamed = "a packet depends on a value of another device that was not read, or on how switches compare membership, which no attribute shows"

// Ports returns what is proven of each declared port of a host that is a party, sorted by [PortKey]: of tenants, and of hosts
// without one. A port that was not found, or whose packets depend on what was not read, is unproven.
//
// The caller must not change the list, which other callers get as well.
func (p *Proven) Ports() []v1.IsolationPortVerdict {
	p.kept.mu.Lock()
	defer p.kept.mu.Unlock()
	if p.kept.ports == nil {
		p.kept.ports, p.kept.rows = p.allPorts()
	}
	return p.kept.ports
}

// unread returns the first value of each port that was not read, and on which a packet may depend.
func (p *Proven) unread() map[proof.Place]*reader.Unknown {
	out := map[proof.Place]*reader.Unknown{}
	for i := range p.found.Unknown {
		u := &p.found.Unknown[i]
		if _, known := out[u.Port]; !known && u.Matters() {
			out[u.Port] = u
		}
	}
	return out
}

// unread lists the values that were not read: those on which a packet may depend, or the others.
func (r *reporter) unread(matters bool) {
	for i := range r.found.Unknown {
		u := &r.found.Unknown[i]
		if u.Matters() != matters {
			continue
		}
		if len(r.out.Unread) == maxRows {
			return
		}
		r.out.Unread = append(r.out.Unread, v1.UnreadValue{What: u.What, Where: r.of.where(u.Where), Cause: u.Cause.String()})
	}
}

// allPorts returns all rows, and which rows are of a port that was found.
func (p *Proven) allPorts() ([]v1.IsolationPortVerdict, map[proof.Place][]int) {
	there, unread := p.there, p.unread()
	type keyed struct {
		key string
		row v1.IsolationPortVerdict
		at  proof.Place
	}
	rows := make([]keyed, 0, len(p.in.ends))
	for i := range p.in.ends {
		e := &p.in.ends[i]
		if e.owner.Kind != proof.Tenant {
			continue
		}
		row := v1.IsolationPortVerdict{Host: e.host, GUID: e.port, Place: e.place}
		row.Tenant = tenantOf(e)
		at, ok := there.find(e)
		if ok {
			p.judge(&row, at, unread)
		} else {
			row.Verdict, row.Cause, row.Detail = v1.Unproven, v1.PortNotFound, there.why(e)
		}
		rows = append(rows, keyed{PortKey(&row), row, at})
	}
	slices.SortFunc(rows, func(a, b keyed) int { return strings.Compare(a.key, b.key) })
	out, found := make([]v1.IsolationPortVerdict, len(rows)), make(map[proof.Place][]int, len(rows))
	for i := range rows {
		out[i] = rows[i].row
		if at := rows[i].at; at != (proof.Place{}) {
			found[at] = append(found[at], i)
		}
	}
	return out, found
}

// tenantOf returns the tenant of a declared port; empty: it is of none.
func tenantOf(e *end) string {
	if e.owner.Kind != proof.Tenant || e.owner.Name == NoTenant {
		return ""
	}
	return e.owner.Name
}

// PortKey names a port in the list of Ports.
func PortKey(p *v1.IsolationPortVerdict) string {
	return fmt.Sprintf("%s/%v/%v", p.Host, p.GUID, p.Place)
}

// judge fills in what is proven of a port that was found.
func (p *Proven) judge(row *v1.IsolationPortVerdict, at proof.Place, unread map[proof.Place]*reader.Unknown) {
	*row = v1.IsolationPortVerdict{Host: row.Host, GUID: row.GUID, Place: row.Place, Tenant: row.Tenant}
	v := p.result.Port(at)
	switch v.Verdict[proof.Both] {
	case proof.Isolated:
		row.Verdict, row.Held = v1.Isolated, heldBy(v.Depth())
		return
	case proof.Leaks:
		row.Verdict = v1.Leaks
	default:
		row.Verdict, row.Cause, row.Detail = v1.Unproven, v1.PortNotRead, p.blame(at, unread)
	}
	switch {
	case v.Sends && v.Receives:
		row.End, row.Other = v1.EndBoth, nameOf(v.Other)
	case v.Sends:
		row.End, row.Other = v1.EndSends, nameOf(v.Other)
	case v.Receives:
		row.End, row.Other = v1.EndReceives, nameOf(v.Other)
	}
}

// blame names the value that was not read of a port, of the switch port in front of it, or of their devices.
func (p *Proven) blame(at proof.Place, unread map[proof.Place]*reader.Unknown) string {
	front := p.found.Fabric.Devices[at.Device].Ports[at.Port].Cable
	places := []proof.Place{at, {Device: at.Device}}
	if front.Port != 0 {
		places = append(places, front, proof.Place{Device: front.Device})
	}
	for _, place := range places {
		if u := unread[place]; u != nil {
			return fmt.Sprintf("%s of %s: %v", u.What, p.where(u.Where), u.Cause)
		}
	}
	return unnamed
}

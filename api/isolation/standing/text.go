package standing

import (
	"fmt"
	"strings"
	"time"

	v1 "portcullis/api/v1"
)

const (
	maxText = 512 // bytes of each text of a finding
	maxHops = 8   // of a packet that a text shows
)

// finding is what an examination of all tenants found.
type finding struct {
	State string    `json:"state"` // a verdict of v1.Isolation, or nothing
	Begun time.Time `json:"begun"`
	Read  time.Time `json:"read,omitzero"` // when the newest reading began; zero: as Begun
	Seen  string    `json:"seen"`          // in one line
	Do    string    `json:"do,omitempty"`  // empty: what the catalogue of events says
	Counts
	First disclosure `json:"first,omitzero"` // of subnet administration
}

// disclosure is the first one of subnet administration.
type disclosure struct {
	Seen string `json:"seen,omitempty"` // in one line
	Do   string `json:"do,omitempty"`
	Key  bool   `json:"key,omitempty"` // it is a key
}

// Counts are what an examination counted.
type Counts struct {
	Pairs   v1.IsolationPairs `json:"pairs"`
	Missing int               `json:"missing"` // declared ports of parties that were not found where they are declared
	Ghosts  int               `json:"ghosts"`  // ports that hold a P_Key of a tenant which no membership explains
	Unread  int               `json:"unread"`  // values
	// Of subnet administration: names and keys that it disclosed, and whether it was examined.
	Disclosed int  `json:"disclosed,omitempty"`
	Asked     bool `json:"asked,omitempty"`
}

func countsOf(r *v1.Isolation) Counts {
	a := &r.Administration
	c := Counts{Pairs: r.Pairs, Ghosts: r.Bounds.Ghosts, Unread: r.Bounds.Unread, Disclosed: a.Disclosed, Asked: a.Verdict != "" && a.Verdict != v1.SANotExamined}
	for i := range r.Parties {
		c.Missing += r.Parties[i].Declared - r.Parties[i].Found
	}
	return c
}

// newest returns when the newest reading began.
func (f *finding) newest() time.Time {
	if f.Read.IsZero() {
		return f.Begun
	}
	return f.Read
}

// nothing is the state where no host belongs to a tenant.
const nothing = "nothing"

// findingOf returns what a report about all tenants says.
func findingOf(r *v1.Isolation) finding {
	f := finding{State: r.Verdict, Begun: r.Bounds.Begun.UTC().Round(0), Counts: countsOf(r)}
	if at := r.Bounds.Newest().UTC().Round(0); !at.Equal(f.Begun) {
		f.Read = at
	}
	pairs := r.Pairs.Isolated + r.Pairs.Leaks + r.Pairs.Unknown
	switch {
	case r.Verdict == v1.Isolated:
		f.Seen = fmt.Sprintf("all %d pairs of tenants are isolated", pairs)
	case r.Verdict == v1.Leaks:
		f.Seen = fmt.Sprintf("a packet passes between %d of %d pairs of tenants", r.Pairs.Leaks, pairs)
		if len(r.Examples) > 0 {
			e := &r.Examples[0]
			f.Seen += "; the first: " + packet(e)
			f.Do = e.Cure + "; then portcullis verify"
		}
	case !tenants(r):
		f.State, f.Seen = nothing, "no host belongs to a tenant"
	default:
		f.State, f.Seen = v1.IsolationUnknown, unproven(r)
	}
	f.Seen, f.Do = cut(f.Seen), cut(f.Do)
	f.First = firstOf(&r.Administration)
	return f
}

// firstOf returns what was disclosed first.
func firstOf(a *v1.IsolationAdministration) disclosure {
	if len(a.Disclosures) == 0 {
		return disclosure{}
	}
	d := &a.Disclosures[0]
	for i := range a.Disclosures {
		if a.Disclosures[i].Secret {
			d = &a.Disclosures[i]
			break
		}
	}
	what := fmt.Sprintf("%s %s", d.Field, d.Value)
	switch {
	case d.Secret:
		what = "the key " + d.Field
	case d.About.GUID != 0:
		what += " of " + portOf(&d.About)
	case d.PKey != 0 && d.About.Party != "":
		what += " of " + d.About.Party
	}
	from := "a LID that no port has"
	if d.From.GUID != 0 {
		from = portOf(&d.From)
	}
	return disclosure{Seen: cut(fmt.Sprintf("subnet administration disclosed %d names and keys; the first: to %s, in a %s, %s", a.Disclosed, from, d.Record, what)), Do: cut(d.Cure), Key: d.Secret}
}

func portOf(p *v1.DisclosurePort) string {
	s := fmt.Sprintf("port %v", p.GUID)
	if p.Host != "" {
		s += " of " + p.Host
	}
	if !p.Place.IsZero() {
		s += fmt.Sprintf(" at %v", p.Place)
	}
	return s + " (" + p.Party + ")"
}

func tenants(r *v1.Isolation) bool {
	for i := range r.Parties {
		if r.Parties[i].Tenant {
			return true
		}
	}
	return false
}

// packet names the tenants between which a packet passes, and the places on its way.
func packet(e *v1.IsolationExample) string {
	var b strings.Builder
	fmt.Fprintf(&b, "from %s to %s", e.From, e.To)
	if e.Raw {
		b.WriteString(", without a P_Key")
	} else {
		fmt.Fprintf(&b, ", P_Key %v", e.PKey)
	}
	for i, h := range e.Hops[:min(len(e.Hops), maxHops)] {
		sep := " > "
		if i == 0 {
			sep = ": "
		}
		b.WriteString(sep + h.Device)
		for _, port := range []struct {
			way string
			num int
		}{{"in", int(h.In)}, {"out", int(h.Out)}} {
			if port.num != 0 {
				fmt.Fprintf(&b, " %s %d", port.way, port.num)
			}
		}
	}
	if len(e.Hops) > maxHops {
		b.WriteString(" > ...")
	}
	return b.String()
}

// unproven says why a verdict is unknown.
func unproven(r *v1.Isolation) string {
	text := fmt.Sprintf("of %d pairs of tenants it is not known whether a packet passes: %s", r.Pairs.Unknown, r.Reason)
	if n := r.Bounds.Missing; n > 0 && len(r.Missing) > 0 {
		m := &r.Missing[0]
		text += fmt.Sprintf("; %d declared ports were not found, the first of %s at %v: %s", n, m.Host, m.Place, m.Cause)
	}
	if n := r.Bounds.Unread; n > 0 && len(r.Unread) > 0 {
		u := &r.Unread[0]
		text += fmt.Sprintf("; %d values were not read, the first %s of %s: %s", n, u.What, u.Where, u.Cause)
	}
	return text
}

// cut bounds a text.
func cut(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxText)], "") }

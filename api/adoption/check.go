package adoption

import (
	"fmt"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
)

// Site is what is recorded of a site when an adoption is to start.
type Site struct {
	Reserved []ib.PKey            // base P_Keys that no tenant gets
	Owned    map[ib.PKey]string   // base P_Keys that clusters have, or that are not proven absent after one, in words: "cluster blue has it"
	Cables   map[ib.GUID]Cable    // of the inventory, by port
	Behind   map[ib.Place]ib.GUID // ports of the inventory by place
	Ledger   []Entry              // memberships that are granted, or not yet proven absent
}

// Cable is where the inventory has a port.
type Cable struct {
	Host  string
	Place ib.Place // zero: not known
}

// Entry is a membership of the ledger.
type Entry struct {
	GUID  ib.GUID
	PKey  ib.PKey // base
	Place ib.Place
	Owner string // in words: "host h1", "adoption a1"
}

// CheckTime returns why a deadline is refused, "" if it is not.
func CheckTime(now, deadline time.Time) string {
	switch left := deadline.Sub(now); {
	case left < MinTime:
		return fmt.Sprintf("the deadline must be %v from now or later", MinTime)
	case left > MaxTime:
		return fmt.Sprintf("the deadline must be within %d days", MaxTime/(24*time.Hour))
	default:
		return ""
	}
}

// Check returns why ports cannot be adopted, a sentence for each problem; none: they can.
func Check(ports []Port, site *Site) (problems []string) {
	n := 0
	for i := range ports {
		n += len(ports[i].PKeys)
	}
	switch {
	case n == 0:
		return []string{"no membership is listed"}
	case n > MaxMemberships:
		return []string{fmt.Sprintf("%d memberships are listed, and one adoption has room for %d: make several", n, MaxMemberships)}
	}
	c := checker{site: site, guids: map[ib.GUID]bool{}, places: map[ib.Place]ib.GUID{}}
	for i := range ports {
		c.port(&ports[i])
	}
	c.ledger(ports)
	return c.problems
}

type checker struct {
	site     *Site
	guids    map[ib.GUID]bool
	places   map[ib.Place]ib.GUID
	problems []string
}

func (c *checker) say(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

func (c *checker) port(p *Port) {
	if c.where(p) {
		c.keys(p)
	}
}

// where checks a port without its P_Keys, and reports whether there is one to have some.
func (c *checker) where(p *Port) bool {
	switch {
	case !p.GUID.Valid():
		c.say("port %v: this is no port GUID", p.GUID)
		return false
	case c.guids[p.GUID]:
		c.say("port %v is listed twice", p.GUID)
		return false
	case !p.Place.Switch.Valid() || p.Place.Port == 0:
		c.say("port %v: its switch port is not known, and a membership counts at one place only", p.GUID)
		return false
	}
	c.guids[p.GUID] = true
	if other, taken := c.places[p.Place]; taken {
		c.say("ports %v and %v are both listed at %v", other, p.GUID, p.Place)
	}
	c.places[p.Place] = p.GUID
	if is, known := c.site.Cables[p.GUID]; known && !is.Place.IsZero() && is.Place != p.Place {
		c.say("port %v is listed at %v, and the inventory has it at %v, of host %s", p.GUID, p.Place, is.Place, is.Host)
	}
	if other, known := c.site.Behind[p.Place]; known && other != p.GUID {
		c.say("port %v is listed at %v, where the inventory has port %v", p.GUID, p.Place, other)
	}
	return true
}

func (c *checker) keys(p *Port) {
	if len(p.PKeys) == 0 || len(p.PKeys) > MaxPKeys {
		c.say("port %v: %d P_Keys are listed, want 1 to %d", p.GUID, len(p.PKeys), MaxPKeys)
		return
	}
	seen := map[ib.PKey]ib.PKey{}
	for _, k := range p.PKeys {
		was, twice := seen[k.Base()]
		seen[k.Base()] = k
		switch {
		case twice && was == k:
			c.say("port %v: P_Key %v is listed twice", p.GUID, k)
		case twice:
			c.say("port %v: P_Keys %v and %v are the same partition, and a port is a full or a limited member: leave one out", p.GUID, was, k)
		default:
			c.key(p.GUID, k)
		}
	}
}

// key checks a P_Key of a port by itself.
func (c *checker) key(guid ib.GUID, k ib.PKey) {
	switch {
	case !k.Valid() || k.Base() == ib.DefaultPKeyLimited:
		c.say("port %v: P_Key %v is that of the default partition, or none: each host is a limited member of the default partition", guid, k)
	case slices.Contains(c.site.Reserved, k.Base()):
		c.say("port %v: P_Key %v is reserved", guid, k)
	case c.site.Owned[k.Base()] != "":
		c.say("port %v: P_Key %v: %s; assign the host to a cluster instead", guid, k, c.site.Owned[k.Base()])
	}
}

// ledger finds ports that have memberships already, and places where other ports have some.
func (c *checker) ledger(ports []Port) {
	at := map[ib.GUID]ib.Place{}
	for i := range ports {
		at[ports[i].GUID] = ports[i].Place
	}
	told := map[ib.GUID]bool{}
	for _, e := range c.site.Ledger {
		other, taken := c.places[e.Place]
		switch _, listed := at[e.GUID]; {
		case listed && !told[e.GUID]:
			told[e.GUID] = true
			c.say("port %v has P_Key %v already, of %s", e.GUID, e.PKey, e.Owner)
		case !listed && taken && !told[other]:
			told[other] = true
			c.say("port %v is listed at %v, where port %v has P_Key %v, of %s", other, e.Place, e.GUID, e.PKey, e.Owner)
		}
	}
}

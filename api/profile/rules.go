package profile

import (
	"fmt"
	"slices"
	"time"
)

// Bounds of ages.
const (
	maxAnchorAge    = time.Hour           // since an anchor had the head of the audit log
	maxRehearsalAge = 90 * 24 * time.Hour // since an escrow kit was rehearsed
	minProtection   = 2                   // of M_Keys: with less, any host may read the fabric
)

// Rule is one requirement.
type Rule struct {
	Name  string  // never changes
	First Profile // the first profile that has it; those after have it, too
	Why   string
	Cure  string // the command, or the line of the configuration

	judge func(*Rule, *Facts) Finding
}

// In reports whether a profile has the rule.
func (r *Rule) In(p Profile) bool { return p <= SecuredBareMetal && r.First <= p }

// Rules returns all rules.
func Rules() []Rule { return slices.Clone(table) }

// on returns the judge of a rule: want returns what is wrong with a known value, or nothing, and false if the value decides
// nothing, with why.
func on[T any](fact func(*Facts) *Seen[T], want func(v T, now time.Time) (wrong string, decides bool)) func(*Rule, *Facts) Finding {
	return func(r *Rule, f *Facts) Finding {
		seen := fact(f)
		source, at, missing := seen.evidence()
		out := Finding{Rule: r, Source: source, At: at, Detail: missing}
		if !seen.known() {
			return out
		}
		wrong, decides := want(seen.Value, f.At)
		switch out.Detail = wrong; {
		case !decides:
		case wrong == "":
			out.State = Holds
		default:
			out.State = Fails
		}
		return out
	}
}

// each wants that all of some objects are as wanted. Without any, nothing is decided.
func each(objects, are string) func(Count, time.Time) (string, bool) {
	return func(c Count, _ time.Time) (string, bool) {
		switch {
		case c.Of <= 0 || c.Good < 0 || c.Good > c.Of:
			return fmt.Sprintf("no %s to judge by: %d of %d %s", objects, c.Good, c.Of, are), false
		case c.Good < c.Of:
			return fmt.Sprintf("%d of %d %s %s", c.Good, c.Of, objects, are), true
		}
		return "", true
	}
}

// is wants true.
func is(wrong string) func(bool, time.Time) (string, bool) {
	return func(v bool, _ time.Time) (string, bool) { return unless(v, wrong), true }
}

func unless(ok bool, wrong string) string {
	if ok {
		return ""
	}
	return wrong
}

func deviceKeys(k DeviceKeys, now time.Time) (string, bool) {
	switch {
	case !k.PerPort:
		return "ports have no M_Key of their own", true
	case k.Protection < minProtection:
		return fmt.Sprintf("the protection level is %d: want %d", k.Protection, minProtection), true
	case k.Rotation <= 0:
		return "M_Keys are never changed", true
	}
	return each("ports", "are protected by an M_Key")(k.Ports, now)
}

func saKey(k SAKey, _ time.Time) (string, bool) {
	if !k.Set {
		return "there is no SA_Key", true
	}
	return unless(k.Rotation > 0, "the SA_Key is never changed"), true
}

func saTrust(t SATrust, _ time.Time) (string, bool) {
	if !t.Enhanced {
		return "requests without the SA_Key are answered", true
	}
	return unless(t.SourceGIDs, "source GIDs of requests are not checked"), true
}

func saLimits(l SALimits, _ time.Time) (string, bool) {
	switch {
	case l.Groups <= 0:
		return "a port may have any number of multicast groups", true
	case l.Services <= 0:
		return "a port may have any number of services", true
	}
	return unless(l.Subscriptions > 0, "a port may have any number of subscriptions"), true
}

func classKey(k ClassKey, _ time.Time) (string, bool) {
	if !k.Enabled {
		return "devices get no key of this class", true
	}
	return unless(k.Protected, "the key is not protected: a device shows it"), true
}

func madLimits(l MADLimits, _ time.Time) (string, bool) {
	if !l.Node {
		return "the rate of one port is not bounded", true
	}
	return unless(l.All, "the rate of all ports together is not bounded"), true
}

func attested(a Attested, now time.Time) (string, bool) {
	if a.Sets <= 0 {
		return "no set of reference values is in force", true
	}
	return each("admitted hosts", "attested a boot that a set in force contains")(a.Hosts, now)
}

func proven(a Adopted, _ time.Time) (string, bool) {
	if a.Members < 0 {
		return "the number of adopted memberships is not known", false
	}
	if a.Members > 0 && a.Deadline.IsZero() {
		return fmt.Sprintf("%d memberships are kept until a person decides, and nothing is proven of their hosts", a.Members), true
	}
	return unless(a.Members == 0, fmt.Sprintf("%d memberships are adopted until %s, and nothing is proven of their hosts", a.Members, a.Deadline.UTC().Format(time.RFC3339))), true
}

func isolated(i Isolation, now time.Time) (string, bool) {
	switch i.Verdict {
	case Leaks:
		return i.Why, i.Why != ""
	case Isolated:
		return within("tenants were proven isolated", i.Begun, now, i.MaxAge)
	default:
		return i.Why, false
	}
}

func anchored(a Anchors, now time.Time) (string, bool) {
	switch {
	case a.Configured <= 0:
		return "the audit log has no anchor", true
	case a.Confirmed.IsZero():
		return "no anchor ever had the head of the audit log", true
	}
	return within("the anchors had the head of the audit log", a.Confirmed, now, maxAnchorAge)
}

func rehearsed(at, now time.Time) (string, bool) {
	if at.IsZero() {
		return "no escrow kit was ever rehearsed", true
	}
	return within("an escrow kit was rehearsed", at, now, maxRehearsalAge)
}

// within wants that something was done lately. A time after now decides nothing, because one of the clocks is wrong.
func within(done string, at, now time.Time, bound time.Duration) (string, bool) {
	switch age := now.Sub(at); {
	case now.IsZero():
		return "it is not known when the facts were collected", false
	case age < 0:
		return fmt.Sprintf("%s at %s, which is after the facts were collected", done, at.UTC().Format(time.RFC3339)), false
	case age > bound:
		return fmt.Sprintf("%s last at %s: want at most %v ago", done, at.UTC().Format(time.RFC3339), bound), true
	}
	return "", true
}

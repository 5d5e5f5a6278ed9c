package receipt

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/attest/result"
)

const (
	// maxBound is the longest that a fact may count.
	maxBound = 366 * 24 * time.Hour
	// skew is how far the clocks of signer and verifier may differ.
	skew = time.Minute
	// maxPorts bounds the ports of one party, so that sums do not overflow.
	maxPorts = 1 << 30
)

// fact is a dated part of a predicate, and its name.
type fact struct {
	name string
	Dated
}

// facts returns every dated part.
func (p *Predicate) facts() []fact {
	out := []fact{
		{"the statement", p.Issued},
		{"the reading of the fabric", p.Reading.Dated},
		{"the list of members", p.Members.Dated},
		{"the topology revision", p.Topology.Dated},
		{"the key epochs", p.Keys.Dated},
	}
	for i := range p.Attestations {
		a := &p.Attestations[i]
		out = append(out, fact{fmt.Sprintf("the attestation result of host %q", a.Host), a.Dated})
	}
	return out
}

// check refuses a predicate that lacks something, or contradicts itself. It does not depend on the time.
func (p *Predicate) check() error {
	for _, f := range p.facts() {
		if err := f.check(p.Issued.At); err != nil {
			return fmt.Errorf("%s %w", f.name, err)
		}
	}
	r := &p.Reading
	switch sum, err := hex.DecodeString(r.Digest); {
	case err != nil || len(sum) != 32 || r.Digest != strings.ToLower(r.Digest):
		return fmt.Errorf("the digest of the tables is %.80q: want SHA-256 in lower-case hexadecimal", r.Digest)
	case !whole(r.Ended) || r.Ended.Before(r.At) || r.Ended.After(p.Issued.At):
		return errors.New("the reading of the fabric ended before it began, or after the statement was issued")
	case r.Counts != nil && r.Counts.least() < 0:
		return errors.New("the reading of the fabric has a count below 0")
	case len(r.Assumptions) == 0:
		return errors.New("no assumption is stated: every verdict has some")
	case p.Topology.Revision != 0 && p.Topology.Digest == "":
		return errors.New("the topology revision has no digest")
	case len(p.Keys.Epochs) == 0:
		return errors.New("no key epoch is stated")
	}
	for i, e := range p.Keys.Epochs {
		if e.Kind == "" || i > 0 && p.Keys.Epochs[i-1].Kind >= e.Kind {
			return fmt.Errorf("key epoch %d (%q) is out of order or without a kind", i, e.Kind)
		}
	}
	return errors.Join(p.checkParties(), p.checkPairs(), p.checkMembers(), p.checkVerdict())
}

func (c *Counts) least() int {
	return min(c.Requests, c.Devices, c.Switches, c.Ends, c.Missing, c.Undeclared, c.Unread, c.Strays)
}

// check refuses a fact without a time or a bound, and one that is later than the statement.
func (d Dated) check(issued time.Time) error {
	switch {
	case !whole(d.At):
		return errors.New("has no time: want UTC in whole seconds")
	case d.MaxAge < 1:
		return errors.New("has no bound: nothing counts for ever")
	case d.MaxAge > int64(maxBound/time.Second):
		return fmt.Errorf("has a bound of %d seconds: at most a year", d.MaxAge)
	case d.At.After(issued):
		return errors.New("is later than the statement")
	}
	return nil
}

func whole(t time.Time) bool {
	return t.Year() >= 2000 && t.Year() <= 9999 && t.Nanosecond() == 0 && t.Location() == time.UTC
}

func (p *Predicate) checkParties() error {
	for i := range p.Parties {
		q := &p.Parties[i]
		if q.Name == "" || i > 0 && p.Parties[i-1].Name >= q.Name {
			return fmt.Errorf("party %d (%q) is out of order or without a name", i, q.Name)
		}
		if q.Declared < 0 || q.Declared > maxPorts || q.Found < 0 || q.Found > q.Declared {
			return fmt.Errorf("party %q has %d of %d ports", q.Name, q.Found, q.Declared)
		}
	}
	return nil
}

// subject reports whether the statement is about a party, and not only about what others it is isolated from.
func (p *Predicate) subject(q *Party) bool {
	return q.Tenant && (p.Tenant == "" || p.Tenant == q.Name)
}

// checkPairs refuses a list of pairs that is not exactly all pairs that count.
func (p *Predicate) checkPairs() error {
	at := 0
	for i := range p.Parties {
		for j := i + 1; j < len(p.Parties); j++ {
			a, b := &p.Parties[i], &p.Parties[j]
			if !p.subject(a) && !p.subject(b) {
				continue
			}
			if at == len(p.Pairs) || p.Pairs[at].A != a.Name || p.Pairs[at].B != b.Name {
				return fmt.Errorf("nothing is said of the pair %q and %q, or not where it belongs", a.Name, b.Name)
			}
			if err := checkPair(&p.Pairs[at], a, b); err != nil {
				return fmt.Errorf("pair %q and %q: %w", a.Name, b.Name, err)
			}
			at++
		}
	}
	if at != len(p.Pairs) {
		return fmt.Errorf("%d pairs are of no two parties that count", len(p.Pairs)-at)
	}
	return nil
}

func checkPair(pair *v1.IsolationPair, a, b *Party) error {
	switch pair.Verdict {
	case v1.Isolated:
		if a.lacks() || b.lacks() {
			return errors.New("it cannot be isolated: a port of one was not found")
		}
		if !slices.Contains([]string{v1.HeldByEach, v1.HeldBySwitches, v1.HeldByAdapters, v1.HeldTogether}, pair.Held) {
			return fmt.Errorf("it is isolated and held by %q", pair.Held)
		}
		return nil
	case v1.Leaks, v1.IsolationUnknown:
		if pair.Held != "" {
			return fmt.Errorf("it is not isolated and held by %q", pair.Held)
		}
		return nil
	default:
		return fmt.Errorf("verdict %q is unknown", pair.Verdict)
	}
}

// lacks reports whether a port of a tenant was not found, so that nothing is proven of it.
func (q *Party) lacks() bool { return q.Tenant && q.Found != q.Declared }

// checkMembers compares the members with the counts of their parties, and with the hosts that were attested.
func (p *Predicate) checkMembers() error {
	if p.Host != "" && p.Tenant == "" {
		return fmt.Errorf("the statement is about host %q, and about no tenant", p.Host)
	}
	declared, found := map[string]int{}, map[string]int{}
	for i := range p.Members.Ports {
		m := &p.Members.Ports[i]
		if p.Host != "" && m.Host != p.Host {
			return fmt.Errorf("member %d is of host %q, and the statement is about host %q", i, m.Host, p.Host)
		}
		if m.Host == "" || i > 0 && comparePorts(p.Members.Ports[i-1], *m) > 0 {
			return fmt.Errorf("member %d (%q) is out of order or without a host", i, m.Host)
		}
		if !slices.IsSorted(m.PKeys) {
			return fmt.Errorf("the P_Keys of member %d (%q) are out of order", i, m.Host)
		}
		declared[m.Party]++
		if m.Found {
			found[m.Party]++
		}
	}
	for i := range p.Parties {
		q := &p.Parties[i]
		if p.subject(q) {
			if !p.lists(q, declared[q.Name], found[q.Name]) {
				return fmt.Errorf("tenant %q has %d of %d ports, and %d of %d are listed", q.Name, q.Found, q.Declared, found[q.Name], declared[q.Name])
			}
			delete(declared, q.Name)
		}
	}
	for party := range declared {
		return fmt.Errorf("members of %q are listed, which the statement is not about", party)
	}
	attested := make([]string, len(p.Attestations))
	for i := range attested {
		attested[i] = p.Attestations[i].Host
		if err := p.Attestations[i].check(); err != nil {
			return fmt.Errorf("the attestation result of host %q %w", attested[i], err)
		}
	}
	if !slices.Equal(attested, p.hosts()) {
		return errors.New("the attestation results are not of exactly the hosts that are listed")
	}
	return nil
}

// lists reports whether so many declared and found ports are those that must be listed of a party: all, or some of one host.
func (p *Predicate) lists(q *Party, declared, found int) bool {
	if p.Host == "" {
		return declared == q.Declared && found == q.Found
	}
	others := q.Declared - declared
	return declared > 0 && others >= 0 && found <= q.Found && q.Found-found <= others
}

// check compares what an attestation result says with itself.
func (a *Attestation) check() error {
	switch {
	case a.Evidence.IsZero() && len(a.Adapters) > 0:
		return errors.New("names adapters, and no evidence that names them")
	case a.Evidence.IsZero() && (a.Status == result.Affirming || a.Status == result.Warning):
		return fmt.Errorf("is %v without evidence", a.Status)
	case !a.Evidence.IsZero() && (!whole(a.Evidence) || a.Evidence.After(a.At)):
		return errors.New("has evidence of no time, or of a later one")
	}
	for i := range a.Adapters {
		if a.Adapters[i].GUID == 0 || i > 0 && a.Adapters[i-1].GUID >= a.Adapters[i].GUID {
			return fmt.Errorf("has adapter %v out of order or without a GUID", a.Adapters[i].GUID)
		}
	}
	return nil
}

// derive returns the verdict that follows from parties and pairs.
func (p *Predicate) derive() string {
	about, missing := false, false
	for i := range p.Parties {
		if q := &p.Parties[i]; p.subject(q) {
			about, missing = true, missing || q.lacks()
		}
	}
	if !about {
		return v1.IsolationUnknown
	}
	verdict := v1.Isolated
	for i := range p.Pairs {
		switch p.Pairs[i].Verdict {
		case v1.Leaks:
			return v1.Leaks
		case v1.Isolated:
		default:
			verdict = v1.IsolationUnknown
		}
	}
	if missing {
		return v1.IsolationUnknown
	}
	return verdict
}

func (p *Predicate) checkVerdict() error {
	if follows := p.derive(); p.Verdict != follows {
		return fmt.Errorf("the verdict is %q, and what follows from the pairs is %q", p.Verdict, follows)
	}
	return nil
}

// stale refuses what does not count at a time.
func (p *Predicate) stale(now time.Time) error {
	if p.Issued.At.After(now.Add(skew)) {
		return fmt.Errorf("%w: it was issued at %s, after the time of verification", ErrStale, p.Issued.At.Format(time.RFC3339))
	}
	for _, f := range p.facts() {
		if now.After(f.Until()) {
			return fmt.Errorf("%w: %s is of %s and counted until %s", ErrStale, f.name, f.At.Format(time.RFC3339), f.Until().Format(time.RFC3339))
		}
	}
	return nil
}

// Until returns the last time at which everything in the receipt counts.
func (p *Predicate) Until() time.Time {
	until := p.Issued.Until()
	for _, f := range p.facts() {
		if f.Until().Before(until) {
			until = f.Until()
		}
	}
	return until
}

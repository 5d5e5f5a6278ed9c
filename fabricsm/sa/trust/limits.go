package trust

import "portcullis/fabricsm/ib"

// Registration is a kind of registration of ports with subnet administration.
type Registration uint8

// Registrations.
const (
	Groups        Registration = iota // memberships of multicast groups
	Services                          // service records
	Subscriptions                     // to notices
	numRegistrations
)

// Limits counts the registrations of ports and aliases. The owner of registrations reports to it each one that it adds,
// restores or removes.
type Limits struct {
	count [numRegistrations]map[ib.GUID]int
}

// NewLimits creates one without registrations.
func NewLimits() *Limits {
	l := new(Limits)
	for i := range l.count {
		l.count[i] = make(map[ib.GUID]int)
	}
	return l
}

// Add counts one of a port or alias.
func (l *Limits) Add(r Registration, owner ib.GUID) { l.count[r][owner]++ }

// Remove removes a registration that was added.
func (l *Limits) Remove(r Registration, owner ib.GUID) {
	if l.count[r][owner]--; l.count[r][owner] <= 0 {
		delete(l.count[r], owner)
	}
}

// Count is how many a port or alias has.
func (l *Limits) Count(r Registration, owner ib.GUID) int { return l.count[r][owner] }

// Room judges a request to register one more. Trusted ones have no limit.
func (l *Limits) Room(o *Options, r Registration, owner ib.GUID, trusted bool) Verdict {
	limit, over := o.limit(r)
	if trusted || limit == 0 || l.count[r][owner] < limit {
		return OK
	}
	return over
}

func (o *Options) limit(r Registration) (int, Verdict) {
	switch r {
	case Groups:
		return o.MaxGroups, TooManyGroups
	case Services:
		return o.MaxServices, TooManyServices
	default:
		return o.MaxSubscriptions, TooManySubscriptions
	}
}

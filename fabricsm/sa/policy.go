package sa

import (
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/trust"
)

// Policy decides how far subnet administration trusts a requester. Services use Strict. Drills inject others, to show what
// it prevents.
type Policy interface {
	// Accepts reports whether a request with this verdict on it is answered.
	Accepts(v trust.Verdict) bool
	// Trusts reports whether a requester is answered as a trusted one about a topic.
	Trusts(about Topic, who portindex.Asker) bool
}

// Topic is what a request is about.
type Topic uint8

// Topics.
const (
	Paths         Topic = iota // between ports
	Registrations              // groups and services
	Notices                    // reports to subscribers
)

// Strict is the policy of services.
type Strict struct{}

// Accepts implements Policy: only a request that passed every check is answered.
func (Strict) Accepts(v trust.Verdict) bool { return v == trust.OK }

// Trusts implements Policy: a requester is trusted that showed the SA_Key.
func (Strict) Trusts(_ Topic, who portindex.Asker) bool { return who.Trusted }

// as returns a requester as it is answered about a topic.
func (a *Agent) as(about Topic, who *portindex.Asker) portindex.Asker {
	one := *who
	one.Trusted = a.cfg.Policy.Trusts(about, one)
	return one
}

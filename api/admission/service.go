package admission

import (
	"cmp"
	"crypto/rand"
	"io"
	"log/slog"
	"time"

	"portcullis/api/store"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
)

// Options configure a Service. Store, Policy and Log are required; a zero
// duration or count means the default.
type Options struct {
	Store  *store.Store
	Policy *attest.Policy // for evidence
	Log    *slog.Logger

	Window      time.Duration // provisioning window when Assign names none; default 1 h
	EvidenceAge time.Duration // oldest evidence that leads to a grant; default 1 h

	PKeyFirst, PKeyLast ib.PKey       // range to allocate from; default 0x0001 to 0x7ffe
	PKeyReserved        []ib.PKey     // never allocated, besides the default partition
	PKeyMinAge          time.Duration // between proven absence and next use; default 10 min, negative: none

	SourceRate, HostRate Rate // of sessions and evidence, by network address and by host

	Now  func() time.Time // default time.Now
	Rand io.Reader        // default crypto/rand
}

// Rate allows Burst requests at once and then one every Every.
type Rate struct {
	Burst int
	Every time.Duration
}

// Service is the API's work without its protocol. Methods are safe for
// concurrent use, and several Services may share one store. Refusals are
// *Error, except that evidence which is not accepted is an *attest.Refusal:
// what it says is for the operator, the host must be told only that it was
// refused.
//
// A Service holds no state but its rate limits. Run keeps phases and grants
// up with what the fabric shows; one instance must run it.
type Service struct {
	o       Options
	sources *limiter
	hosts   *limiter
}

// New makes a Service.
func New(o Options) *Service {
	o.Window = cmp.Or(o.Window, time.Hour)
	o.EvidenceAge = cmp.Or(o.EvidenceAge, time.Hour)
	o.PKeyFirst = cmp.Or(o.PKeyFirst, 0x0001)
	o.PKeyLast = cmp.Or(o.PKeyLast, ib.DefaultPKeyLimited-1)
	o.PKeyMinAge = cmp.Or(o.PKeyMinAge, 10*time.Minute)
	// Several hosts may sit behind one address, so sources get more than hosts.
	o.SourceRate = cmp.Or(o.SourceRate, Rate{Burst: 200, Every: 50 * time.Millisecond})
	o.HostRate = cmp.Or(o.HostRate, Rate{Burst: 10, Every: 6 * time.Second})
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	return &Service{o: o, sources: newLimiter(o.SourceRate), hosts: newLimiter(o.HostRate)}
}

// now is the time without monotonic clock, as records keep it.
func (s *Service) now() time.Time { return s.o.Now().UTC().Round(0) }

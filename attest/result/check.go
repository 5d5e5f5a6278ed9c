package result

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

// Expect is what a relying party knows before it looks at a result.
type Expect struct {
	Now    time.Time
	Skew   time.Duration // how far clocks may differ
	Issuer string        // "": any whose key is known
	Host   string        // "": any
	Nonce  []byte        // nil: any, so that the result may be up to MaxLife old
}

// Fault says why a result does not count. Code is stable.
type Fault struct {
	Code   FaultCode
	Detail string
}

// Error returns the detail.
func (f *Fault) Error() string { return f.Detail }

// FaultCode names a reason.
type FaultCode string

// Reasons why a result whose signature is right does not count.
const (
	FaultProfile FaultCode = "profile" // not a result of this profile
	FaultClaims  FaultCode = "claims"  // a claim is missing, or contradicts another
	FaultIssuer  FaultCode = "issuer"  // another service's
	FaultHost    FaultCode = "host"    // another host's
	FaultNonce   FaultCode = "nonce"   // not an answer to this nonce
	FaultExpired FaultCode = "expired"
	FaultFuture  FaultCode = "future" // not valid yet
	FaultLife    FaultCode = "life"   // good for longer than a result may be
)

// Check returns every Fault of the claims, joined, or nil if the claims count. It does not judge the content of the claims:
// look at Status next.
func (c *Claims) Check(e Expect) error {
	var errs []error
	fault := func(bad bool, code FaultCode, format string, args ...any) {
		if bad {
			errs = append(errs, &Fault{code, fmt.Sprintf(format, args...)})
		}
	}
	if c.Profile != Profile {
		return &Fault{FaultProfile, fmt.Sprintf("eat_profile %q: want %s", clip(c.Profile), Profile)}
	}
	fault(c.Issuer == "" || c.Subject == "" || c.ID == "", FaultClaims, "iss, sub or jti is missing")
	fault(e.Issuer != "" && c.Issuer != e.Issuer, FaultIssuer, "issued by %q, want %q", clip(c.Issuer), e.Issuer)
	fault(e.Host != "" && c.Subject != e.Host, FaultHost, "about host %q, want %q", clip(c.Subject), e.Host)
	fault(e.Nonce != nil && !bytes.Equal(c.Nonce, e.Nonce), FaultNonce, "eat_nonce is not the one that was sent")
	for _, t := range []int64{c.IssuedAt, c.NotBefore, c.Expires} {
		if t <= 0 || t > lastSecond {
			return errors.Join(append(errs, &Fault{FaultClaims, "iat, nbf or exp is missing or not a date"})...)
		}
	}
	from, expires := time.Unix(max(c.IssuedAt, c.NotBefore), 0), time.Unix(c.Expires, 0)
	fault(from.After(e.Now.Add(e.Skew)), FaultFuture, "valid from %s, but it is %s", stamp(from), stamp(e.Now))
	fault(!expires.After(e.Now.Add(-e.Skew)), FaultExpired, "expired at %s, and it is %s", stamp(expires), stamp(e.Now))
	fault(c.Expires <= max(c.IssuedAt, c.NotBefore), FaultClaims, "exp is not after iat and nbf")
	fault(c.Expires-c.IssuedAt > int64(MaxLife/time.Second), FaultLife, "valid for longer than %v", MaxLife)
	if err := c.checkStatus(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// checkStatus requires statuses that promise no more than their vectors justify (EAR).
func (c *Claims) checkStatus() error {
	if _, there := c.Submods[Platform]; !there {
		return &Fault{FaultClaims, "the appraisal of the platform is missing"}
	}
	for label, a := range c.Submods {
		if t := a.Vector.Tier(); a.Status == Affirming && t != Affirming || a.Status == Warning && t == Contraindicated {
			return &Fault{FaultClaims, fmt.Sprintf("appraisal %q is %v, but its vector is %v", clip(label), a.Status, t)}
		}
		if c.Status.badness() < a.Status.badness() {
			return &Fault{FaultClaims, fmt.Sprintf("the result is %v, but appraisal %q is %v", c.Status, clip(label), a.Status)}
		}
	}
	return nil
}

// lastSecond bounds dates: the end of the year 9999.
const lastSecond = 253402300799

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

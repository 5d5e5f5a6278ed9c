package agent

import (
	"context"
	"crypto/x509"
	"errors"
	"strings"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// serviceTime bounds the look at the service.
const serviceTime = 15 * time.Second

// Skew of clocks. Services of the default policy refuse statements from more than
// a minute in the future; being behind counts once sessions are over.
const (
	skewMost  = attest.DefaultClockSkew
	skewMuch  = skewMost / 2
	dateGrain = time.Second // a date over HTTP has whole seconds
)

var serviceChecks = []string{checkTrust, checkReady, checkClock}

// service connects as a run does and sends no credential.
func (d *doctor) service(ctx context.Context) {
	if d.config.Service == "" || d.config.CA == "" {
		d.skip("the service or its CA is not configured", append([]string{checkService}, serviceChecks...)...)
		return
	}
	c, err := newClient(d.config, d.version, "")
	if err != nil {
		d.failed(checkService, err)
		d.skip("the configured service cannot be asked", serviceChecks...)
		return
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, serviceTime)
	defer cancel()
	ch, err := c.OpenChannel(ctx)
	switch {
	case err != nil && isUntrusted(err):
		d.ok(checkService, "%s answers", d.config.Service)
		d.failed(checkTrust, d.untrusted(err))
		d.skip("the server does not prove that it is the service", checkReady, checkClock)
		return
	case err != nil:
		d.failed(checkService, explain(err, d.config))
		d.skip("the service does not answer", serviceChecks...)
		return
	}
	defer ch.Close()
	if proxy, _ := c.Proxy(); proxy != "" {
		d.ok(checkService, "%s answers through the proxy %s", d.config.Service, proxy)
	} else {
		d.ok(checkService, "%s answers", d.config.Service)
	}
	d.ok(checkTrust, "its certificate is from the CA in %s", d.config.CA)
	before := d.now()
	ready, at, err := ch.Hello(ctx)
	if err != nil {
		d.failed(checkReady, failf(ClassUnreachable, "check which program listens there: portcullisd, or a proxy", "%w", err))
		d.skip("the service did not report its time", checkClock)
		return
	}
	d.ready(ready)
	d.clock(before, d.now(), at)
}

// untrusted explains a certificate that was refused; a wrong clock looks so too.
func (d *doctor) untrusted(err error) error {
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok && e.Reason == x509.Expired {
		return failf(ClassUntrusted, "set the clock of this host, which shows "+d.now().UTC().Format(time.RFC3339)+"; otherwise renew the service's certificate",
			"%s does not prove that it is the service: %w", d.config.Service, err)
	}
	return explain(err, d.config)
}

func (d *doctor) ready(r *v1.Readiness) {
	if r.Ready {
		d.ok(checkReady, "the service is ready")
		return
	}
	var not []string
	for _, c := range r.Checks {
		if !c.OK {
			not = append(not, c.Name)
		}
	}
	d.warn(checkReady, "see the service's log; a run retries until its time is over", "the service is not ready: %s", strings.Join(not, ", "))
}

// clock compares this host's clock with the time that the service's clock showed between before and after.
func (d *doctor) clock(before, after, at time.Time) {
	const hint = "set the clock of this host, for example with chrony"
	skew := time.Duration(0) // how far this host is ahead
	switch {
	case before.After(at.Add(dateGrain)):
		skew = before.Sub(at.Add(dateGrain))
	case after.Before(at):
		skew = after.Sub(at)
	}
	size := skew.Abs().Round(time.Second)
	side := "ahead of"
	if skew < 0 {
		side = "behind"
	}
	switch {
	case size > skewMost:
		d.failed(checkClock, failf(ClassOther, hint, "this host's clock is %s %s the service's; services allow %s", size, side, skewMost))
	case size > skewMuch:
		d.warn(checkClock, hint, "this host's clock is %s %s the service's", size, side)
	default:
		d.ok(checkClock, "%s from the service's clock", size)
	}
}

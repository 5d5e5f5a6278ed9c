package client

import (
	"context"
	"crypto/x509"
	"time"

	v1 "portcullis/api/v1"
)

// maxReadiness bounds the answer to Hello and Ready.
const maxReadiness = 64 << 10

// Hello asks the service whether it is ready, and returns the time that its clock showed, in whole seconds. No credential
// is sent. An answer that is not the service's is an error.
func (ch *Channel) Hello(ctx context.Context) (*v1.Readiness, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, ch.client.timeout)
	defer cancel()
	req, err := ch.client.asksReady(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	return ch.client.readiness(ch.http, req)
}

// Certificate returns the certificate that the service showed, which was verified.
func (ch *Channel) Certificate() *x509.Certificate { return ch.cert }

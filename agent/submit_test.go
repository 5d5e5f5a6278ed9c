package agent

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"testing"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
)

// TestKindsOfFaults checks which faults are tried again, what class they have in the end, and the hint to the operator.
func TestKindsOfFaults(t *testing.T) {
	t.Parallel()
	c := &Config{Service: "https://portcullis.example", CA: "ca.pem", Host: "compute-01"}
	verification := func(err error) error {
		return fmt.Errorf("connect: %w", &tls.CertificateVerificationError{Err: err})
	}
	for _, tt := range []struct {
		name  string
		err   error
		again bool
		class Class
		hint  string
	}{
		{"network", errors.New("connection refused"), true, ClassUnreachable, "check the network"},
		{"wrong CA", verification(x509.UnknownAuthorityError{}), false, ClassUntrusted, "ca.pem"},
		{"wrong name", verification(x509.HostnameError{Certificate: &x509.Certificate{}}), false, ClassUntrusted, "URL"},
		{"wrong clock", verification(x509.CertificateInvalidError{Reason: x509.Expired}), true, ClassUntrusted, "clock"},
		{"no server's certificate", verification(x509.CertificateInvalidError{Reason: x509.IncompatibleUsage}), false, ClassUntrusted, "ca.pem"},
		{"busy", &v1.Problem{Status: 503}, true, ClassUnreachable, "check the network"},
		{"too often", &v1.Problem{Status: 429}, true, ClassUnreachable, "check the network"},
		{"refused", &v1.Problem{Status: 403, Hint: "ask an operator"}, false, ClassRefused, "ask an operator"},
		{
			"proxy that ends TLS", &client.ProxyError{EndsTLS: true, Service: "portcullis.example:443", Err: verification(x509.UnknownAuthorityError{})},
			false, ClassUntrusted, "configure the proxy to pass TLS to portcullis.example:443 unchanged",
		},
		{"proxy of an unknown CA", &client.ProxyError{Err: verification(x509.UnknownAuthorityError{})}, false, ClassUntrusted, "to a proxy without TLS"},
		{"wrong clock behind a proxy", &client.ProxyError{Err: verification(x509.CertificateInvalidError{Reason: x509.Expired})}, true, ClassUntrusted, "clock"},
		{"proxy refuses", &client.ProxyError{Service: "portcullis.example:443", Err: errors.New("403")}, true, ClassUnreachable, "check HTTPS_PROXY and NO_PROXY"},
		{"ours", failf(ClassTPM, "x", "y"), false, ClassTPM, "x"},
	} {
		if got := isTransient(tt.err); got != tt.again {
			t.Errorf("%s: tried again: %t", tt.name, got)
		}
		e, ok := errors.AsType[*Error](explain(tt.err, c))
		if !ok || e.Class != tt.class || !strings.Contains(e.Hint, tt.hint) {
			t.Errorf("%s: got %+v, want class %d and a hint with %q", tt.name, e, tt.class, tt.hint)
		}
	}
}

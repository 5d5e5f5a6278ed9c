// Package clientcert verifies X.509 certificates by which clients of the API authenticate over TLS: machines such as provisioning
// systems and schedulers. A certificate is of a SPIFFE ID (an X509-SVID) or of a DNS name, and an authority of the configuration
// signed it. A rule of that authority assigns a role and a scope.
//
// What is done for a certificate that is not verified yet is bounded: how many certificates the client shows, their sizes and keys,
// and by the turn that the caller of Authenticate has it wait for. A verified certificate is known by its digest until a certificate
// of its chain ends or the authorities are replaced. That a client has the private key is what TLS proves, not this package.
package clientcert

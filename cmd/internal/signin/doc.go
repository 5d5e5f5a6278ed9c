// Package signin signs a person in at an OpenID Connect provider, for a command line: with a code that is entered in any browser
// (OAuth 2.0 Device Authorization Grant, RFC 8628), or with a browser on this machine (authorization code with PKCE, RFC 7636, and a
// loopback redirect, RFC 8252). It renews tokens (RFC 6749, section 6) and takes them back (RFC 7009). The client is a public one: there
// is no client secret.
//
// A provider is asked over HTTPS alone, and all it answers is bounded: an answer of 256 KiB in 15 s, without redirects. What a token says is
// read for its end and to compare it with what was asked for; its signature is verified by the service that the token is sent to.
package signin

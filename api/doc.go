// Package api is the HTTPS front of the service: routes, the OpenAPI document
// derived from them, credentials, limits and problem documents. It decides
// nothing itself; every request ends in a Backend.
//
// Two kinds of callers meet here. Hosts attest under /v1/attest without an
// operator's credential and learn nothing but yes or no. Operators and their
// programs carry a bearer token whose role says what they may do.
package api

// Package client speaks the HTTPS API for programs in Go: the CLI, the agent,
// integrations. It trusts the CA it is given and no other, speaks TLS 1.3 only,
// and returns what the service refuses as *v1.Problem.
//
// A Client has groups of operations: Hosts, Tenants, Fabric and so on. operations.go
// lists the operations, with the paths of the OpenAPI document.
//
// It links the standard library, the API's shapes and the attestation shapes,
// nothing else, so that it may run on a host.
package client

// Package oidc verifies tokens that identity providers sign for people and services: JWT access and ID tokens (RFC 7519,
// RFC 9068, OpenID Connect Core 1.0) of the issuers of the configuration. A rule of the configuration assigns a role to a token.
//
// No request reads anything from a provider. Run reads each provider's metadata and keys: at the start, each RefreshEvery, and
// when a token names a key that is not known, then at most once each RefreshGap, however many callers ask. While a provider is away its keys
// count for KeysLife after they were read last, then its tokens are refused.
//
// What is done for a token that is not verified yet is bounded: its size, the numbers and sizes of keys, and by the turn that the
// caller of Authenticate has it wait for. A verified token is known by its digest until it ends or the keys of its issuer change.
package oidc

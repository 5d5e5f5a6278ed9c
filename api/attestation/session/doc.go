// Package session keeps attestation sessions as sealed tokens, which hosts return, and the numbers of those that were used.
// It knows what a session holds, and judges nothing of it.
package session

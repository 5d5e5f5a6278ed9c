// Package signkey opens the private key of the site that signs settings: a PEM file, or a key that stays in a PKCS#11
// token. Either is a crypto.Signer; the caller that signs does not know which.
//
// It is the only package below firmware that reads files and starts a program: OpenSC's pkcs11-tool, which loads the module
// of the token's vendor. So our programs stay static and without cgo, and a module that crashes ends no other program.
package signkey

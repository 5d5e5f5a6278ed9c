package hostrecord

import (
	"portcullis/api/store"
	"portcullis/attest"
)

// SealRecord is what a seal answers. Deleting it consumes it.
type SealRecord struct {
	Challenge *attest.SealChallenge `json:"challenge"`
	Host      string                `json:"host"`
	Epoch     int64                 `json:"epoch"`
	Source    string                `json:"source"`
}

// TokenRef leads from a token's hash to its host.
type TokenRef struct {
	Host string `json:"host"`
}

// Records holds each host's Record by host id.
func Records() store.Collection[Record] {
	return store.NewCollection[Record]("hosts", 2, upgradeConflict)
}

// Verdicts holds the last accepted verdict of each host by host id. It is never
// forgotten: a host that has one is known (package register).
func Verdicts() store.Collection[attest.Verdict] {
	return store.NewCollection[attest.Verdict]("verdicts", 2, upgradeVerdict)
}

// Seals holds, by the number of a session, the seal that is awaited.
func Seals() store.Collection[SealRecord] { return store.NewCollection[SealRecord]("seals", 1) }

// Unsealed holds, by session, the first seal record of evidence that was accepted and not sealed yet: further ones are made
// from it.
func Unsealed() store.Collection[SealRecord] { return store.NewCollection[SealRecord]("unsealed", 1) }

// Tokens leads from the hash of a status token to its host.
func Tokens() store.Collection[TokenRef] { return store.NewCollection[TokenRef]("tokens", 1) }

package receipt

import (
	"time"

	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/result"
	"portcullis/fabricsm/ib"
)

// Types of the statement and of the predicate.
const (
	StatementType = "https://in-toto.io/Statement/v1"
	PredicateType = "urn:portcullis:isolation-receipt:1"
)

// tables is the name of the only subject of a statement.
const tables = "fabric-tables"

// statement is an in-toto Statement v1.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []subject  `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     *Predicate `json:"predicate"`
}

type subject struct {
	Name   string `json:"name"`
	Digest digest `json:"digest"`
}

type digest struct {
	SHA256 string `json:"sha256"`
}

// Dated is when a fact was so, and how long after that it counts.
type Dated struct {
	At     time.Time `json:"at"`              // UTC, whole seconds
	MaxAge int64     `json:"max_age_seconds"` // at least 1
}

// From returns a time and a bound in the form of receipts. Parts of a second are cut off, so that nothing counts for longer.
func From(at time.Time, maxAge time.Duration) Dated {
	return Dated{at.UTC().Truncate(time.Second), int64(maxAge / time.Second)}
}

// Until returns the last time at which the fact counts.
func (d Dated) Until() time.Time { return d.At.Add(time.Duration(d.MaxAge) * time.Second) }

// Predicate is what a receipt says.
type Predicate struct {
	Issued   Dated              `json:"issued"`
	Tenant   string             `json:"tenant,omitempty"` // whose pairs are in it; none: all pairs of the site
	Host     string             `json:"host,omitempty"`   // whose ports and attestation are in it alone; none: those of all hosts
	Verdict  string             `json:"verdict"`          // of the worst pair, as of v1.Isolation
	Reading  Reading            `json:"reading"`
	Parties  []Party            `json:"parties"` // sorted by name
	Pairs    []v1.IsolationPair `json:"pairs"`   // each pair that must be isolated, sorted
	Members  Members            `json:"members"`
	Topology Topology           `json:"topology"`
	Keys     Keys               `json:"keys"`
	// Attestations are of each host that has a member, sorted by host.
	Attestations []Attestation `json:"attestations"`
}

// Reading is how the fabric was read. Its age counts from its first request.
type Reading struct {
	Dated
	Ended       time.Time `json:"ended"`
	Digest      string    `json:"digest"`           // SHA-256 of the tables read, in hexadecimal
	Counts      *Counts   `json:"counts,omitempty"` // nil in a receipt that shows nothing of others
	Assumptions []string  `json:"assumptions"`      // what the verdicts take for granted
}

// Counts say how much was read, of the whole fabric.
type Counts struct {
	Requests   int `json:"requests"`
	Devices    int `json:"devices"`
	Switches   int `json:"switches"`
	Ends       int `json:"ends"` // ports of hosts
	Missing    int `json:"missing"`
	Undeclared int `json:"undeclared"`
	Unread     int `json:"unread"`
	Strays     int `json:"strays"`
}

// Party is a tenant, or other devices that tenants must be isolated from.
type Party struct {
	Name     string `json:"name"`
	Tenant   bool   `json:"tenant"`
	Declared int    `json:"declared"` // ports
	Found    int    `json:"found"`    // of these, where they are declared
}

// Members are the declared ports of tenants, and when they were declared so.
type Members struct {
	Dated
	Ports []v1.IsolationPort `json:"ports"` // sorted
}

// Topology is the declared topology in force.
type Topology struct {
	Dated
	Revision uint64 `json:"revision"`         // 0: none, or one without a number
	Digest   string `json:"digest,omitempty"` // "sha256:" and hexadecimal; empty: none is in force
}

// Keys are the epochs of management keys, sorted by kind.
type Keys struct {
	Dated
	Epochs []Epoch `json:"epochs"`
}

// Epoch counts the changes of one kind of key.
type Epoch struct {
	Kind  string `json:"kind"`
	Epoch uint64 `json:"epoch"`
}

// Attestation is how a host was judged last.
type Attestation struct {
	Dated
	Host   string      `json:"host"`
	Status result.Tier `json:"status"` // none: nothing about the host counts
	// Evidence is when the evidence that counts was accepted; zero: none counts.
	Evidence time.Time `json:"evidence,omitzero"`
	Adapters []Adapter `json:"adapters"` // that the evidence names, by GUID; none if no evidence counts
}

// Adapter is what evidence says of an adapter.
type Adapter struct {
	GUID      ib.GUID          `json:"guid"` // of the node
	Firmware  string           `json:"firmware"`
	Assurance attest.Assurance `json:"assurance"` // that the firmware is genuine
	Lock      attest.MLOCK     `json:"lock"`
	LockEpoch uint64           `json:"lock_epoch"` // of the key that locks it; 0: none of the service
}

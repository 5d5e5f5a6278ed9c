package admission

import (
	"slices"
	"time"

	"portcullis/api/fabric/ledger"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
)

// Record is what admission knows of one host beyond its inventory. A host
// without a Record is quarantined.
type Record struct {
	Phase v1.Phase  `json:"phase"` // as last reported and audited
	Since time.Time `json:"since"` // of Phase

	// Belongs to the present assignment; all zero while there is none.
	Cluster  string    `json:"cluster,omitempty"`
	Tenant   string    `json:"tenant,omitempty"`
	PKey     ib.PKey   `json:"p_key,omitzero"`
	Epoch    int64     `json:"epoch"`              // counts assignments, also past ones
	Window   time.Time `json:"window,omitzero"`    // evidence is taken until then
	Evidence *Evidence `json:"evidence,omitzero"`  // last accepted inside the window
	Sealed   time.Time `json:"sealed,omitzero"`    // when the host with this evidence was handed over; zero: it was not
	Granted  bool      `json:"granted,omitempty"`  // a grant was recorded: to move the host, release it
	Admitted bool      `json:"admitted,omitempty"` // was reported admitted: the window is closed permanently, and the age of the evidence no longer counts

	// Conflicts are the GUIDs that another host claims too. While there is any the host is held. They stay until an
	// operator resolves them, also when the assignment ends.
	Conflicts []Dispute `json:"conflicts,omitempty"`

	// Grants lists every grant of the host in the ledger, withdrawn ones
	// included, also of past assignments; sorted.
	Grants []string `json:"grants,omitempty"`

	Removed *Removal `json:"removed,omitzero"` // inventory has the host no longer

	Denial      *v1.Denial `json:"denial,omitzero"`
	DenialProof proof      `json:"denial_proof,omitzero"` // of the sender that was refused
	Token       string     `json:"token,omitempty"`       // SHA-256 of the status token, hex

	Certificate *Certificate `json:"certificate,omitzero"` // of the host's key; nil: it holds none
}

// denial returns the last refusal, nil if what was sent after it was accepted.
func (r *Record) denial() *v1.Denial {
	if r.Denial == nil || r.Sealed.After(r.Denial.Time) || r.Evidence != nil && r.Evidence.Time.After(r.Denial.Time) {
		return nil
	}
	return r.Denial
}

// Deny notes why a host whose TPM has answered was refused.
func (r *Record) Deny(d v1.Denial) { r.Denial, r.DenialProof = &d, provenTPM }

// Certificate is the one that a host holds. It counts as long as it stands in the
// Record with what it was given for.
type Certificate struct {
	SHA256  string    `json:"sha256"`  // of the DER, hex
	Session string    `json:"session"` // of the evidence that was sealed
	Epoch   int64     `json:"epoch"`   // assignment
	Until   time.Time `json:"until"`
}

// Evidence says which evidence was accepted. The whole verdict is in Verdicts.
type Evidence struct {
	Time    time.Time `json:"time"`
	Session string    `json:"session"`

	Reference string   `json:"reference,omitempty"` // set that has its measured boot
	Waived    []string `json:"waived,omitempty"`    // what was not demanded
	Nonce     []byte   `json:"nonce,omitempty"`     // that it answered

	Renewals int `json:"renewals,omitempty"` // further nonces that were given for its seal

	Judged string  `json:"judged,omitempty"` // names the policy and profile that it was judged by last (Options.judging)
	Lapses []Lapse `json:"lapses,omitempty"` // what of it no longer meets them
}

// Dispute is a GUID that two hosts claim: one by inventory, the other by
// evidence that its TPM vouched for.
type Dispute struct {
	Time time.Time `json:"time"`
	GUID ib.GUID   `json:"guid"`
	With string    `json:"with"` // the other host
}

// sealRecord is what a seal answers. Deleting it consumes it.
type sealRecord struct {
	Challenge *attest.SealChallenge `json:"challenge"`
	Host      string                `json:"host"`
	Epoch     int64                 `json:"epoch"`
	Source    string                `json:"source"`
}

// tokenRef leads from a token's hash to its host.
type tokenRef struct {
	Host string `json:"host"`
}

// Records holds each host's Record by host id.
func Records() store.Collection[Record] {
	return store.NewCollection[Record]("hosts", 2, upgradeConflict)
}

// Verdicts holds the last accepted verdict of each host by host id. It is never
// forgotten: a host that has one is known (Repair).
func Verdicts() store.Collection[attest.Verdict] {
	return store.NewCollection[attest.Verdict]("verdicts", 2, upgradeVerdict)
}

func seals() store.Collection[sealRecord] { return store.NewCollection[sealRecord]("seals", 1) }

// unsealed holds, by session, the first seal record of evidence that was accepted and not sealed yet: further ones are made
// from it.
func unsealed() store.Collection[sealRecord] { return store.NewCollection[sealRecord]("unsealed", 1) }

// boots holds what is known of the boots of each TPM, by the digest of its EK.
func boots() store.Collection[attest.BootHistory] {
	return store.NewCollection[attest.BootHistory]("boots", 1)
}

// lastStranger is the key of the one record in strangers.
const lastStranger = "last"

// strangers holds the last refusal of a host that is not in inventory.
func strangers() store.Collection[v1.Denial] { return store.NewCollection[v1.Denial]("strangers", 1) }

func tokens() store.Collection[tokenRef] { return store.NewCollection[tokenRef]("tokens", 1) }

// keys parses the record's grants. A key this service cannot read is an error,
// not an absence.
func (r *Record) keys() ([]ledger.Key, error) {
	out := make([]ledger.Key, 0, len(r.Grants))
	for _, g := range r.Grants {
		k, err := ledger.ParseKey(g)
		if err != nil {
			return nil, err
		}
		out = append(out, k)
	}
	return out, nil
}

// insert returns a sorted list with name in it.
func insert(list []string, name string) []string {
	i, there := slices.BinarySearch(list, name)
	if there {
		return list
	}
	return slices.Insert(slices.Clone(list), i, name)
}

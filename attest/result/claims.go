package result

import (
	"time"

	"portcullis/attest"
	"portcullis/fabricsm/ib"
)

// Profile names this package's definition of a result: the claims and their meanings, the format, which is a JWT signed by
// ES256 with its key named (kid), and its life.
const Profile = "urn:portcullis:attestation-result:1"

// Developer is the maker of the verifier (AR4SI section 2.2.2).
const Developer = "Portcullis"

// Bounds of a result.
const (
	// MaxLife is the longest time a result is good for.
	MaxLife = 10 * time.Minute
	// MinNonce and MaxNonce bound a relying party's nonce in bytes (RFC 9711 section 4.1).
	MinNonce, MaxNonce = 8, 64
	// MaxClaims bounds the encoded claims in bytes. A statement, which most of it
	// comes from, has at most 64 KiB.
	MaxClaims = 96 << 10
)

// Platform is the label of the appraisal of TPM and measured boot.
const Platform = "platform"

// AdapterLabel returns the label of the appraisal of an adapter: "hca-" and its node GUID.
func AdapterLabel(node ib.GUID) string { return "hca-" + node.String() }

// Claims is an attestation result. Times are whole seconds since 1970, digests
// lower-case hex, nonces base64 with padding.
type Claims struct {
	Profile   string               `json:"eat_profile"`
	Issuer    string               `json:"iss"` // the service, as its configuration names it
	Subject   string               `json:"sub"` // host id
	ID        string               `json:"jti"`
	IssuedAt  int64                `json:"iat"`
	NotBefore int64                `json:"nbf"`
	Expires   int64                `json:"exp"`
	Nonce     []byte               `json:"eat_nonce,omitempty"` // of the relying party; else of the session
	Verifier  Verifier             `json:"ear_verifier_id"`
	Status    Tier                 `json:"ear_status"` // the worst of the appraisals
	Submods   map[string]Appraisal `json:"submods"`    // by Platform and AdapterLabel
	Host      Host                 `json:"ear_portcullis_host"`
	Audit     *Audit               `json:"ear_portcullis_audit,omitempty"` // absent in results of earlier releases
}

// Audit is the last entry of the service's audit log when the result was made. A holder of the result can show later that
// the log has, or lacks, that entry.
type Audit struct {
	Hash   string `json:"hash"`             // of the entry
	Seq    uint64 `json:"seq,omitempty"`    // its number; not for hosts, which would learn how much goes on
	Branch uint64 `json:"branch,omitempty"` // how often operators had a state count that was rolled back
}

// Verifier says which software appraised.
type Verifier struct {
	Developer string `json:"developer"`
	Build     string `json:"build"`
}

// Appraisal is what was found of one attester.
type Appraisal struct {
	Status   Tier     `json:"ear_status"`
	Vector   Vector   `json:"ear_trustworthiness_vector,omitzero"`
	Policies []string `json:"ear_appraisal_policy_ids,omitempty"`
	Nonce    []byte   `json:"eat_nonce,omitempty"` // of the session that the evidence answered
	Adapter  *Adapter `json:"ear_portcullis_adapter,omitempty"`
}

// State says how far a host came, for people and programs that want to know more than
// the status.
type State string

// States of a host. Accepted evidence counts from Verified on.
const (
	StateUnattested State = "unattested" // no evidence counts: none was accepted, or it was voided or spent
	StateExpired    State = "expired"    // evidence was accepted, too long ago to lead to an admission
	StateHeld       State = "held"       // another host claims a GUID of this one, or this one another's
	StateVerified   State = "verified"   // evidence was accepted; the host can still attest, and is not admitted
	StateSealed     State = "sealed"     // and it was handed over: it attests nothing more in that boot; its ports are not in its partition
	StateAdmitted   State = "admitted"   // and its ports are in its partition: the host is its tenant's
)

// Host is what the service says of a host beyond EAR.
type Host struct {
	State      State    `json:"state"`
	Phase      string   `json:"phase"`            // of the host's life, as the API has it
	Epoch      int64    `json:"assignment_epoch"` // counts the host's assignments
	Sealed     bool     `json:"sealed"`
	AttestedAt int64    `json:"attested_at,omitempty"` // when evidence was accepted
	SealedAt   int64    `json:"sealed_at,omitempty"`
	Session    string   `json:"session,omitempty"` // hex of SHA-256 of the id of the session whose evidence counts
	EK         string   `json:"ek_sha256,omitempty"`
	Policy     string   `json:"policy,omitempty"`    // digest of the policy it was judged by
	Reference  string   `json:"reference,omitempty"` // class and version of the reference values its boot satisfies
	Statement  string   `json:"statement_sha256,omitempty"`
	Weaknesses []string `json:"weaknesses,omitempty"` // why it is not affirmed, including waived demands
	Reason     string   `json:"reason,omitempty"`     // of a state in which nothing counts
}

// Adapter is what evidence said of an adapter. One of a host without evidence has the
// GUIDs of inventory alone.
type Adapter struct {
	NodeGUID        ib.GUID   `json:"node_guid"`
	SystemImageGUID ib.GUID   `json:"system_image_guid,omitzero"`
	Ports           []Port    `json:"ports"`
	PSID            string    `json:"psid,omitempty"`
	Firmware        *Firmware `json:"firmware,omitempty"`
	Lock            *Lock     `json:"lock,omitempty"`
}

// Port is an InfiniBand port of an adapter.
type Port struct {
	Num  ib.PortNum `json:"port"`
	GUID ib.GUID    `json:"guid"`
}

// Firmware is what an adapter runs, and how sure that is.
type Firmware struct {
	Version   string           `json:"version"`
	Assurance attest.Assurance `json:"assurance"`
	Reference string           `json:"reference_sha256,omitempty"` // of the image that is the same
}

// Lock is how the settings of an adapter are protected.
type Lock struct {
	Method attest.LockMethod `json:"method"`
	MLOCK  attest.MLOCK      `json:"mlock"`
	Epoch  uint64            `json:"epoch"` // of the key that the service provided; 0: none
}

// Conclude sets the status to the worst of the appraisals.
func (c *Claims) Conclude() {
	tiers := make([]Tier, 0, len(c.Submods))
	for _, a := range c.Submods {
		tiers = append(tiers, a.Status)
	}
	c.Status = None
	if len(tiers) > 0 {
		c.Status = Worst(tiers...)
	}
}

// ForHost removes the claims that a host must not see about itself: the reference by which it was accepted, and the reasons
// why it is not affirmed. Status and vectors stay as they are.
func (c *Claims) ForHost() {
	c.Host.Reference, c.Host.Weaknesses, c.Host.Reason = "", nil, ""
	if c.Audit != nil {
		c.Audit = &Audit{Hash: c.Audit.Hash}
	}
}

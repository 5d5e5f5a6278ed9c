package attest

import (
	"portcullis/attest/reference"
	"portcullis/fabricsm/ib"
)

// Expected is what inventory says about a host. Evidence must agree with all
// of it: one HCA more or less is a refusal.
type Expected struct {
	Host     string        `json:"host"`
	EKDigest string        `json:"ek_digest"` // hex SHA-256 of the EK's SubjectPublicKeyInfo; "" = not pinned
	HCAs     []ExpectedHCA `json:"hcas"`

	// Class is that of the host among References, which are the reference values
	// of measured boots.
	Class      string          `json:"class"`
	References []reference.Set `json:"-"`
}

// ExpectedHCA is one adapter as inventory declares it.
type ExpectedHCA struct {
	NodeGUID        ib.GUID        `json:"node_guid"`
	SystemImageGUID ib.GUID        `json:"system_image_guid,omitzero"` // zero: not declared, not compared
	Ports           []ExpectedPort `json:"ports"`
	Lock            ExpectedLock   `json:"lock,omitzero"`
}

// ExpectedPort is one InfiniBand port of an adapter.
type ExpectedPort struct {
	Num  ib.PortNum `json:"port"`
	GUID ib.GUID    `json:"guid"`
}

// ExpectedLock is what the service knows of an adapter's lock. Zero values are
// not compared.
type ExpectedLock struct {
	Epoch uint64         `json:"epoch,omitzero"` // of the MLOCK key given out last
	File  string         `json:"file,omitempty"` // hex SHA-256 of the file signed for it
	Items []ExpectedItem `json:"items,omitempty"`
	// Leaves says that an operator decided that the adapter goes: no lock will do.
	Leaves bool `json:"leaves,omitzero"`
}

// ExpectedItem is a setting that is demanded: the bits of Mask must be those of
// Value, both in hex and as long as the item's data.
type ExpectedItem struct {
	Class    uint8  `json:"class"`
	Index    uint32 `json:"index"`
	Port     uint8  `json:"port,omitzero"`
	Host     uint8  `json:"host,omitzero"`
	Function uint8  `json:"function,omitzero"`
	Mask     string `json:"mask"`
	Value    string `json:"value"`
}

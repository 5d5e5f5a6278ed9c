package attest

import "portcullis/fabricsm/ib"

// Expected is what inventory says about a host. Evidence must agree with all
// of it: one HCA more or less is a refusal.
type Expected struct {
	Host     string        `json:"host"`
	EKDigest string        `json:"ek_digest"` // hex SHA-256 of the EK's SubjectPublicKeyInfo; "" = not pinned
	HCAs     []ExpectedHCA `json:"hcas"`
}

// ExpectedHCA is one adapter as inventory declares it.
type ExpectedHCA struct {
	NodeGUID        ib.GUID        `json:"node_guid"`
	SystemImageGUID ib.GUID        `json:"system_image_guid,omitzero"` // zero: not declared, not compared
	Ports           []ExpectedPort `json:"ports"`
}

// ExpectedPort is one InfiniBand port of an adapter.
type ExpectedPort struct {
	Num  ib.PortNum `json:"port"`
	GUID ib.GUID    `json:"guid"`
}

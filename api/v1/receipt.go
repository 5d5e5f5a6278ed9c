package v1

import "time"

// ReceiptRequest asks for a receipt.
type ReceiptRequest struct {
	Tenant        string `json:"tenant,omitempty" maxLength:"63" doc:"whose isolation it states; none: of all tenants. A credential of tenants names one"`
	Host          string `json:"host,omitempty" maxLength:"64" doc:"that it is about alone: its ports and attestation, and the pairs of its tenant"`
	Membership    bool   `json:"membership,omitempty" doc:"assume what membership of verify-isolation assumes; the receipt says so"`
	MaxAgeSeconds int64  `json:"max_age_seconds,omitempty" doc:"how long it counts, 60 to 2678400 (31 days); absent: a day"`
}

// ReceiptKey is a key that receipts are signed by.
type ReceiptKey struct {
	ID      string    `json:"keyid" doc:"SHA-256 of the SubjectPublicKeyInfo, in hexadecimal, as receipts name it"`
	Created time.Time `json:"created"`
	Signs   time.Time `json:"signs" doc:"from when on it signs"`
	Until   time.Time `json:"until,omitzero" doc:"when it is published no longer; absent: it is the newest"`
	PEM     string    `json:"pem" doc:"the public key (Ed25519)"`
}

// ReceiptKeys are they, the oldest first.
type ReceiptKeys struct {
	Keys []ReceiptKey `json:"keys"`
}

// ReceiptRotation asks for another key.
type ReceiptRotation struct {
	Drop   bool   `json:"drop,omitempty" doc:"publish all keys before no longer, and sign by the new one at once: they were stolen, or the root that opens them is lost"`
	Reason string `json:"reason" minLength:"1" maxLength:"256" doc:"why, for the audit log"`
}

// ReceiptLogQuery asks for a proof that the log of receipts of one size continues that of a smaller size.
type ReceiptLogQuery struct {
	From int64 `query:"from" required:"true" minimum:"1" doc:"size of the earlier head"`
	To   int64 `query:"to" required:"true" minimum:"1" doc:"size of the later head"`
}

// ReceiptLogConsistency is such a proof (RFC 6962, section 2.1.2).
type ReceiptLogConsistency struct {
	From   int64    `json:"from"`
	To     int64    `json:"to"`
	Hashes []string `json:"hashes" doc:"SHA-256, in base64"`
}

package api

// access is what a route demands of its caller. The zero value admits no caller, so that a route without a setting is
// closed. Of what asks for an operator's credential, package roles says which roles may use it, and access says whether a
// credential with ranges of P_Keys may.
type access uint8

const (
	accessNobody  access = iota
	accessPublic         // no credential: health, documents
	accessHost           // host-facing: evidence or a ticket speaks for itself
	accessStatus         // a host about itself: with its certificate, or a status token
	accessView           // any operator's credential
	accessAudit          // one that may read about all tenants: none with ranges of P_Keys
	accessOperate        // a credential that may change things everywhere: none with ranges of P_Keys
	accessTenancy        // one that may change clusters, and which hosts are in them, within its ranges of P_Keys
)

// asksCredential reports whether only a known credential opens a.
func (a access) asksCredential() bool {
	return a == accessView || a == accessAudit || a == accessOperate || a == accessTenancy
}

package api

import "portcullis/api/credential"

// access is what a route demands of its caller. The zero value admits no caller, so that a route without a setting is
// closed.
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

// allows reports whether a credential of role r may use a route of access a.
func (a access) allows(r credential.Role) bool {
	switch a {
	case accessPublic:
		return true
	case accessView, accessAudit:
		return r == credential.Viewer || r == credential.Operator
	case accessOperate, accessTenancy:
		return r == credential.Operator
	default:
		return false
	}
}

// asksCredential reports whether only a known credential opens a.
func (a access) asksCredential() bool {
	return a == accessView || a == accessAudit || a == accessOperate || a == accessTenancy
}

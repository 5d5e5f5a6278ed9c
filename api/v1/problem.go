package v1

// Problem is every error of the API: an RFC 9457 problem document
// (application/problem+json) with a stable Code for programs and a Hint for
// people.
type Problem struct {
	Type   string         `json:"type" doc:"always about:blank; branch on code"`
	Title  string         `json:"title" doc:"the kind of problem; the same for every occurrence of a code"`
	Status int            `json:"status" doc:"the HTTP status"`
	Code   string         `json:"code" doc:"stable name of the problem, snake_case"`
	Detail string         `json:"detail,omitempty" doc:"what happened this time"`
	Hint   string         `json:"hint,omitempty" doc:"what to do about it"`
	ID     string         `json:"request_id,omitempty" doc:"names this request in the service's log"`
	Errors []ProblemError `json:"errors,omitempty" doc:"each mistake of the request, with its place"`
}

// ProblemError is one mistake in a request: where, and what.
type ProblemError struct {
	Location string `json:"location,omitempty" doc:"for example body.name, or inventory.yaml:12"`
	Message  string `json:"message"`
}

// Codes of problems that the HTTP layer itself reports. Admission and
// inventory add their own.
const (
	CodeBadRequest       = "bad_request"        // 400: not JSON, or not the demanded shape of a request
	CodeCondition        = "condition_ignored"  // 400: a condition, such as If-Match, that the operation does not compare
	CodeTwoCredentials   = "two_credentials"    // 400: a client certificate and a token in one request
	CodeUnauthenticated  = "unauthenticated"    // 401: no credential, or not a known one
	CodeForbidden        = "forbidden"          // 403: the credential's role may not do this
	CodeEvidenceRefused  = "evidence_refused"   // 403: attestation refused; the reason is kept from the host
	CodeNotFound         = "not_found"          // 404: no such path or object
	CodeNotExamined      = "not_examined"       // 404: the isolation of all tenants was not examined since the instance started
	CodeMethodNotAllowed = "method_not_allowed" // 405
	CodeNotAcceptable    = "not_acceptable"     // 406: only JSON is spoken
	CodeOpensPath        = "opens_path"         // 409: packets of the partition pass at a port that is no member
	CodeOnlyInstance     = "only_instance"      // 409: no other instance could lead
	CodeReadOnly         = "read_only"          // 409: this socket shows the fabric and changes nothing
	CodeSealClosed       = "seal_closed"        // 409: the evidence cannot be sealed any more; the host must be rebooted
	CodeTimeout          = "timeout"            // 408: the request came too slowly
	CodeChanged          = "changed"            // 412: the object is not of the version that If-Match names
	CodeTooLarge         = "body_too_large"     // 413
	CodeMediaType        = "media_type"         // 415: the body is not application/json
	CodeNotLeader        = "not_leader"         // 421: only the leader answers this, and a request with a client certificate can't be passed on to it
	CodeInvalid          = "invalid_request"    // 422: well-formed, but values are wrong; see errors
	CodeCursor           = "cursor_invalid"     // 422: the value of after is not one that a page of this list had as next
	CodeChannelBinding   = "channel_binding"    // 426: evidence must come over TLS 1.3 that ends at the service
	CodeVersionMissing   = "version_missing"    // 428: the operation takes something away, and the request has no If-Match
	CodeNoReason         = "reason_missing"     // 422: the request does not say why it was sent
	CodeRateLimited      = "rate_limited"       // 429: this source asks too often
	CodeInternal         = "internal"           // 500: a fault of the service; the log has it under request_id
	CodeNoLeader         = "no_leader"          // 503: no instance leads as Subnet Manager at this moment, or it is not reached
	CodeSMElsewhere      = "sm_elsewhere"       // 503: another process has the subnet manager, and only it can answer
	CodeUnavailable      = "unavailable"        // 503: the store or the subnet manager cannot answer now
)

// Error returns the detail, or the title when there is none.
func (p *Problem) Error() string {
	if p.Detail != "" {
		return p.Detail
	}
	return p.Title
}

// Version is the answer of GET /version.
type Version struct {
	Version string `json:"version" doc:"version of the service"`
	API     string `json:"api" doc:"newest version of the API it speaks"`
}

// Readiness is the answer of GET /readyz: 200 when Ready, else 503.
type Readiness struct {
	Ready  bool        `json:"ready"`
	Checks []Condition `json:"checks"`
}

// Condition is one thing that must hold for the service to do its job.
type Condition struct {
	Name   string `json:"name" doc:"part of the service: api, store, sm, sa or admission"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty" doc:"why not"`
}

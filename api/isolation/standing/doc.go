// Package standing keeps how the isolation of all tenants stands: what the newest examination found, and what was reported of
// it. It records an event when that changes, once for all instances that lead one after the other.
package standing

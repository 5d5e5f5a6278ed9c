package tenancy

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"portcullis/api/audit"
	"portcullis/api/limit"
	"portcullis/api/refusal"
	"portcullis/api/store"
)

// maxDetail bounds what is kept of a refusal's detail.
const maxDetail = 512

// Codes of refusals that Refusals records.
const (
	codeOutOfScope  = "p_key_out_of_scope"  // because of a Scope
	codeTenantScope = "tenant_out_of_scope" // the same
	codeHostScope   = "host_out_of_scope"   // the same
	codeInUse       = "cluster_in_use"
	codeFullRefused = "full_membership_refused"
	codeReserved    = "p_key_reserved"
	codeOperators   = "operators_only"       // of a credential of tenants: what it asks for is for operators
	codeNamesTenant = "cluster_names_tenant" // a name begins with another tenant than that of the cluster
)

// Codes of other refusals that several places have.
const (
	codeName    = "name_invalid"
	codeExists  = "cluster_exists"
	codeNoPKeys = "pkeys_exhausted"
)

// Codes of objects that do not exist. Refusals records them of a credential that is confined to tenants: it may have reached
// for another's.
const (
	codeNoTenant  = "tenant_unknown"
	codeNoCluster = "cluster_unknown"
	codeNoHost    = "host_unknown"
)

// reach is the key by which refusals of credentials are limited.
type reach struct{ actor, code, object string }

// Refusals records refusals which mean that a credential reached for another's object. Its limits are its own: refusals of
// hosts and strangers keep none of a credential out of the audit log. Methods are safe for concurrent use.
type Refusals struct {
	store *store.Store
	log   *slog.Logger
	now   func() time.Time

	reaches *limit.Limiter[reach]
	all     *limit.Limiter[struct{}]
}

// NewRefusals makes a Refusals whose times are those of now.
func NewRefusals(s *store.Store, log *slog.Logger, now func() time.Time) *Refusals {
	return &Refusals{
		store: s, log: log, now: now,
		reaches: limit.New[reach](limit.Rate{PerSecond: 1.0 / 60, Burst: 1}),
		all:     limit.New[struct{}](limit.Rate{PerSecond: 2, Burst: 120}),
	}
}

// Note returns err. If that is such a refusal, it is put into the audit log before, one of a kind a minute.
func (r *Refusals) Note(ctx context.Context, c audit.Change, err error) error {
	var no *refusal.Error
	if !errors.As(err, &no) || !reaches(ctx, no.Code) {
		return err
	}
	r.log.Warn("refused", "actor", c.Actor, "action", c.Action, "object", c.Object, "code", no.Code, "detail", no.Detail)
	now := r.now()
	if !r.reaches.Allow(reach{c.Actor, no.Code, c.Object}, now) || !r.all.Allow(struct{}{}, now) {
		return err
	}
	c.Code, c.Detail = no.Code, refusal.ClipTo(no.Detail, maxDetail)
	_, failed := r.store.Update(ctx, func(tx *store.Tx) error { return audit.Log(ctx, tx, r.now(), &c) })
	if failed = refusal.Explain(failed); failed != nil {
		r.log.Error("a refusal could not be recorded", "actor", c.Actor, "action", c.Action, "err", failed)
	}
	return err
}

// reaches reports whether a refusal with a code means that the credential reached for another's object.
func reaches(ctx context.Context, code string) bool {
	if slices.Contains([]string{codeOutOfScope, codeTenantScope, codeHostScope, codeInUse, codeFullRefused, codeReserved, codeOperators}, code) {
		return true
	}
	return Confined(ctx) && slices.Contains([]string{codeNoTenant, codeNoCluster, codeNoHost, codeNamesTenant, codeNoQuota}, code)
}

// Package apitest serves the real API for tests: over the real services and a store in memory ([Site]), or over [Backend],
// which the scripts of the CLI and the laboratory of the agent use still.
package apitest

import (
	"context"
	"slices"
	"strings"
	"sync"

	"portcullis/api/ifmatch"
	"portcullis/api/page"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// Backend is an api.Backend that remembers in memory and decides little: any
// change a real service would need the fabric for happens when a test says so
// through SetHost. Methods are safe for concurrent use.
type Backend struct {
	// OnSession, OnEvidence and OnSeal answer attestation. Nil refuses.
	OnSession  func(*attest.SessionRequest) (*attest.Session, error)
	OnEvidence func(session string, channel []byte, ev *attest.Evidence) (*v1.AttestResult, error)
	OnSeal     func(session string, channel []byte, ev *attest.SealEvidence) (*v1.SealResult, error)

	mu       sync.Mutex
	assigned func(*v1.Host)
	released func(*v1.Host)
	hosts    map[string]v1.Host
	tenants  map[string]v1.Tenant
	clusters map[string]v1.Cluster
	renews   bool // see RenewAfterLook
	made     int  // tenants and clusters so far, for their versions
	pkeys    []v1.QuarantinedPKey
	repairs  map[string]v1.Repair
	denied   []v1.DeniedEK
	fabric   v1.Fabric
	sm       v1.SM
	tokens   map[string]string // status token to host

	certificates map[string][]byte // host to the certificate that it holds, DER

	watchers map[chan *v1.Host]string
}

// NewBackend returns a Backend that holds nothing.
func NewBackend() *Backend {
	return &Backend{
		hosts: map[string]v1.Host{}, repairs: map[string]v1.Repair{}, tenants: map[string]v1.Tenant{}, clusters: map[string]v1.Cluster{},
		tokens: map[string]string{}, certificates: map[string][]byte{}, watchers: map[chan *v1.Host]string{},
	}
}

// SetFabric, SetSM and SetQuarantined put what those routes answer in place.
func (b *Backend) SetFabric(f v1.Fabric) { b.mu.Lock(); defer b.mu.Unlock(); b.fabric = f }

// SetSM puts the subnet manager's state in place.
func (b *Backend) SetSM(s v1.SM) { b.mu.Lock(); defer b.mu.Unlock(); b.sm = s }

// RenewAfterLook has each tenant and cluster that is shown by itself created again right after, as another operator would. A
// command that names what it was shown is refused then.
func (b *Backend) RenewAfterLook(on bool) { b.mu.Lock(); defer b.mu.Unlock(); b.renews = on }

func notFound(kind, name string) error {
	return &refusal.Error{
		Code: kind + "_unknown", Status: refusal.NotFound,
		Detail: kind + " " + name + " does not exist", Hint: "list them with: portcullis " + kind + " list",
	}
}

func conflict(code, detail, hint string) error {
	return &refusal.Error{Code: code, Status: refusal.Conflict, Detail: detail, Hint: hint}
}

func changed(kind, name string) error {
	return &refusal.Error{
		Code: v1.CodeChanged, Status: refusal.Changed,
		Detail: kind + " " + name + " is not as the request has it in If-Match; nothing was done", Hint: "look at it again, then decide",
	}
}

// Fabric implements api.Backend.
func (b *Backend) Fabric(context.Context) (*v1.Fabric, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.fabric
	return &f, nil
}

// SM implements api.Backend.
func (b *Backend) SM(context.Context) (*v1.SM, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.sm
	return &s, nil
}

// BrakeState implements api.Backend: none stops anything.
func (b *Backend) BrakeState(context.Context) (*v1.Brakes, error) { return &v1.Brakes{}, nil }

// ReleaseBrake implements api.Backend.
func (b *Backend) ReleaseBrake(_ context.Context, _ string, in v1.BrakeRelease) (*v1.Brakes, error) {
	return nil, conflict("brake_open", "the brake of class "+in.Class+" stops nothing", "")
}

// ForgetUnseen implements api.Backend.
func (b *Backend) ForgetUnseen(_ context.Context, _ string, _ v1.SightAccept) (*v1.Sight, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.sm.Sight
	if was.State != v1.SightPartly {
		return nil, conflict("nothing_unseen", "the subnet manager sees the fabric that it knows: there is nothing to forget", "")
	}
	b.sm.Sight = v1.Sight{State: v1.SightClear}
	return &was, nil
}

func sorted[T any](b *Backend, m map[string]T, name func(T) string) ([]T, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []T
	for _, v := range m {
		out = append(out, v)
	}
	slices.SortFunc(out, func(x, y T) int { return strings.Compare(name(x), name(y)) })
	return out, nil
}

// paged is a page of sorted.
func paged[T any](b *Backend, list string, q v1.PageQuery, m map[string]T, name func(T) string) (*v1.List[T], error) {
	all, err := sorted(b, m, name)
	if err != nil {
		return nil, err
	}
	return page.Cut(list, q, all, func(v *T) string { return name(*v) })
}

func remove[T any](ctx context.Context, b *Backend, m map[string]T, version func(T) string, kind, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok := m[name]
	if !ok {
		return notFound(kind, name)
	}
	if !ifmatch.Matches(ctx, version(v)) {
		return changed(kind, name)
	}
	delete(m, name)
	return nil
}

// Review and its kin answer that no state is in review.
func (b *Backend) Review(context.Context) (*v1.Review, error) {
	return &v1.Review{Differences: []v1.ReviewDifference{}}, nil
}

// Approve is described at Review.
func (b *Backend) Approve(ctx context.Context, _ string, _ v1.ReviewDecision) (*v1.Review, error) {
	return b.Review(ctx)
}

// Reject is described at Review.
func (b *Backend) Reject(ctx context.Context, _ string, _ v1.ReviewDecision) (*v1.Review, error) {
	return b.Review(ctx)
}

// EndReview is described at Review.
func (b *Backend) EndReview(ctx context.Context, _ string, _ v1.ReviewEnd) (*v1.Review, error) {
	return b.Review(ctx)
}

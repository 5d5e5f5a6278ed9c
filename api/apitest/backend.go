// Package apitest serves the real API over an in-memory backend, for tests of
// clients: the CLI, the agent, the Go client.
package apitest

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"portcullis/api/admission"
	"portcullis/api/inventory"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
)

// Backend is an api.Backend that remembers in memory and decides little: any
// change a real service would need the fabric for happens when a test says so
// through SetHost. Methods are safe for concurrent use.
type Backend struct {
	// OnSession, OnEvidence, OnSeal and OnRenewSeal answer attestation. Nil refuses.
	OnSession  func(*attest.SessionRequest) (*attest.Session, error)
	OnEvidence func(session string, channel []byte, ev *attest.Evidence) (*v1.AttestResult, error)
	OnSeal     func(session string, channel []byte, ev *attest.SealEvidence) (*v1.SealResult, error)
	// OnResult answers who asks for a host's attestation result. Nil: none is signed.
	OnResult func(host string, nonce []byte) (*v1.AttestationResult, error)

	OnRenewSeal func(token, session string) (*attest.Seal, error)

	mu       sync.Mutex
	assigned func(*v1.Host)
	released func(*v1.Host)
	fail     error
	hosts    map[string]v1.Host
	tenants  map[string]v1.Tenant
	clusters map[string]v1.Cluster
	pkeys    []v1.QuarantinedPKey
	repairs  map[string]v1.Repair
	denied   []v1.DeniedEK
	fabric   v1.Fabric
	sm       v1.SM
	tokens   map[string]string // status token to host

	certificates map[string][]byte // host to the certificate that it holds, DER

	actors   []string // of every change, in order
	watchers map[chan *v1.Host]string
	ended    chan string
}

// NewBackend gives a Backend that holds nothing.
func NewBackend() *Backend {
	return &Backend{
		hosts: map[string]v1.Host{}, repairs: map[string]v1.Repair{}, tenants: map[string]v1.Tenant{}, clusters: map[string]v1.Cluster{},
		tokens: map[string]string{}, certificates: map[string][]byte{}, watchers: map[chan *v1.Host]string{}, ended: make(chan string, 16),
	}
}

// Fail makes every later call answer err; nil ends that.
func (b *Backend) Fail(err error) { b.mu.Lock(); defer b.mu.Unlock(); b.fail = err }

// OnAssign runs f after each assignment, for a test that plays the fabric.
func (b *Backend) OnAssign(f func(*v1.Host)) { b.mu.Lock(); defer b.mu.Unlock(); b.assigned = f }

// OnRelease runs f after each release.
func (b *Backend) OnRelease(f func(*v1.Host)) { b.mu.Lock(); defer b.mu.Unlock(); b.released = f }

// SetHost puts a host in place and tells watchers.
func (b *Backend) SetHost(h v1.Host) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hosts[h.ID] = h
	b.tell(h)
}

// SetFabric, SetSM and SetQuarantined put what those routes answer in place.
func (b *Backend) SetFabric(f v1.Fabric) { b.mu.Lock(); defer b.mu.Unlock(); b.fabric = f }

// SetSM puts the subnet manager's state in place.
func (b *Backend) SetSM(s v1.SM) { b.mu.Lock(); defer b.mu.Unlock(); b.sm = s }

// SetQuarantined puts the quarantined P_Keys in place.
func (b *Backend) SetQuarantined(q ...v1.QuarantinedPKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pkeys = q
}

// SetStatusToken lets token read the status of host.
func (b *Backend) SetStatusToken(token, host string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens[token] = host
}

// Actors gives who made each change so far.
func (b *Backend) Actors() []string { b.mu.Lock(); defer b.mu.Unlock(); return slices.Clone(b.actors) }

func notFound(kind, name string) error {
	return &admission.Error{
		Code: kind + "_unknown", Status: admission.NotFound,
		Detail: kind + " " + name + " does not exist", Hint: "list them with: portcullis " + kind + " list",
	}
}

func conflict(code, detail, hint string) error {
	return &admission.Error{Code: code, Status: admission.Conflict, Detail: detail, Hint: hint}
}

// tell sends h to its watchers; one that is slow loses the older state.
func (b *Backend) tell(h v1.Host) {
	for ch, id := range b.watchers {
		if id != h.ID {
			continue
		}
		select {
		case <-ch:
		default:
		}
		ch <- &h
	}
}

// OpenSession implements api.Backend.
func (b *Backend) OpenSession(_ context.Context, req *attest.SessionRequest, _ string) (*attest.Session, error) {
	b.mu.Lock()
	fail := b.fail
	b.mu.Unlock()
	if fail != nil {
		return nil, fail
	}
	if b.OnSession == nil {
		return nil, &attest.Refusal{Code: attest.ReasonInventory, Detail: "secret reason of the session"}
	}
	return b.OnSession(req)
}

// SubmitEvidence implements api.Backend.
func (b *Backend) SubmitEvidence(_ context.Context, id string, channel []byte, ev *attest.Evidence) (*v1.AttestResult, error) {
	b.mu.Lock()
	fail := b.fail
	b.mu.Unlock()
	if fail != nil {
		return nil, fail
	}
	if b.OnEvidence == nil {
		return nil, &attest.Refusal{Code: attest.ReasonProof, Detail: "secret reason of the evidence"}
	}
	return b.OnEvidence(id, channel, ev)
}

// SubmitSeal implements api.Backend.
func (b *Backend) SubmitSeal(_ context.Context, id string, channel []byte, ev *attest.SealEvidence) (*v1.SealResult, error) {
	b.mu.Lock()
	fail := b.fail
	b.mu.Unlock()
	if fail != nil {
		return nil, fail
	}
	if b.OnSeal == nil {
		return nil, &attest.Refusal{Code: attest.ReasonSeal, Detail: "secret reason of the seal"}
	}
	return b.OnSeal(id, channel, ev)
}

// RenewSeal implements api.Backend.
func (b *Backend) RenewSeal(_ context.Context, token, id string) (*attest.Seal, error) {
	b.mu.Lock()
	fail, host := b.fail, b.tokens[token]
	b.mu.Unlock()
	switch {
	case fail != nil:
		return nil, fail
	case host == "":
		return nil, &admission.Error{Code: "status_token", Status: admission.Refused, Detail: "no such status token"}
	case b.OnRenewSeal == nil:
		return nil, &admission.Error{Code: v1.CodeSealClosed, Status: admission.Conflict, Detail: "secret reason of the seal"}
	}
	return b.OnRenewSeal(token, id)
}

// AttestationResult implements api.Backend.
func (b *Backend) AttestationResult(ctx context.Context, id string, nonce []byte) (*v1.AttestationResult, error) {
	if b.OnResult == nil {
		return nil, &admission.Error{Code: "unavailable", Status: admission.Unavailable, Detail: "the service signs no attestation results", Hint: "give it a root"}
	}
	if _, err := b.Host(ctx, id); err != nil {
		return nil, err
	}
	return b.OnResult(id, nonce)
}

// ResolveGUID implements api.Backend.
func (b *Backend) ResolveGUID(_ context.Context, actor, id string, _ v1.GUIDResolved) (*v1.Host, error) {
	return b.change(actor, id, new(func(*v1.Host)), func(h *v1.Host) error {
		if h.Status.Conflicts == nil {
			return conflict("host_not_held", "no other host claims a GUID of host "+id, "")
		}
		h.Status.Conflicts = nil
		return nil
	})
}

// AcknowledgeClear implements api.Backend.
func (b *Backend) AcknowledgeClear(_ context.Context, actor, id string, _ v1.TPMCleared) (*v1.Host, error) {
	return b.change(actor, id, new(func(*v1.Host)), func(*v1.Host) error { return nil })
}

// HostStatusByToken implements api.Backend.
func (b *Backend) HostStatusByToken(ctx context.Context, token string) (*v1.Host, error) {
	b.mu.Lock()
	id, ok := b.tokens[token]
	b.mu.Unlock()
	if !ok {
		return nil, &admission.Error{Code: "status_token", Status: admission.Refused, Detail: "no such status token"}
	}
	return b.Host(ctx, id)
}

// HostStatusByCertificate implements api.Backend.
func (b *Backend) HostStatusByCertificate(ctx context.Context, host string, der []byte) (*v1.Host, error) {
	b.mu.Lock()
	holds := b.certificates[host]
	b.mu.Unlock()
	if holds == nil || !bytes.Equal(holds, der) {
		return nil, &admission.Error{Code: "certificate_unknown", Status: admission.Refused, Detail: "no such certificate"}
	}
	return b.Host(ctx, host)
}

// SetCertificate has a host hold a certificate (DER); nil: none.
func (b *Backend) SetCertificate(host string, der []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.certificates[host] = der
}

// ImportInventory implements api.Backend: each file is a list of host ids, a
// line each; a line with a space in it is a problem. One with an EK, HOST=EK, needs two
// persons.
func (b *Backend) ImportInventory(_ context.Context, actor string, files []inventory.File, t v1.RepairTicket, dryRun bool) (*v1.ImportReport, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		return nil, b.fail
	}
	bad := &admission.Error{
		Code: "inventory_invalid", Status: admission.Invalid, Detail: "the files are not an inventory",
		Hint: "nothing was changed; correct the files and import them again",
	}
	report := &v1.ImportReport{DryRun: dryRun, Added: []string{}, Changed: []v1.HostChange{}, NotInFile: []string{}, Staged: []v1.Repair{}}
	for _, f := range files {
		for id := range strings.Lines(string(f.Data)) {
			id = strings.TrimSuffix(id, "\n")
			if strings.Contains(id, " ") {
				bad.Problems = append(bad.Problems, f.Name+": host "+id+": want no spaces")
			}
			host, ek, another := strings.Cut(id, "=")
			if !another {
				report.Added = append(report.Added, id)
				continue
			}
			report.Staged = append(report.Staged, v1.Repair{
				Host: host, Ticket: t.Ticket, Reason: t.Reason, By: actor, EKWas: b.hosts[host].EK, EK: ek,
				Fields: []string{"ek_sha256: was " + b.hosts[host].EK + ", now " + ek}, Digest: strings.Repeat("5e", 32),
			})
		}
	}
	if bad.Problems != nil {
		return nil, bad
	}
	if len(report.Staged) > 0 && t.Ticket == "" && !dryRun {
		return nil, conflict("repair_needed", "that a host has another TPM is for two persons to say; nothing was imported", "give a ticket")
	}
	if !dryRun {
		for _, r := range report.Staged {
			b.repairs[r.Host] = r
		}
		for _, id := range report.Added {
			b.hosts[id] = v1.Host{ID: id, HCAs: []v1.HCA{}, Status: v1.HostStatus{Phase: v1.PhaseQuarantined, Guards: []v1.Guard{}}}
		}
		report.Revision = 7
		b.actors = append(b.actors, actor)
	}
	return report, nil
}

// Repairs implements api.Backend.
func (b *Backend) Repairs(context.Context) ([]v1.Repair, error) {
	return sorted(b, b.repairs, func(r v1.Repair) string { return r.Host })
}

// Repair implements api.Backend.
func (b *Backend) Repair(_ context.Context, host string) (*v1.Repair, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, there := b.repairs[host]
	if b.fail != nil {
		return nil, b.fail
	}
	if !there {
		return nil, notFound("repair", host)
	}
	return &r, nil
}

// ConfirmRepair implements api.Backend.
func (b *Backend) ConfirmRepair(ctx context.Context, actor, host string, in v1.RepairConfirm) (*v1.Repair, error) {
	r, err := b.Repair(ctx, host)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(r.Digest, in.Digest) {
		return nil, conflict("repair_changed", "the change of host "+host+" is another one", "")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.denied = append(b.denied, v1.DeniedEK{EK: r.EKWas, Host: host, Ticket: r.Ticket, By: actor})
	b.endRepair(actor, host)
	return r, nil
}

// CancelRepair implements api.Backend.
func (b *Backend) CancelRepair(ctx context.Context, actor, host string, _ v1.RepairCancel) (*v1.Repair, error) {
	r, err := b.Repair(ctx, host)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endRepair(actor, host)
	return r, nil
}

func (b *Backend) endRepair(actor, host string) {
	delete(b.repairs, host)
	b.actors = append(b.actors, actor)
}

// DeniedEKs implements api.Backend.
func (b *Backend) DeniedEKs(context.Context) ([]v1.DeniedEK, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.denied), b.fail
}

// Hosts implements api.Backend.
func (b *Backend) Hosts(context.Context) ([]v1.Host, error) {
	return sorted(b, b.hosts, func(h v1.Host) string { return h.ID })
}

// Host implements api.Backend.
func (b *Backend) Host(_ context.Context, id string) (*v1.Host, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.host(id)
}

func (b *Backend) host(id string) (*v1.Host, error) {
	if b.fail != nil {
		return nil, b.fail
	}
	h, ok := b.hosts[id]
	if !ok {
		return nil, notFound("host", id)
	}
	return &h, nil
}

// Assign implements api.Backend.
func (b *Backend) Assign(_ context.Context, actor, id string, a v1.Assignment) (*v1.Host, error) {
	return b.change(actor, id, &b.assigned, func(h *v1.Host) error {
		c, ok := b.clusters[a.Cluster]
		if !ok {
			return notFound("cluster", a.Cluster)
		}
		if h.Cluster != "" {
			return conflict("host_assigned", "host "+id+" is assigned to cluster "+h.Cluster, "release it first")
		}
		h.Cluster, h.Tenant, h.Status.Phase = c.Name, c.Tenant, v1.PhaseAwaiting
		return nil
	})
}

// Release implements api.Backend.
func (b *Backend) Release(_ context.Context, actor, id string) (*v1.Host, error) {
	return b.change(actor, id, &b.released, func(h *v1.Host) error {
		h.Status.Phase = v1.PhaseReleasing
		return nil
	})
}

// change applies f to a host, and then runs what follow points at.
func (b *Backend) change(actor, id string, follow *func(*v1.Host), f func(*v1.Host) error) (*v1.Host, error) {
	b.mu.Lock()
	h, err := b.host(id)
	if err == nil {
		err = f(h)
	}
	if err != nil {
		b.mu.Unlock()
		return nil, err
	}
	b.hosts[id] = *h
	b.actors = append(b.actors, actor)
	b.tell(*h)
	next := *follow
	b.mu.Unlock()
	if next != nil {
		next(h)
	}
	return h, nil
}

// Watch implements api.Backend.
func (b *Backend) Watch(ctx context.Context, id string) (<-chan *v1.Host, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h, err := b.host(id)
	if err != nil {
		return nil, err
	}
	ch := make(chan *v1.Host, 1)
	ch <- h
	b.watchers[ch] = id
	context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.watchers, ch)
		close(ch)
		select {
		case b.ended <- id:
		default:
		}
	})
	return ch, nil
}

// WatchEnded sends the host of each watch that ended; later ones are lost when
// nobody reads.
func (b *Backend) WatchEnded() <-chan string { return b.ended }

// Tenants implements api.Backend.
func (b *Backend) Tenants(context.Context) ([]v1.Tenant, error) {
	return sorted(b, b.tenants, func(t v1.Tenant) string { return t.Name })
}

// CreateTenant implements api.Backend.
func (b *Backend) CreateTenant(_ context.Context, actor string, n v1.NewTenant) (*v1.Tenant, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		return nil, b.fail
	}
	if _, ok := b.tenants[n.Name]; ok {
		return nil, conflict("tenant_exists", "tenant "+n.Name+" exists", "choose another name")
	}
	t := v1.Tenant{Name: n.Name, Created: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	b.tenants[n.Name] = t
	b.actors = append(b.actors, actor)
	return &t, nil
}

// DeleteTenant implements api.Backend.
func (b *Backend) DeleteTenant(_ context.Context, actor, name string) error {
	return remove(b, b.tenants, "tenant", actor, name)
}

// Clusters implements api.Backend.
func (b *Backend) Clusters(context.Context) ([]v1.Cluster, error) {
	return sorted(b, b.clusters, func(c v1.Cluster) string { return c.Name })
}

// Cluster implements api.Backend.
func (b *Backend) Cluster(_ context.Context, name string) (*v1.Cluster, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, ok := b.clusters[name]
	if b.fail != nil {
		return nil, b.fail
	}
	if !ok {
		return nil, notFound("cluster", name)
	}
	return &c, nil
}

// CreateCluster implements api.Backend.
func (b *Backend) CreateCluster(_ context.Context, actor string, n v1.NewCluster) (*v1.Cluster, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		return nil, b.fail
	}
	if _, ok := b.tenants[n.Tenant]; !ok {
		return nil, notFound("tenant", n.Tenant)
	}
	c := v1.Cluster{
		Name: n.Name, Tenant: n.Tenant, PKey: ib.PKey(0x0001 + len(b.clusters)), Hosts: []string{},
		Created: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
	}
	b.clusters[n.Name] = c
	b.actors = append(b.actors, actor)
	return &c, nil
}

// DeleteCluster implements api.Backend.
func (b *Backend) DeleteCluster(_ context.Context, actor, name string) error {
	b.mu.Lock()
	for _, h := range b.hosts {
		if h.Cluster == name {
			b.mu.Unlock()
			return conflict("cluster_in_use", "cluster "+name+" still has host "+h.ID, "release its hosts first")
		}
	}
	b.mu.Unlock()
	return remove(b, b.clusters, "cluster", actor, name)
}

// Use implements api.Backend.
func (b *Backend) Use(_ context.Context, actor, cluster, shared string, u v1.ClusterUse) (*v1.Cluster, error) {
	if u.Membership == v1.MembershipFull {
		return nil, &admission.Error{Code: "full_membership_refused", Status: admission.Refused, Detail: "cluster " + cluster + " asks for full membership of " + shared}
	}
	return b.changeUses(actor, cluster, shared, []string{shared})
}

// StopUse implements api.Backend.
func (b *Backend) StopUse(_ context.Context, actor, cluster, shared string) (*v1.Cluster, error) {
	return b.changeUses(actor, cluster, shared, nil)
}

func (b *Backend) changeUses(actor, cluster, shared string, uses []string) (*v1.Cluster, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, ok := b.clusters[cluster]
	if _, there := b.clusters[shared]; !ok || !there {
		return nil, notFound("cluster", cluster+" or "+shared)
	}
	c.Uses = uses
	b.clusters[cluster] = c
	b.actors = append(b.actors, actor)
	return &c, b.fail
}

// QuarantinedPKeys implements api.Backend.
func (b *Backend) QuarantinedPKeys(context.Context) ([]v1.QuarantinedPKey, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pkeys, b.fail
}

// Fabric implements api.Backend.
func (b *Backend) Fabric(context.Context) (*v1.Fabric, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.fabric
	return &f, b.fail
}

// SM implements api.Backend.
func (b *Backend) SM(context.Context) (*v1.SM, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.sm
	return &s, b.fail
}

func sorted[T any](b *Backend, m map[string]T, name func(T) string) ([]T, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []T
	for _, v := range m {
		out = append(out, v)
	}
	slices.SortFunc(out, func(x, y T) int { return strings.Compare(name(x), name(y)) })
	return out, b.fail
}

func remove[T any](b *Backend, m map[string]T, kind, actor, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		return b.fail
	}
	if _, ok := m[name]; !ok {
		return notFound(kind, name)
	}
	delete(m, name)
	b.actors = append(b.actors, actor)
	return nil
}

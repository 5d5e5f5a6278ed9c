package etcd

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"portcullis/api/store"
)

// Admin changes the members of a cluster of services, as a client of it.
type Admin struct {
	client *clientv3.Client
	remote Remote
}

// statusTimeout is how long a member may take to say how it is.
const statusTimeout = 5 * time.Second

// Administer connects to a cluster by the client URLs of its members. Where none can be
// used, the error names each of them and the cause.
func Administer(ctx context.Context, r Remote, log *slog.Logger) (*Admin, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: r.Endpoints, TLS: r.TLS, DialTimeout: cmp.Or(r.DialTimeout, DefaultDialTimeout),
		Context: context.WithoutCancel(ctx), Logger: quietLogger(log, func(error) {}),
	})
	if err != nil {
		return nil, r.whyNot(ctx, err)
	}
	a := &Admin{client, r}
	if _, err := a.list(ctx); err != nil {
		return nil, errors.Join(r.whyNot(ctx, err), a.Close())
	}
	return a, nil
}

// Close ends the connections.
func (a *Admin) Close() error { return closeClient(a.client) }

// Member is one member of a cluster, and how it answered.
type Member struct {
	ID      uint64
	Name    string // empty: it was never started
	Peer    string // URL
	Client  string // URL; empty: it was never started
	Learner bool   // it joined, and does not vote yet
	Leader  bool
	Size    int64 // of its records in bytes
	Index   uint64
	Err     error // why it could not be asked; nil if it answered
}

func (a *Admin) list(ctx context.Context) ([]*etcdserverpb.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, a.remote.requestTimeout())
	defer cancel()
	r, err := a.client.MemberList(ctx)
	if err != nil {
		return nil, err
	}
	return r.Members, nil
}

// Members returns all members by name, each asked how it is.
func (a *Admin) Members(ctx context.Context) ([]Member, error) {
	listed, err := a.list(ctx)
	if err != nil {
		return nil, a.remote.whyNot(ctx, err)
	}
	out := make([]Member, len(listed))
	var all sync.WaitGroup
	for i, l := range listed {
		out[i] = Member{ID: l.ID, Name: l.Name, Learner: l.IsLearner, Peer: strings.Join(l.PeerURLs, ","), Client: strings.Join(l.ClientURLs, ",")}
		if out[i].Client == "" {
			out[i].Err = errors.New("its service was not started yet")
			continue
		}
		all.Go(func() { a.ask(ctx, &out[i]) })
	}
	all.Wait()
	slices.SortFunc(out, func(a, b Member) int { return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return out, nil
}

func (a *Admin) ask(ctx context.Context, m *Member) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	s, err := a.client.Status(ctx, m.Client)
	if err != nil {
		at := a.remote
		at.Endpoints, at.DialTimeout = []string{m.Client}, statusTimeout
		m.Err = at.whyNot(ctx, err)
		return
	}
	m.Leader, m.Size, m.Index = s.Leader == m.ID, s.DbSize, s.RaftIndex
}

// Add makes room for a member that is to join, and returns what it starts with. It
// votes only once it has all records, so the quorum is not in danger. Asked again for
// the same peer URL before the member was started, it returns the same.
func (a *Admin) Add(ctx context.Context, name, peer string) (*Join, error) {
	members, err := a.Members(ctx)
	if err != nil {
		return nil, err
	}
	join, there := &Join{Members: map[string]string{name: peer}}, false
	for _, m := range members {
		switch {
		case m.Name == "" && m.Peer == peer:
			there = true
			continue
		case m.Name == "":
			return nil, fmt.Errorf("a member with the peer URL %s was added and never started: start its service, or remove it (portcullisd cluster remove %s)", m.Peer, m.Peer)
		case m.Name == name:
			return nil, fmt.Errorf("the cluster has a member %s already: choose another name, or replace it (portcullisd cluster replace)", name)
		case !strings.HasPrefix(m.Peer, "https://"):
			return nil, fmt.Errorf("member %s cannot be reached by others yet: restart its service, so that it takes the section cluster of its configuration", m.Name)
		}
		join.Members[m.Name] = m.Peer
	}
	if there {
		return join, nil
	}
	if len(members) >= MaxMembers {
		return nil, fmt.Errorf("the cluster has %d members, which is the most there may be: remove one first", len(members))
	}
	err = a.change(ctx, func(ctx context.Context) error {
		_, err := a.client.MemberAddAsLearner(ctx, []string{peer})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("add member %s: %w", name, explainAdmin(err))
	}
	return join, nil
}

// QuorumError says that a removal was refused, since the rest would not have a quorum.
type QuorumError struct {
	Name      string
	Voters    int // that would be left
	Reachable int // of these
}

func (e *QuorumError) Error() string {
	if e.Voters == 0 {
		return fmt.Sprintf("%s is the only voting member: without it there is no store", e.Name)
	}
	return fmt.Sprintf("without %s, %d of %d voting members would be reachable, and a quorum is %d: nothing was changed", e.Name, e.Reachable, e.Voters, e.Voters/2+1)
}

// MayRemove returns the member with a name, or one that never started by its peer URL.
// It returns a *QuorumError where the rest would have no quorum.
func (a *Admin) MayRemove(ctx context.Context, name string) (*Member, error) {
	members, err := a.Members(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	var found *Member
	rest := &QuorumError{Name: name}
	for i := range members {
		m := &members[i]
		if m.Name == name || m.Name == "" && m.Peer == name {
			found = m
			continue
		}
		names = append(names, cmp.Or(m.Name, m.Peer))
		if !m.Learner {
			rest.Voters++
			if m.Err == nil {
				rest.Reachable++
			}
		}
	}
	switch {
	case found == nil:
		return nil, fmt.Errorf("the cluster has no member %s; it has %s", name, strings.Join(names, ", "))
	case !found.Learner && rest.Reachable < rest.Voters/2+1:
		return nil, rest
	}
	return found, nil
}

// Remove removes a member from the cluster permanently. Its service stops. It refuses with a *QuorumError as MayRemove
// does. A leader hands over first.
func (a *Admin) Remove(ctx context.Context, name string) error {
	m, err := a.MayRemove(ctx, name)
	if err != nil {
		return err
	}
	if m.Leader {
		if err := a.handOver(ctx, m); err != nil {
			return fmt.Errorf("have %s hand over the lead: %w", name, err)
		}
	}
	err = a.change(ctx, func(ctx context.Context) error {
		_, err := a.client.MemberRemove(ctx, m.ID)
		return err
	})
	if err != nil {
		return fmt.Errorf("remove member %s: %w", name, explainAdmin(err))
	}
	return nil
}

// Members take no change of their number before each was connected to the others for
// five seconds.
const (
	changePatience = 30 * time.Second
	changeEvery    = 500 * time.Millisecond
)

// change calls do until the cluster does not call itself unhealthy any more, or this
// has lasted.
func (a *Admin) change(ctx context.Context, do func(context.Context) error) error {
	for late := time.Now().Add(changePatience); ; {
		one, cancel := context.WithTimeout(ctx, a.remote.requestTimeout())
		err := do(one)
		cancel()
		if !errors.Is(err, rpctypes.ErrUnhealthy) || time.Now().After(late) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(changeEvery):
		}
	}
}

// handOver has another voting member lead.
func (a *Admin) handOver(ctx context.Context, leader *Member) error {
	members, err := a.Members(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(members, func(m Member) bool { return m.ID != leader.ID && !m.Learner && m.Err == nil })
	if i < 0 {
		return &QuorumError{Name: leader.Name}
	}
	r := a.remote
	r.Endpoints = []string{leader.Client} // only the leader takes it
	one, err := Administer(ctx, r, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, a.remote.requestTimeout())
	defer cancel()
	_, err = one.client.MoveLeader(ctx, members[i].ID)
	return errors.Join(err, one.Close())
}

// Records returns the records that the cluster keeps under the prefix of a store. They are
// read and written until Close.
func (a *Admin) Records(prefix string) *store.Store {
	return store.New(&backend{client: a.client, remote: &a.remote}, prefix)
}

// Revoke distributes to all members a list of certificates, in DER, that they reject from then on.
// prefix is that of the store, and revision that of the list from which this one was made. Another list in force is an error.
func (a *Admin) Revoke(ctx context.Context, prefix string, list []byte, revision int64) error {
	ctx, cancel := context.WithTimeout(ctx, a.remote.requestTimeout())
	defer cancel()
	key := prefix + "/" + revokedName
	r, err := a.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).Then(clientv3.OpPut(key, string(list))).Commit()
	if err == nil && !r.Succeeded {
		err = errors.New("another machine revoked a certificate at the same time: call it again")
	}
	return err
}

// Revoked returns the list of revoked certificates that is in force in the cluster, with its revision; nil if none was
// distributed yet.
func (a *Admin) Revoked(ctx context.Context, prefix string, c *Cluster) (*x509.RevocationList, int64, error) {
	ctx, cancel := context.WithTimeout(ctx, a.remote.requestTimeout())
	defer cancel()
	r, err := a.client.Get(ctx, prefix+"/"+revokedName)
	if err != nil || len(r.Kvs) == 0 {
		return nil, 0, err
	}
	authority, err := c.Authority()
	if err != nil {
		return nil, 0, err
	}
	list, err := CheckRevoked(r.Kvs[0].Value, authority)
	if err != nil {
		return nil, 0, fmt.Errorf("the list of revoked certificates in the store was not made by the authority of the cluster: %w", err)
	}
	return list, r.Kvs[0].ModRevision, nil
}

// CheckRevoked returns an error for what is not a list of revoked certificates by the
// authority.
func CheckRevoked(list []byte, authority *x509.Certificate) (*x509.RevocationList, error) {
	l, err := x509.ParseRevocationList(list)
	if err != nil {
		return nil, err
	}
	return l, l.CheckSignatureFrom(authority)
}

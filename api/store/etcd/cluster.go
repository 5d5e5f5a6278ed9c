package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"
	"google.golang.org/grpc"

	"portcullis/api/store"
)

// PeerSubject is the common name of the certificates of members. A certificate with
// another name, such as that of a client, is no peer.
const PeerSubject = "portcullis member"

// MaxMembers is the most members that a cluster may have; three are usual.
const MaxMembers = 5

// Cluster makes the embedded member one of several. Files are PEM, except for Revoked.
type Cluster struct {
	Name         string // of this member; empty: it is alone
	Peer         string // URL at which the other members reach it
	PeerListen   string // ADDRESS:PORT it listens on for them; empty: that of Peer
	Client       string // URL for clients: commands, and services without a member
	ClientListen string // empty: that of Client
	CA           string // file with the authority of all members and clients
	Cert, Key    string // files of this member's certificate
	Revoked      string // file with the first list of certificates that are not taken any more, DER
	Join         string // file with what a member that joins begins with; needs not exist
}

// CheckURL returns an error for what is not a URL of a member: https, with host and port.
func CheckURL(s string) error {
	if err := CheckEndpoint(s); err != nil {
		return err
	}
	if !strings.HasPrefix(s, "https://") {
		return fmt.Errorf("%q: want https", s)
	}
	return nil
}

// Join is what a member needs for its first start in a cluster.
type Join struct {
	Members map[string]string `json:"members"` // names to peer URLs, this one's included
}

// maxJoin bounds the file.
const maxJoin = 64 << 10

// CheckFresh returns an error where a state directory holds records already, which
// joining a cluster would leave behind.
func CheckFresh(dir string) error {
	member := filepath.Join(dir, "etcd")
	if _, err := os.Stat(member); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("state directory %s holds records: a machine joins with none; move %s away if they are not needed", dir, member)
	}
	return nil
}

// Encode returns what Cluster.Join names.
func (j *Join) Encode() ([]byte, error) { return json.Marshal(j) }

// readJoin returns nil where no cluster is to be joined.
func readJoin(name string) (*Join, error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && info.Size() > maxJoin {
		err = fmt.Errorf("%s: more than %d bytes", name, maxJoin)
	}
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	j := &Join{}
	if err := json.Unmarshal(data, j); err != nil {
		return nil, fmt.Errorf("%s: %w: remove it, and join again", name, err)
	}
	return j, nil
}

// initial returns the members in etcd's form.
func (j *Join) initial() string {
	var out []string
	for name, peer := range j.Members {
		out = append(out, name+"="+peer)
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// revokedName is the key, below the prefix of the store, and the file in the state
// directory, with the list of certificates that the members do not take any more.
const revokedName = "cluster-revoked"

// configure has the member, with its state in dir, listen and take part in its cluster.
func (c *Cluster) configure(cfg *embed.Config, dir string) error {
	join, err := readJoin(c.Join)
	if err != nil {
		return err
	}
	revoked := filepath.Join(dir, revokedName)
	if err := c.takeRevoked(revoked); err != nil {
		return err
	}
	peer, err := url.Parse(c.Peer)
	if err != nil {
		return err
	}
	client, err := url.Parse(c.Client)
	if err != nil {
		return err
	}
	at := func(u *url.URL, listen string) []url.URL {
		l := *u
		if listen != "" {
			l.Host = listen
		}
		return []url.URL{l}
	}
	cfg.Name = c.Name
	cfg.AdvertisePeerUrls, cfg.ListenPeerUrls = []url.URL{*peer}, at(peer, c.PeerListen)
	cfg.AdvertiseClientUrls, cfg.ListenClientUrls = []url.URL{*client}, at(client, c.ClientListen)
	info := transport.TLSInfo{
		TrustedCAFile: c.CA, CertFile: c.Cert, KeyFile: c.Key, ClientCertAuth: true, CRLFile: revoked, MinVersion: tls.VersionTLS13,
	}
	cfg.ClientTLSInfo, cfg.PeerTLSInfo = info, info
	// The name of a peer's certificate identifies it. The address it calls from may be another one than it is reached at.
	cfg.PeerTLSInfo.AllowedCNs, cfg.PeerTLSInfo.SkipClientSANVerify = []string{PeerSubject}, true
	cfg.EnableGRPCGateway = false
	cfg.GRPCAdditionalServerOptions = []grpc.ServerOption{grpc.ChainUnaryInterceptor(departed)}
	// A member that is lost with its machine holds the store up for a second at most, which
	// is part of how long a lost leader is missed.
	cfg.TickMs, cfg.ElectionMs = 100, 500
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	if join != nil {
		cfg.InitialCluster, cfg.ClusterState = join.initial(), embed.ClusterStateFlagExisting
	}
	return nil
}

// takeRevoked brings the list in the state directory up to that of the configuration.
func (c *Cluster) takeRevoked(file string) error {
	list, err := os.ReadFile(c.Revoked)
	if err != nil {
		return err
	}
	if _, err := c.putRevoked(file, list); err != nil {
		return fmt.Errorf("%s: %w", c.Revoked, err)
	}
	return nil
}

// putRevoked writes a list, unless the file has as late a one. It refuses one that the
// cluster's authority did not sign.
func (c *Cluster) putRevoked(file string, list []byte) (changed bool, _ error) {
	authority, err := c.Authority()
	if err != nil {
		return false, err
	}
	next, err := CheckRevoked(list, authority)
	if err != nil {
		return false, fmt.Errorf("it is no list of revoked certificates by the authority of the cluster: %w", err)
	}
	if text, err := os.ReadFile(file); err == nil {
		if was, err := CheckRevoked(text, authority); err == nil && was.Number.Cmp(next.Number) >= 0 {
			return false, nil
		}
	}
	return true, renameio.WriteFile(file, list, 0o600)
}

// LatestRevoked returns the later of two lists of revoked certificates, DER: that of a file, and that which the running
// member keeps in its state directory, if there is one.
func LatestRevoked(file, dir string) ([]byte, error) {
	list, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	first, err := x509.ParseRevocationList(list)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	followed, err := os.ReadFile(filepath.Join(dir, revokedName))
	if errors.Is(err, fs.ErrNotExist) {
		return list, nil
	}
	if err != nil {
		return nil, err
	}
	if next, err := x509.ParseRevocationList(followed); err == nil && next.Number.Cmp(first.Number) > 0 {
		return followed, nil
	}
	return list, nil
}

// Authority reads the certificate of the authority of all members and clients.
func (c *Cluster) Authority() (*x509.Certificate, error) {
	data, err := os.ReadFile(c.CA)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s holds no certificate in PEM form", c.CA)
	}
	return x509.ParseCertificate(block.Bytes)
}

// FollowRevoked keeps the list of revoked certificates in the state directory dir up to
// that in the store, until ctx ends or the store can't be watched. New connections are
// judged by it at once.
func (c *Cluster) FollowRevoked(ctx context.Context, s *store.Store, dir string, log *slog.Logger) error {
	items, err := s.Backend().Read(ctx, s.Key(revokedName), false, 0)
	if err != nil {
		return err
	}
	take := func(list []byte) {
		switch changed, err := c.putRevoked(filepath.Join(dir, revokedName), list); {
		case err != nil:
			log.Error("the list of revoked certificates of the cluster was not taken", "error", err)
		case changed:
			log.Info("the list of revoked certificates of the cluster is a later one now")
		}
	}
	for _, i := range items.Items {
		take(i.Value)
	}
	for changes := range s.Watch(ctx, revokedName, items.Revision) {
		if changes.Err != nil {
			return changes.Err
		}
		for _, ch := range changes.Changes {
			if ch.Value != nil {
				take(ch.Value)
			}
		}
	}
	return ctx.Err()
}

// promoteEvery is how often a learner asks to become a voting member.
const promoteEvery = 250 * time.Millisecond

// enter brings the member's entry in its cluster up to date: a member that was alone
// gets its address, and one that joined becomes a voting member once it has the records.
func (m *member) enter(ctx context.Context, c *Cluster) error {
	server := m.etcd.Server
	id := server.MemberID()
	self := server.Cluster().Member(id)
	if self == nil {
		return fmt.Errorf("this member, %s, is not in the cluster any more: %s", c.Name, rejoin)
	}
	if !slices.Equal(self.PeerURLs, []string{c.Peer}) {
		changed := membership.Member{ID: id, RaftAttributes: membership.RaftAttributes{PeerURLs: []string{c.Peer}, IsLearner: self.IsLearner}}
		if _, err := server.UpdateMember(ctx, changed); err != nil {
			return fmt.Errorf("announce to the other members the address %s: %w", c.Peer, err)
		}
	}
	for server.IsLearner() {
		_, err := server.PromoteMember(ctx, uint64(id))
		if err == nil {
			break
		}
		// The leader refuses while this one lacks records. Other errors may pass, too.
		select {
		case <-ctx.Done():
			return fmt.Errorf("become a voting member: %w", err)
		case <-m.failed:
			return m.err()
		case <-time.After(promoteEvery):
		}
	}
	return nil
}

const rejoin = "to bring this machine back, move its records away (STATE_DIR/etcd) and join again with a new invitation"

// guard reports, until the member is closed, that it ended by itself: it was removed, or
// lost a listener.
func (m *member) guard() {
	server := m.etcd.Server
	select {
	case <-m.closing:
	case err := <-m.etcd.Err():
		m.fail(fmt.Errorf("the store's member stopped: %w", err))
	case <-server.StopNotify():
		select {
		case <-m.closing:
		default:
			m.fail(fmt.Errorf("the store's member stopped: it was removed from the cluster, or another one has its place: %s", rejoin))
		}
	}
}

// explainAdmin turns errors of changes to a cluster into ours.
func explainAdmin(err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrTooManyLearners):
		return errors.New("another machine is joining: start its service and wait until it votes, or remove its member")
	case errors.Is(err, rpctypes.ErrMemberNotEnoughStarted), errors.Is(err, rpctypes.ErrUnhealthy), errors.Is(err, etcderrors.ErrNotEnoughStartedMembers):
		return errors.New("the cluster refuses it, since it could lose its quorum: see that every member is reachable (portcullisd cluster list)")
	case errors.Is(err, rpctypes.ErrPeerURLExist):
		return errors.New("another member has this peer URL")
	}
	return err
}

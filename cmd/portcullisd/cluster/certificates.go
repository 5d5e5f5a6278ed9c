package cluster

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"

	"portcullis/api/ca"
	"portcullis/api/store/etcd"
	"portcullis/cmd/internal/input"
	"portcullis/cmd/portcullisd/command"
	"portcullis/cmd/portcullisd/config"
	"portcullis/cmd/portcullisd/newfile"
)

// authorityFiles are those of the authority of the cluster.
func (c *clusterCommand) authorityFiles() (cert, key string) {
	cert = c.config.Path(c.config.Cluster.CA)
	if c.caKey != "" {
		return cert, c.caKey
	}
	return cert, filepath.Join(filepath.Dir(cert), "ca.key")
}

func (c *clusterCommand) authority() (*ca.Authority, error) {
	certFile, keyFile := c.authorityFiles()
	if err := input.CheckPrivate(keyFile); err != nil {
		return nil, err
	}
	cert, err := input.ReadFile(certFile, input.Small)
	if err != nil {
		return nil, err
	}
	key, err := input.ReadFile(keyFile, input.Small)
	if err != nil {
		return nil, command.Hint(fmt.Errorf("the key of the cluster's authority: %w", err), "call it on the machine that has ca.key, or name it with --ca-key")
	}
	return ca.Load(ca.Pair{Cert: cert, Key: key})
}

// certify makes a certificate for a member with these URLs.
func (c *clusterCommand) certify(urls ...string) (*ca.Authority, ca.Pair, error) {
	hosts, err := hostsOf(urls...)
	if err != nil {
		return nil, ca.Pair{}, err
	}
	authority, err := c.authority()
	if err != nil {
		return nil, ca.Pair{}, err
	}
	pair, err := authority.IssuePeer(etcd.PeerSubject, hosts, c.now)
	return authority, pair, err
}

// issuedFile keeps the certificates that were made for a member or client, so that they
// can be revoked.
func (c *clusterCommand) issuedFile(name string) string {
	return filepath.Join(filepath.Dir(c.config.Path(c.config.Cluster.CA)), "issued", name+".pem")
}

// issued notes a certificate before it is given out.
func (c *clusterCommand) issued(name string, cert []byte) error {
	file := c.issuedFile(name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	was, err := input.ReadFile(file, config.MaxRevoked)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return renameio.WriteFile(file, append(was, cert...), 0o644)
}

// hostsOf returns the hosts of URLs, each once.
func hostsOf(urls ...string) ([]string, error) {
	var out []string
	for _, s := range urls {
		if err := etcd.CheckURL(s); err != nil {
			return nil, err
		}
		u, err := url.Parse(s)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, u.Hostname()) {
			out = append(out, u.Hostname())
		}
	}
	return out, nil
}

// begin makes the authority, and this machine the first member.
func (c *clusterCommand) begin(context.Context) error {
	conf := c.config
	if conf.Cluster.Name != "" {
		return fmt.Errorf("%s: this machine is member %s of a cluster already", c.file, conf.Cluster.Name)
	}
	if err := config.CheckMemberName(c.name); err != nil {
		return fmt.Errorf("--name %w", err)
	}
	hosts, err := hostsOf(c.peer, c.client)
	if err != nil {
		return err
	}
	changed, err := withSection(c.file, "cluster", map[string]string{"name": c.name, "peer": c.peer, "client": c.client})
	if err != nil {
		return err
	}
	authority, err := ca.New("Portcullis cluster CA", c.now)
	if err != nil {
		return err
	}
	root, err := authority.PEM()
	if err != nil {
		return err
	}
	pair, err := authority.IssuePeer(etcd.PeerSubject, hosts, c.now)
	if err != nil {
		return err
	}
	revoked, err := authority.Revoke(nil, nil, c.now)
	if err != nil {
		return err
	}
	_, keyFile := c.authorityFiles()
	m := &conf.Cluster
	made, err := writeMember(conf, []memberFile{
		{conf.Path(m.CA), root.Cert, 0o644},
		{keyFile, root.Key, 0o600},
		{conf.Path(m.Cert), pair.Cert, 0o644},
		{conf.Path(m.Key), pair.Key, 0o600},
		{conf.Path(m.Revoked), revoked, 0o644},
		{c.issuedFile(c.name), pair.Cert, 0o644},
	})
	if err != nil {
		return err
	}
	if err := writeWhole(c.file, changed, 0o640); err != nil {
		return errors.Join(err, removeAll(made))
	}
	fmt.Fprintf(c.stdout, `This machine is member %[1]s of a cluster of its own once its service is restarted; nothing is lost.
Invite another: portcullisd cluster invite --name NAME --peer https://HOST:2380 --client https://HOST:2379 --out FILE
%[2]s signs members: keep it where only operators get at it.
`, c.name, keyFile)
	return nil
}

// invite writes what another machine needs to join.
func (c *clusterCommand) invite(context.Context) error {
	if err := c.member(); err != nil {
		return err
	}
	if err := config.CheckMemberName(c.name); err != nil {
		return fmt.Errorf("--name %w", err)
	}
	authority, pair, err := c.certify(c.peer, c.client)
	if err != nil {
		return err
	}
	root, err := authority.PEM()
	if err != nil {
		return err
	}
	revoked, err := etcd.LatestRevoked(c.config.Path(c.config.Cluster.Revoked), c.config.Path(c.config.StateDir))
	if err != nil {
		return err
	}
	clients := []string{c.config.Cluster.Client}
	for _, known := range knownClients(c.config.JoinFile()) {
		if !slices.Contains(clients, known) && known != c.client && len(clients) < etcd.MaxMembers {
			clients = append(clients, known)
		}
	}
	data, err := json.MarshalIndent(&Invitation{
		Version: invitationVersion, Name: c.name, Peer: c.peer, Client: c.client, Clients: clients,
		CA: string(root.Cert), Cert: string(pair.Cert), Key: string(pair.Key), Revoked: revoked,
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := c.issued(c.name, pair.Cert); err != nil {
		return err
	}
	if err := newfile.Write(c.out, append(data, '\n'), 0o600); err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, `%[1]s invites %[2]s. It holds a key: carry it over a protected channel, and remove it here.
On %[2]s, with the configuration, tokens and roots of this machine and no records:
portcullisd cluster join --invitation FILE
`, c.out, c.name)
	return nil
}

// makeClient makes the files that a machine without a member names under etcd.
func (c *clusterCommand) makeClient(context.Context) error {
	if err := c.member(); err != nil {
		return err
	}
	if err := config.CheckMemberName(c.name); err != nil {
		return fmt.Errorf("--name %w", err)
	}
	authority, err := c.authority()
	if err != nil {
		return err
	}
	root, err := authority.PEM()
	if err != nil {
		return err
	}
	pair, err := authority.IssueClient("portcullis client "+c.name, c.now)
	if err != nil {
		return err
	}
	if err := absent(c.out); err != nil {
		return err
	}
	if err := c.issued(c.name, pair.Cert); err != nil {
		return err
	}
	at := func(name string) string { return filepath.Join(c.out, name) }
	if _, err := writeMember(c.config, []memberFile{{at("ca.pem"), root.Cert, 0o644}, {at("client.pem"), pair.Cert, 0o644}, {at("client.key"), pair.Key, 0o600}}); err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "Made in %s: ca.pem, client.pem and client.key, for etcd.ca, etcd.cert and etcd.key of %s, with etcd.endpoints: [%s, ...].\n", c.out, c.name, c.config.Cluster.Client)
	return nil
}

// revoke has the certificates of a member or client not taken any more.
func (c *clusterCommand) revoke(ctx context.Context) (err error) {
	a, err := c.administer(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	if c.name == c.config.Cluster.Name {
		return fmt.Errorf("%s is this machine: revoke it on another member", c.name)
	}
	return c.revokeIn(ctx, a)
}

// revokeIn revokes all certificates that were made for c.name.
func (c *clusterCommand) revokeIn(ctx context.Context, a *etcd.Admin) error {
	data, err := input.ReadFile(c.issuedFile(c.name), config.MaxRevoked)
	if err != nil {
		return command.Hint(fmt.Errorf("the certificate of %s is still taken: it is not known here: %w", c.name, err),
			"on the machine where it was made: portcullisd cluster revoke --name "+c.name)
	}
	authority, err := c.authority()
	if err != nil {
		return fmt.Errorf("the certificate of %s is still taken: %w", c.name, err)
	}
	file := c.config.Path(c.config.Cluster.Revoked)
	text, err := input.ReadFile(file, config.MaxRevoked)
	if err != nil {
		return err
	}
	list, err := x509.ParseRevocationList(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	// Another machine may have revoked others since this one got its list.
	member := c.config.Member()
	inForce, revision, err := a.Revoked(ctx, c.config.Etcd.Prefix, &member)
	if err != nil {
		return err
	}
	var serials []*big.Int
	for _, l := range []*x509.RevocationList{list, inForce} {
		if l == nil {
			continue
		}
		for _, e := range l.RevokedCertificateEntries {
			serials = append(serials, e.SerialNumber)
		}
		if l.Number.Cmp(list.Number) > 0 {
			list = l
		}
	}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return fmt.Errorf("%s: %w", c.issuedFile(c.name), err)
		}
		serials = append(serials, cert.SerialNumber)
	}
	next, err := authority.Revoke(serials, list.Number, c.now)
	if err != nil {
		return err
	}
	if err := writeWhole(file, next, 0o644); err != nil {
		return err
	}
	if err := a.Revoke(ctx, c.config.Etcd.Prefix, next, revision); err != nil {
		return fmt.Errorf("announce to the members that the certificate of %s is revoked: %w", c.name, err)
	}
	fmt.Fprintf(c.stdout, "Revoked the certificates of %s: no member takes a new connection with one.\n", c.name)
	return nil
}

// renew issues the certificate of this member again. The service reads it for the next connection.
func (c *clusterCommand) renew(context.Context) error {
	if err := c.member(); err != nil {
		return err
	}
	m := &c.config.Cluster
	_, pair, err := c.certify(m.Peer, m.Client)
	if err != nil {
		return err
	}
	if err := c.issued(m.Name, pair.Cert); err != nil {
		return err
	}
	if err := errors.Join(writeWhole(c.config.Path(m.Key), pair.Key, 0o600), writeWhole(c.config.Path(m.Cert), pair.Cert, 0o644)); err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "Renewed the certificate of %s; it is taken for new connections.\n", m.Name)
	return nil
}

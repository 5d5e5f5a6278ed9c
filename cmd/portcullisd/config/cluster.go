package config

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"time"

	"portcullis/api/store/etcd"
	"portcullis/cmd/internal/input"
)

// Cluster makes this machine's embedded store one member of several.
type Cluster struct {
	Name         string `yaml:"name"`
	Peer         string `yaml:"peer"`
	PeerListen   string `yaml:"peer_listen"`
	Client       string `yaml:"client"`
	ClientListen string `yaml:"client_listen"`
	CA           string `yaml:"ca"`
	Cert         string `yaml:"cert"`
	Key          string `yaml:"key"`
	Revoked      string `yaml:"revoked"`
}

func defaultCluster() Cluster {
	return Cluster{CA: "cluster/ca.pem", Cert: "cluster/member.pem", Key: "cluster/member.key", Revoked: "cluster/revoked.crl"}
}

var memberName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)

// CheckMemberName returns an error for what cannot name a member or an instance.
func CheckMemberName(name string) error {
	if !memberName.MatchString(name) {
		return fmt.Errorf("%.80q: want 1 to 63 small letters, digits, hyphens and dots", name)
	}
	return nil
}

func (k *checker) cluster(c *Cluster, endpoints []string) {
	if c.Name == "" {
		if c.Peer != "" || c.Client != "" {
			k.wrong("cluster.name", "is empty: name this machine's member, or leave the section as it was")
		}
		return
	}
	if len(endpoints) > 0 {
		k.wrong("cluster.name", "%q with etcd.endpoints: the store is embedded, or an etcd of the site's own, not both", c.Name)
	}
	if err := CheckMemberName(c.Name); err != nil {
		k.wrong("cluster.name", "%v", err)
	}
	for key, url := range map[string]struct{ url, listen string }{
		"peer": {c.Peer, c.PeerListen}, "client": {c.Client, c.ClientListen},
	} {
		if err := etcd.CheckURL(url.url); err != nil {
			k.wrong("cluster."+key, "%v", err)
			continue
		}
		if err := checkListen(url.url, url.listen); err != nil {
			k.wrong("cluster."+key+"_listen", "%v", err)
		}
	}
	for key, file := range map[string]string{"ca": c.CA, "cert": c.Cert, "key": c.Key, "revoked": c.Revoked} {
		k.set("cluster."+key, file)
	}
}

// instance checks by which name, and where, other instances know this one.
func (k *checker) instance(c *Config) {
	if c.Instance != "" {
		if err := CheckMemberName(c.Instance); err != nil {
			k.wrong("instance", "%v", err)
		}
	}
	if c.Advertise != "" {
		u, err := url.Parse(c.Advertise)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
			k.wrong("advertise", "%q: want https://HOST:PORT", c.Advertise)
		}
	}
	k.between("lease", c.Lease, time.Second, time.Minute)
	if c.Lease%time.Second != 0 {
		k.wrong("lease", "%v: want whole seconds", c.Lease)
	}
}

// checkListen returns an error for what cannot be listened on: an address and a port, or
// nothing where the URL has an address for its host.
func checkListen(of, listen string) error {
	if listen == "" {
		u, err := url.Parse(of)
		if err != nil {
			return err
		}
		listen = u.Host
	}
	host, _, err := net.SplitHostPort(listen)
	if err != nil || net.ParseIP(host) == nil && host != "localhost" {
		return fmt.Errorf("%q: want ADDRESS:PORT with an IP address, for example 0.0.0.0:2380", listen)
	}
	return nil
}

// JoinFile is beside the certificates.
func (c *Config) JoinFile() string {
	return filepath.Join(filepath.Dir(c.Path(c.Cluster.CA)), "join.json")
}

// Member returns the section with full names of files.
func (c *Config) Member() etcd.Cluster {
	m := &c.Cluster
	if m.Name == "" {
		return etcd.Cluster{}
	}
	return etcd.Cluster{
		Name: m.Name, Peer: m.Peer, PeerListen: m.PeerListen, Client: m.Client, ClientListen: m.ClientListen,
		CA: c.Path(m.CA), Cert: c.Path(m.Cert), Key: c.Path(m.Key), Revoked: c.Path(m.Revoked), Join: c.JoinFile(),
	}
}

// LoadCluster judges the files that the section names.
func LoadCluster(c *Config, now time.Time) (etcd.Cluster, error) {
	m := c.Member()
	if m.Name == "" {
		return m, nil
	}
	client, err := LoadClientTLS("cluster", m.CA, m.Cert, m.Key, now)
	if err != nil {
		return m, err
	}
	pair, err := tls.LoadX509KeyPair(m.Cert, m.Key)
	if err != nil {
		return m, fmt.Errorf("cluster.cert: %w", err)
	}
	if pair.Leaf.Subject.CommonName != etcd.PeerSubject {
		return m, fmt.Errorf("cluster.cert: %s is no certificate of a member: it is for %q", m.Cert, pair.Leaf.Subject.CommonName)
	}
	for key, of := range map[string]string{"peer": m.Peer, "client": m.Client} {
		u, err := url.Parse(of)
		if err != nil {
			return m, err
		}
		_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: client.RootCAs, DNSName: u.Hostname(), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
		if err != nil {
			return m, fmt.Errorf("cluster.cert: %s does not serve cluster.%s (%s): %w", m.Cert, key, of, err)
		}
	}
	list, err := input.ReadFile(m.Revoked, MaxRevoked)
	if err != nil {
		return m, fmt.Errorf("cluster.revoked: %w", err)
	}
	authority, err := m.Authority()
	if err != nil {
		return m, fmt.Errorf("cluster.ca: %w", err)
	}
	if _, err := etcd.CheckRevoked(list, authority); err != nil {
		return m, fmt.Errorf("cluster.revoked: %s: %w", m.Revoked, err)
	}
	return m, nil
}

// MaxRevoked bounds a list of revoked certificates.
const MaxRevoked = 1 << 20

package config

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"portcullis/api/store/etcd"
	"portcullis/cmd/internal/input"
	"portcullis/fabricsm/ib"
)

// Etcd names an etcd of the site's own.
type Etcd struct {
	Endpoints      []string      `yaml:"endpoints"`
	Prefix         string        `yaml:"prefix"`
	CA             string        `yaml:"ca"`
	Cert           string        `yaml:"cert"`
	Key            string        `yaml:"key"`
	User           string        `yaml:"user"`
	Password       string        `yaml:"password"`
	DialTimeout    time.Duration `yaml:"dial_timeout"`
	RequestTimeout time.Duration `yaml:"request_timeout"`
}

// maxEndpoints bounds the list of endpoints.
const maxEndpoints = 16

func defaultEtcd() Etcd {
	return Etcd{Prefix: "portcullis", DialTimeout: etcd.DefaultDialTimeout, RequestTimeout: etcd.DefaultRequestTimeout}
}

func (k *checker) etcd(e *Etcd) {
	if len(e.Endpoints) > maxEndpoints {
		k.wrong("etcd.endpoints", "%d of them: want at most %d", len(e.Endpoints), maxEndpoints)
	}
	for _, endpoint := range e.Endpoints {
		if err := etcd.CheckEndpoint(endpoint); err != nil {
			k.wrong("etcd.endpoints", "%v", err)
		}
	}
	if err := etcd.CheckPrefix(e.Prefix); err != nil {
		k.wrong("etcd.prefix", "%v", err)
	}
	if (e.Cert == "") != (e.Key == "") {
		k.wrong("etcd.cert", "%q with key %q: name both, or none", e.Cert, e.Key)
	}
	if (e.User == "") != (e.Password == "") {
		k.wrong("etcd.user", "%q with password %q: name both, the password by its file, or none", e.User, e.Password)
	}
	if len(e.Endpoints) == 0 && (e.CA != "" || e.Cert != "" || e.User != "") {
		k.wrong("etcd.endpoints", "is empty, so the store is below state_dir and takes neither certificate nor user name: name the endpoints, or leave the section empty")
	}
	k.between("etcd.dial_timeout", e.DialTimeout, 100*time.Millisecond, time.Minute)
	k.between("etcd.request_timeout", e.RequestTimeout, 100*time.Millisecond, time.Minute)
	if name, ok := strings.CutPrefix(e.Password, credentialPrefix); ok && (name == "" || filepath.Base(name) != name) {
		k.wrong("etcd.password", "%q: want %sNAME, with no slash in the name", e.Password, credentialPrefix)
	}
}

// loadEtcd reads the files that the section names. Without endpoints it returns a Remote
// without any.
func loadEtcd(c *Config, now time.Time) (r etcd.Remote, _ error) {
	e := &c.Etcd
	if len(e.Endpoints) == 0 {
		return etcd.Remote{}, nil
	}
	r = etcd.Remote{Endpoints: e.Endpoints, User: e.User, DialTimeout: e.DialTimeout, RequestTimeout: e.RequestTimeout}
	var errs []error
	var err error
	if r.TLS, err = LoadClientTLS("etcd", c.Path(e.CA), c.Path(e.Cert), c.Path(e.Key), now); err != nil {
		errs = append(errs, err)
	}
	if e.Password != "" {
		if r.Password, err = loadPassword(c, e.Password); err != nil {
			errs = append(errs, fmt.Errorf("etcd.password: %w", err))
		}
	}
	return r, errors.Join(errs...)
}

// LoadClientTLS reads what a client of etcd shows and believes; each file may be "". The
// certificate is read again for each connection, so that a renewed one needs no restart.
func LoadClientTLS(section, caFile, certFile, keyFile string, now time.Time) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		data, err := input.ReadFile(caFile, input.Small)
		if err != nil {
			return nil, fmt.Errorf("%s.ca: %w", section, err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("%s.ca: %s holds no certificate in PEM form", section, caFile)
		}
	}
	if certFile == "" {
		return cfg, nil
	}
	if err := input.CheckPrivate(keyFile); err != nil {
		return nil, fmt.Errorf("%s.key: %w", section, err)
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("%s.cert: %w", section, err)
	}
	if now.After(pair.Leaf.NotAfter) || now.Before(pair.Leaf.NotBefore) {
		return nil, fmt.Errorf("%s.cert: %s is valid from %s to %s, and not now: have another one made",
			section, certFile, pair.Leaf.NotBefore.UTC().Format(time.RFC3339), pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		return &pair, err
	}
	return cfg, nil
}

// loadPassword reads a password from a file, without the end of its line, or from a
// credential of systemd. Errors do not quote it.
func loadPassword(c *Config, from string) (ib.SecretText, error) {
	file := c.Path(from)
	if name, ok := strings.CutPrefix(from, credentialPrefix); ok {
		file = filepath.Join(os.Getenv("CREDENTIALS_DIRECTORY"), name)
	} else if err := input.CheckPrivate(file); err != nil {
		return ib.SecretText{}, err
	}
	text, err := input.ReadFile(file, input.Small)
	if err != nil {
		return ib.SecretText{}, err
	}
	text = bytes.TrimRight(text, "\r\n")
	if len(text) == 0 || len(text) > 1024 || bytes.ContainsAny(text, "\r\n\x00") {
		return ib.SecretText{}, fmt.Errorf("%s: want one line of 1 to 1024 bytes", file)
	}
	return ib.NewSecretText(string(text)), nil
}

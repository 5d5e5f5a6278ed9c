package config

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"portcullis/api"
	"portcullis/api/audit/anchor"
	"portcullis/api/clientcert"
	"portcullis/api/credential"
	"portcullis/api/hostca"
	"portcullis/api/inventory/signature"
	"portcullis/api/locks"
	"portcullis/api/oidc"
	"portcullis/api/results"
	"portcullis/api/servercert"
	"portcullis/api/store/etcd"
	"portcullis/api/trace/otlp"
	"portcullis/api/webhook/delivery"
	"portcullis/attest"
	"portcullis/cmd/internal/input"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/vault"
)

// Files is what the files named in the configuration hold.
type Files struct {
	Etcd    etcd.Remote  // without endpoints: the store is below the state directory
	Cluster etcd.Cluster // without name: the embedded store is alone
	Cert    *servercert.Certificate
	Tokens  *credential.Tokens
	Issuers []oidc.Issuer          // identity providers
	Clients []clientcert.Authority // of certificates of clients
	Policy  *attest.Policy
	Core    sm.Config        // of the Subnet Manager
	Locks   *locks.Options   // of adapters; nil: none are locked
	Results *results.Options // nil: no attestation results are signed

	Hosts *hostca.Options // certificates of hosts; nil: they get none

	Anchors []anchor.Sink // of the audit log

	Manifests *signature.Set // keys of rack manifests; nil: none are pinned

	Webhooks []delivery.Webhook // where events are sent, the other exits among them

	Traces *otlp.Options // which collector has traces; nil: none has

	// closed says why attestation refuses every host; empty when it does not.
	Closed string
}

// ReadFiles reads every file the configured roles need. All problems are
// reported together.
func ReadFiles(c *Config) (*Files, error) {
	p := &Files{}
	var errs []error
	try := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	var err error
	p.Etcd, err = loadEtcd(c, time.Now())
	try(err)
	p.Cluster, err = LoadCluster(c, time.Now())
	try(err)
	p.Anchors, err = loadAnchors(c, time.Now())
	try(err)
	if c.Has(RoleAPI) {
		var err error
		try(input.CheckPrivate(c.Path(c.TLS.Key)))
		p.Cert, err = servercert.Load(c.Path(c.TLS.Cert), c.Path(c.TLS.Key))
		try(err)
		p.Tokens, err = LoadTokens(c)
		try(err)
		p.Issuers, err = loadIssuers(c, time.Now())
		try(err)
		p.Clients, err = LoadClientAuthorities(c)
		try(err)
		p.Policy, p.Closed, err = loadPolicy(c)
		try(err)
		p.Locks, err = loadLocks(c)
		try(err)
		p.Hosts, err = loadHostCertificates(c)
		try(err)
		p.Results, err = loadResults(c)
		try(err)
		p.Manifests, err = loadManifestKeys(c)
		try(err)
		p.Webhooks, err = loadWebhooks(c, time.Now())
		try(err)
		others, err := loadExits(c, time.Now())
		try(err)
		p.Webhooks = append(p.Webhooks, others...)
		p.Traces, err = loadTraces(c, time.Now())
		try(err)
	}
	if c.Has(RoleSM) {
		var err error
		p.Core, err = c.Fabric.Core(c.Path)
		try(err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return p, nil
}

// SessionRoot returns the root that keys of attestation sessions are sealed under in the store: that of attestation results, or
// else of certificates of hosts. All instances have the same. Nil: there is neither, and each instance keeps its own in memory.
func (p *Files) SessionRoot() vault.Root {
	switch {
	case p.Results != nil:
		return p.Results.Root
	case p.Hosts != nil:
		return p.Hosts.Root
	default:
		return nil
	}
}

// LoadTokens reads the operator tokens.
func LoadTokens(c *Config) (*credential.Tokens, error) {
	file := c.Path(c.Tokens)
	data, err := input.ReadFile(file, input.Small)
	if err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	tokens, err := credential.Parse(file, data)
	if err != nil {
		return nil, err
	}
	return tokens, checkTokenNames(file, tokens)
}

// loadPolicy makes the attestation policy. Without roots, a mode that needs a chain yields a policy that refuses every
// host, and the reason.
func loadPolicy(c *Config) (_ *attest.Policy, closed string, _ error) {
	a := c.Attestation
	rootless := len(a.EK.Roots) == 0 && (a.EK.Mode == attest.EKPinnedChain || a.EK.Mode == attest.EKChainApprove)
	if rootless {
		a.EK.Mode = attest.EKPinned // so that all the rest is checked
	}
	section, err := yaml.Dump(&a)
	if err != nil {
		return nil, "", fmt.Errorf("%s: attestation: %w", c.File, err)
	}
	if c.ChannelBinding == api.ChannelOff {
		section = append(section, "channel: "+attest.ChannelNone+"\n"...)
	}
	policy, err := attest.LoadPolicy(section, func(name string) ([]byte, error) { return input.ReadFile(c.Path(name), input.Small) })
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", c.File, err)
	}
	if rootless {
		return attest.DefaultPolicy(), "attestation.ek.roots is empty, so every host is refused; name the CA certificates of your TPM vendors", nil
	}
	return policy, "", nil
}

// loadSMKey reads a 64-bit SM_Key; "" names none. Errors do not quote the
// file, which is a secret.
func loadSMKey(file string) (ib.SMKey, error) {
	if file == "" {
		return ib.SMKey{}, nil
	}
	data, err := input.ReadFile(file, input.Small)
	if err != nil {
		return ib.SMKey{}, fmt.Errorf("read SM_Key: %w", err)
	}
	digits, ok := strings.CutPrefix(string(bytes.TrimSpace(data)), "0x")
	v, err := strconv.ParseUint(digits, 16, 64)
	if !ok || err != nil || v == 0 {
		return ib.SMKey{}, fmt.Errorf("SM_Key in %s: want 0x and 1 to 16 hexadecimal digits, not all zero", file)
	}
	return ib.NewSMKey(v), nil
}

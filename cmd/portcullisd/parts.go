package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"portcullis/api"
	"portcullis/api/audit/anchor"
	"portcullis/api/hostca"
	"portcullis/api/locks"
	"portcullis/api/results"
	"portcullis/api/store/etcd"
	"portcullis/attest"
	"portcullis/cmd/internal/input"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/vault"
)

// parts is what the files named in the configuration hold.
type parts struct {
	etcd    etcd.Remote  // without endpoints: the store is below the state directory
	cluster etcd.Cluster // without name: the embedded store is alone
	cert    *api.Certificate
	tokens  *api.Tokens
	policy  *attest.Policy
	core    sm.Config        // of the Subnet Manager
	locks   *locks.Options   // of adapters; nil: none are locked
	results *results.Options // nil: no attestation results are signed

	hosts *hostca.Options // certificates of hosts; nil: they get none

	anchors []anchor.Sink // of the audit log

	// closed says why attestation refuses every host; empty when it does not.
	closed string
}

// loadParts reads every file the configured roles need. All problems are
// reported together.
func loadParts(c *config) (*parts, error) {
	p := &parts{}
	var errs []error
	try := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	var err error
	p.etcd, err = loadEtcd(c, time.Now())
	try(err)
	p.cluster, err = loadCluster(c, time.Now())
	try(err)
	p.anchors, err = loadAnchors(c, time.Now())
	try(err)
	if c.has(roleAPI) {
		var err error
		try(private(c.path(c.TLS.Key)))
		p.cert, err = api.LoadCertificate(c.path(c.TLS.Cert), c.path(c.TLS.Key))
		try(err)
		p.tokens, err = loadTokens(c)
		try(err)
		p.policy, p.closed, err = loadPolicy(c)
		try(err)
		p.locks, err = loadLocks(c)
		try(err)
		p.hosts, err = loadHostCertificates(c)
		try(err)
		p.results, err = loadResults(c)
		try(err)
	}
	if c.has(roleSM) {
		var err error
		p.core, err = c.Fabric.core(c.path)
		try(err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return p, nil
}

// sessionRoot returns the root that keys of attestation sessions are sealed under in the store: that of attestation results, or
// else of certificates of hosts. All instances have the same. Nil: there is neither, and each instance keeps its own in memory.
func (p *parts) sessionRoot() vault.Root {
	switch {
	case p.results != nil:
		return p.results.Root
	case p.hosts != nil:
		return p.hosts.Root
	default:
		return nil
	}
}

// private refuses a key file that other users may read or write. A file that is not there is reported by its reader.
func private(file string) error {
	info, err := os.Stat(file)
	if err == nil && info.Mode().Perm()&0o007 != 0 {
		return fmt.Errorf("key file %s has mode %04o: other users may use it; run: chmod o= %s", file, info.Mode().Perm(), file)
	}
	return nil
}

func loadTokens(c *config) (*api.Tokens, error) {
	file := c.path(c.Tokens)
	data, err := input.ReadFile(file, input.Small)
	if err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	return api.ParseTokens(file, data)
}

// loadPolicy makes the attestation policy. Without roots, a mode that needs a chain yields a policy that refuses every
// host, and the reason.
func loadPolicy(c *config) (_ *attest.Policy, closed string, _ error) {
	a := c.Attestation
	rootless := len(a.EK.Roots) == 0 && (a.EK.Mode == attest.EKPinnedChain || a.EK.Mode == attest.EKChainApprove)
	if rootless {
		a.EK.Mode = attest.EKPinned // so that all the rest is checked
	}
	section, err := yaml.Dump(&a)
	if err != nil {
		return nil, "", fmt.Errorf("%s: attestation: %w", c.file, err)
	}
	if c.ChannelBinding == api.ChannelOff {
		section = append(section, "channel: "+attest.ChannelNone+"\n"...)
	}
	policy, err := attest.LoadPolicy(section, func(name string) ([]byte, error) { return input.ReadFile(c.path(name), input.Small) })
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", c.file, err)
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

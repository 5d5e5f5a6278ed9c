package config

import (
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"time"

	"portcullis/api"
	"portcullis/api/admission"
	"portcullis/api/ca"
	"portcullis/api/hostca"
	"portcullis/attest"
)

// check finds every value that makes no sense. Files it names are read later.
func (c *Config) check() []problem {
	k := &checker{}
	k.address("listen", c.Listen)
	k.set("state_dir", c.StateDir)
	if c.StoreQuota < 16 || c.StoreQuota > 64<<10 {
		k.wrong("store_quota", "%d MiB: want 16 to 65536", c.StoreQuota)
	}
	if c.Has(RoleAPI) {
		k.set("tls.cert", c.TLS.Cert)
		k.set("tls.key", c.TLS.Key)
		k.set("tokens", c.Tokens)
	}
	k.oidc(c.OIDC)
	k.clientCertificates(c)
	k.etcd(&c.Etcd)
	k.cluster(&c.Cluster, c.Etcd.Endpoints)
	k.instance(c)
	k.roles(c.Roles)
	k.oneOf("channel_binding", string(c.ChannelBinding), string(api.ChannelRequired), string(api.ChannelOff))
	k.oneOf("log_level", c.LogLevel, "debug", "info", "warn", "error")
	k.rate("limits.connections", c.Limits.Connections)
	k.rate("limits.requests", c.Limits.Requests)
	k.rate("limits.attestations", c.Limits.Attestations)
	k.rate("limits.refusals", c.Limits.Refusals)
	k.rate("limits.strangers", c.Limits.Strangers)
	k.rate("limits.tokens", c.Limits.Tokens)
	k.port(c.Fabric.Port, "umad", "ibsim")
	k.fabric(&c.Fabric)
	k.admission(&c.Admission)
	k.hostCertificates(&c.HostCertificates)
	k.results(&c.Results)
	k.backup(&c.Backup)
	k.api(&c.API)
	k.audit(&c.Audit, c)
	k.verify(&c.Verify)
	k.history(&c.History)
	k.webhooks(&c.Webhooks)
	k.exits(c)
	k.traces(&c.Traces)
	return k.problems
}

type checker struct{ problems []problem }

func (k *checker) wrong(key, format string, args ...any) {
	k.problems = append(k.problems, problem{key, fmt.Sprintf(format, args...)})
}

func (k *checker) set(key, value string) {
	if value == "" {
		k.wrong(key, "is empty")
	}
}

func (k *checker) oneOf(key, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		k.wrong(key, "%q: want one of %q", value, allowed)
	}
}

func (k *checker) between(key string, v, least, most time.Duration) {
	if v < least || v > most {
		k.wrong(key, "%v: want %v to %v", v, least, most)
	}
}

func (k *checker) address(key, value string) {
	_, port, err := net.SplitHostPort(value)
	if n, numErr := strconv.ParseUint(port, 10, 16); err != nil || numErr != nil || n == 0 && port != "0" {
		k.wrong(key, "%q: want ADDRESS:PORT, for example 0.0.0.0:8443", value)
	}
}

func (k *checker) roles(roles []Role) {
	if len(roles) == 0 {
		k.wrong("roles", "is empty: want api, sm or both")
	}
	for i, r := range roles {
		k.oneOf("roles", string(r), string(RoleAPI), string(RoleSM))
		if slices.Contains(roles[:i], r) {
			k.wrong("roles", "%s is named twice", r)
		}
	}
}

func (k *checker) rate(key string, v float64) {
	if !(v > 0 && v <= 1e6) {
		k.wrong(key, "%v: want more than 0 and at most 1000000", v)
	}
}

func (k *checker) admission(a *Admission) {
	k.between("admission.window", a.Window, time.Minute, 24*time.Hour)
	k.between("admission.evidence_max_age", a.EvidenceMaxAge, time.Minute, 24*time.Hour)
	for _, cause := range a.Withdraw {
		k.oneOf("admission.withdraw", cause, attest.LapseCauses()...)
	}
	if a.WithdrawUnseen != 0 {
		k.between("admission.withdraw_unseen", a.WithdrawUnseen, time.Minute, 366*24*time.Hour)
	}
	within(k, "admission.brake.hosts", a.Brake.Hosts, 1, admission.MaxBrakeHosts)
	k.share("admission.brake.share", a.Brake.Share)
	k.between("admission.brake.within", a.Brake.Within, time.Second, 24*time.Hour)
	k.between("admission.pkey_rest", a.PKeyRest, 0, 30*24*time.Hour)
	if !a.GUIDConflict.Valid() {
		k.wrong("admission.guid_conflict", "%q: want %s or %s", a.GUIDConflict, admission.KeepAdmitted, admission.WithdrawAdmitted)
	}
	if !a.PKeyFirst.Valid() || a.PKeyFirst.IsFull() || a.PKeyLast.IsFull() || a.PKeyLast > 0x7FFE || a.PKeyFirst > a.PKeyLast {
		k.wrong("admission.pkey_first", "%v to pkey_last %v: want a range within 0x0001 to 0x7ffe", a.PKeyFirst, a.PKeyLast)
	}
	for _, p := range a.PKeyReserved {
		if !p.Valid() || p.IsFull() {
			k.wrong("admission.pkey_reserved", "%v: want 0x0001 to 0x7fff", p)
		}
	}
}

func (k *checker) hostCertificates(h *HostCertificates) {
	if err := ca.CheckTrustDomain(h.TrustDomain); err != nil {
		k.wrong("host_certificates.trust_domain", "%v", err)
	}
	k.between("host_certificates.life", h.Life, hostca.MinLife, hostca.MaxLife)
	k.between("host_certificates.ca_period", h.CAPeriod, hostca.MinPeriod, hostca.MaxPeriod)
}

// Level returns the configured log level.
func (c *Config) Level() slog.Level {
	var l slog.Level
	if err := l.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return slog.LevelInfo
	}
	return l
}

package main

import (
	_ "embed"
	"path/filepath"
	"time"

	"portcullis/api"
	"portcullis/api/admission"
	"portcullis/api/leader"
	"portcullis/api/limit"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
)

// defaultYAML documents every key with its default; a test holds it equal to
// defaultConfig.
//
//go:embed default.yaml
var defaultYAML []byte

// config is the configuration file.
type config struct {
	Listen         string             `yaml:"listen"`
	TLS            tlsConfig          `yaml:"tls"`
	Tokens         string             `yaml:"tokens"`
	StateDir       string             `yaml:"state_dir"`
	StoreQuota     int64              `yaml:"store_quota"`
	Etcd           etcdConfig         `yaml:"etcd"`
	Cluster        clusterConfig      `yaml:"cluster"`
	Instance       string             `yaml:"instance"`
	Advertise      string             `yaml:"advertise"`
	Lease          time.Duration      `yaml:"lease"`
	Roles          []role             `yaml:"roles"`
	ChannelBinding api.ChannelBinding `yaml:"channel_binding"`
	LogLevel       string             `yaml:"log_level"`
	Limits         limitsConfig       `yaml:"limits"`
	Fabric         fabricConfig       `yaml:"fabric"`
	Attestation    attestationConfig  `yaml:"attestation"`
	Admission      admissionConfig    `yaml:"admission"`
	Locks          locksConfig        `yaml:"locks"`
	Results        resultsConfig      `yaml:"results"`
	Backup         backupConfig       `yaml:"backup"`
	Audit          auditConfig        `yaml:"audit"`

	HostCertificates hostCertificatesConfig `yaml:"host_certificates"`

	file string // where it was read from
}

// role is a part of the service that can run apart.
type role string

const (
	roleAPI role = "api"
	roleSM  role = "sm"
)

type tlsConfig struct {
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
}

// limitsConfig holds rates per second: of each source address, and of what their names say.
type limitsConfig struct {
	Connections  float64 `yaml:"connections"`
	Requests     float64 `yaml:"requests"`
	Attestations float64 `yaml:"attestations"`
	Refusals     float64 `yaml:"refusals"`
	Strangers    float64 `yaml:"strangers"`
	Tokens       float64 `yaml:"tokens"`
}

// attestationConfig is the attestation policy; package attest checks it.
type attestationConfig struct {
	EK struct {
		Mode   attest.EKMode `yaml:"mode"`
		Roots  []string      `yaml:"roots"`
		Expiry attest.Expiry `yaml:"expiry"`
		Deny   []string      `yaml:"deny"`
	} `yaml:"ek"`
	PCRs         []int                  `yaml:"pcrs"`
	AgentPCR     int                    `yaml:"agent_pcr"`
	SessionLife  time.Duration          `yaml:"session_life"`
	StatementAge time.Duration          `yaml:"statement_age"`
	ClockSkew    time.Duration          `yaml:"clock_skew"`
	SealLife     time.Duration          `yaml:"seal_life"`
	Firmware     []attest.FirmwareFloor `yaml:"firmware"`
	Starts       []attest.Start         `yaml:"starts"`
	TPMFirmware  []attest.TPMFirmware   `yaml:"tpm_firmware"`
	Assurance    attest.Assurance       `yaml:"assurance"`
	RequireLock  bool                   `yaml:"require_lock"`
	AcceptDPU    bool                   `yaml:"accept_dpu"`
}

type admissionConfig struct {
	Window         time.Duration `yaml:"window"`
	EvidenceMaxAge time.Duration `yaml:"evidence_max_age"`
	Withdraw       []string      `yaml:"withdraw"`
	PKeyFirst      ib.PKey       `yaml:"pkey_first"`
	PKeyLast       ib.PKey       `yaml:"pkey_last"`
	PKeyReserved   []ib.PKey     `yaml:"pkey_reserved"`
	PKeyRest       time.Duration `yaml:"pkey_rest"`
	TwoPersons     bool          `yaml:"two_persons"`

	GUIDConflict admission.ConflictRule `yaml:"guid_conflict"`

	WithdrawUnseen time.Duration `yaml:"withdraw_unseen"`
	Brake          brakeConfig   `yaml:"brake"`
}

// defaultConfig is what an empty file means.
func defaultConfig() *config {
	limits, policy := api.DefaultLimits(), attest.DefaultPolicy()
	c := &config{
		Listen:         "127.0.0.1:8443",
		TLS:            tlsConfig{Cert: "tls/server.pem", Key: "tls/server.key"},
		Tokens:         "tokens.yaml",
		StateDir:       "/var/lib/portcullis",
		StoreQuota:     8192,
		Etcd:           defaultEtcd(),
		Cluster:        defaultCluster(),
		Lease:          leader.DefaultTTL,
		Roles:          []role{roleAPI, roleSM},
		ChannelBinding: api.ChannelRequired,
		LogLevel:       "info",
		Locks:          locksConfig{Binding: v1.BoundChallenge},
		Limits: limitsConfig{
			Connections: limits.Connections.PerSecond, Requests: limits.Requests.PerSecond, Refusals: limits.Refusals.PerSecond,
			Attestations: limits.Attestations.PerSecond, Strangers: limits.Strangers.PerSecond, Tokens: limits.Tokens.PerSecond,
		},
		Fabric: defaultFabric(),
		Attestation: attestationConfig{
			PCRs: policy.PCRs, AgentPCR: policy.AgentPCR, SessionLife: policy.SessionLife,
			StatementAge: policy.StatementAge, ClockSkew: policy.ClockSkew, SealLife: policy.SealLife,
			Assurance: policy.Assurance, RequireLock: policy.RequireLock,
		},
		Admission: admissionConfig{
			Window: time.Hour, EvidenceMaxAge: time.Hour, Withdraw: []string{attest.LapseEK},
			PKeyFirst: 0x0001, PKeyLast: 0x7FFE, PKeyRest: 10 * time.Minute, TwoPersons: true, GUIDConflict: admission.KeepAdmitted,
			Brake: brakeConfig(admission.DefaultBrakeLimits()),
		},
		HostCertificates: hostCertificatesConfig{
			TrustDomain: "portcullis.internal", Life: 8 * time.Hour, CAPeriod: 90 * 24 * time.Hour,
		},
		Results: resultsConfig{KeyLife: 30 * 24 * time.Hour},
		Audit:   defaultAudit(),
	}
	c.Attestation.EK.Mode, c.Attestation.EK.Expiry = policy.Mode, policy.Expiry
	return c
}

// path returns a file named in the configuration, relative to it.
func (c *config) path(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(c.file), name)
}

func (c *config) has(r role) bool {
	for _, have := range c.Roles {
		if have == r {
			return true
		}
	}
	return false
}

// limits returns the rates: four times the rate at once, and twenty times that of refusals.
func (c *config) limits() api.Limits {
	rate := func(perSecond float64) limit.Rate {
		return limit.Rate{PerSecond: perSecond, Burst: max(1, int(4*perSecond))}
	}
	return api.Limits{
		Connections: rate(c.Limits.Connections), Requests: rate(c.Limits.Requests),
		Attestations: rate(c.Limits.Attestations),
		Refusals:     limit.Rate{PerSecond: c.Limits.Refusals, Burst: max(1, int(20*c.Limits.Refusals))},
		Strangers:    rate(c.Limits.Strangers), Tokens: rate(c.Limits.Tokens),
	}
}

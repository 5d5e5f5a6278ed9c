// Package config is the configuration of the service and of "portcullisd sm": its keys and their defaults, what is wrong with a
// file, what the files hold that it names, and what differs from one that was read before. It starts nothing.
package config

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

// Reference documents every key with its default; a test holds it equal to
// defaultConfig.
//
//go:embed default.yaml
var Reference []byte

// Config is the configuration file.
type Config struct {
	Listen         string             `yaml:"listen"`
	TLS            TLS                `yaml:"tls"`
	Tokens         string             `yaml:"tokens"`
	OIDC           []Issuer           `yaml:"oidc"`
	StateDir       string             `yaml:"state_dir"`
	StoreQuota     int64              `yaml:"store_quota"`
	Etcd           Etcd               `yaml:"etcd"`
	Cluster        Cluster            `yaml:"cluster"`
	Instance       string             `yaml:"instance"`
	Advertise      string             `yaml:"advertise"`
	Lease          time.Duration      `yaml:"lease"`
	Roles          []Role             `yaml:"roles"`
	ChannelBinding api.ChannelBinding `yaml:"channel_binding"`
	API            API                `yaml:"api"`
	LogLevel       string             `yaml:"log_level"`
	Limits         Limits             `yaml:"limits"`
	Fabric         Fabric             `yaml:"fabric"`
	Attestation    Attestation        `yaml:"attestation"`
	Admission      Admission          `yaml:"admission"`
	Inventory      Inventory          `yaml:"inventory"`
	Locks          Locks              `yaml:"locks"`
	Results        Results            `yaml:"results"`
	Backup         Backup             `yaml:"backup"`
	Audit          Audit              `yaml:"audit"`
	Verify         Verify             `yaml:"verify"`
	History        History            `yaml:"history"`
	Webhooks       Webhooks           `yaml:"webhooks"`
	Exits          Exits              `yaml:"exits"`
	Traces         Traces             `yaml:"traces"`

	HostCertificates   HostCertificates    `yaml:"host_certificates"`
	ClientCertificates []ClientCertificate `yaml:"client_certificates"`

	File string // where it was read from
}

// Role is a part of the service that can run apart.
type Role string

const (
	RoleAPI Role = "api"
	RoleSM  Role = "sm"
)

type TLS struct {
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
}

// Limits holds rates per second: of each source address, and of what their names say.
type Limits struct {
	Connections  float64 `yaml:"connections"`
	Requests     float64 `yaml:"requests"`
	Attestations float64 `yaml:"attestations"`
	Refusals     float64 `yaml:"refusals"`
	Strangers    float64 `yaml:"strangers"`
	Tokens       float64 `yaml:"tokens"`
}

// Attestation is the attestation policy; package attest checks it.
type Attestation struct {
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

type Admission struct {
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
	Brake          Brake         `yaml:"brake"`
}

// Default is what an empty file means.
func Default() *Config {
	limits, policy := api.DefaultLimits(), attest.DefaultPolicy()
	c := &Config{
		Listen:         "127.0.0.1:8443",
		TLS:            TLS{Cert: "tls/server.pem", Key: "tls/server.key"},
		Tokens:         "tokens.yaml",
		StateDir:       "/var/lib/portcullis",
		StoreQuota:     8192,
		Etcd:           defaultEtcd(),
		Cluster:        defaultCluster(),
		Lease:          leader.DefaultTTL,
		Roles:          []Role{RoleAPI, RoleSM},
		ChannelBinding: api.ChannelRequired,
		LogLevel:       "info",
		API:            API{Web: true},
		Locks:          Locks{Binding: v1.BoundChallenge},
		Limits: Limits{
			Connections: limits.Connections.PerSecond, Requests: limits.Requests.PerSecond, Refusals: limits.Refusals.PerSecond,
			Attestations: limits.Attestations.PerSecond, Strangers: limits.Strangers.PerSecond, Tokens: limits.Tokens.PerSecond,
		},
		Fabric: defaultFabric(),
		Attestation: Attestation{
			PCRs: policy.PCRs, AgentPCR: policy.AgentPCR, SessionLife: policy.SessionLife,
			StatementAge: policy.StatementAge, ClockSkew: policy.ClockSkew, SealLife: policy.SealLife,
			Assurance: policy.Assurance, RequireLock: policy.RequireLock,
		},
		Admission: Admission{
			Window: time.Hour, EvidenceMaxAge: time.Hour, Withdraw: []string{attest.LapseEK},
			PKeyFirst: 0x0001, PKeyLast: 0x7FFE, PKeyRest: 10 * time.Minute, TwoPersons: true, GUIDConflict: admission.KeepAdmitted,
			Brake: Brake(admission.DefaultBrakeLimits()),
		},
		HostCertificates: HostCertificates{
			TrustDomain: "portcullis.internal", Life: 8 * time.Hour, CAPeriod: 90 * 24 * time.Hour,
		},
		Results: Results{KeyLife: 30 * 24 * time.Hour},
		Audit:   defaultAudit(),
		Verify:  Verify{Every: time.Hour, Rate: 1000, Drift: defaultDrift()},
		History: defaultHistory(),
		Traces:  Traces{Sample: 1},
	}
	c.Attestation.EK.Mode, c.Attestation.EK.Expiry = policy.Mode, policy.Expiry
	return c
}

// Path returns a file named in the configuration, relative to it.
func (c *Config) Path(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(c.File), name)
}

// Has reports whether this process has a role.
func (c *Config) Has(r Role) bool {
	for _, have := range c.Roles {
		if have == r {
			return true
		}
	}
	return false
}

// Rates returns the rates: four times the rate at once, and twenty times that of refusals.
func (c *Config) Rates() api.Limits {
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

// Brake bounds how many hosts lose partitions by automatic causes.
type Brake struct {
	Hosts  int           `yaml:"hosts"`
	Share  float64       `yaml:"share"`
	Within time.Duration `yaml:"within"`
}

package drills

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"portcullis/api"
	"portcullis/api/admission"
	"portcullis/api/attestation"
	"portcullis/api/audit"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/attesttest"
	"portcullis/attest/reference"
	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
)

// The roles in drills of evidence: a tenant whose hosts attested and talk to each other, and a host with an attacker on it
// that an operator assigned to the same cluster.
const (
	suspect = "h3"
	victim  = "h5"
	desk    = "203.0.113.9" // address of an outside host
)

// evidenceOptions say how a site differs from one that demands everything.
type evidenceOptions struct {
	policy    func(*attest.Policy)
	admission func(*admission.Options)
	limits    api.Limits
	trusted   bool // h1 and h5 count as attested: the drill is about adapters, and they have none
	// eks changes what inventory has, by host.
	eks func(v *attesttest.Vendor, eks map[string]string)
}

// evidenceSite is a site whose hosts have TPMs, and prove what they are.
type evidenceSite struct {
	*site
	vendor  *attesttest.Vendor
	hosts   map[string]*attesttest.Host
	channel []byte // exporter value of every connection
	acme    ib.PKey
	agents  func() time.Time // clocks of hosts; nil: the right time
}

// newEvidenceSite makes a site where h1 and h5 were admitted to a cluster, and the
// suspect is assigned to it.
func newEvidenceSite(s *drill.Scene, o evidenceOptions) *evidenceSite {
	vendor, err := attesttest.NewVendor("Example TPM")
	s.Must(err)
	e := &evidenceSite{vendor: vendor, hosts: map[string]*attesttest.Host{}, channel: make([]byte, attest.ExporterSize)}
	eks := map[string]string{}
	for i, h := range hosts {
		e.hosts[h], err = vendor.NewHost(h, i+1)
		s.Must(err)
		eks[h] = e.hosts[h].EKDigest()
	}
	if o.eks != nil {
		o.eks(vendor, eks)
	}
	policy := attest.DefaultPolicy()
	s.Must(policy.AddCertificates(vendor.PEM()))
	if o.policy != nil {
		o.policy(policy)
	}
	e.site = newSite(s, options{
		eks: eks, limits: o.limits, credentials: []account{{name: "ops"}},
		admission: func(ao *admission.Options) {
			ao.Policy = policy
			if o.admission != nil {
				o.admission(ao)
			}
		},
	})
	for _, h := range hosts {
		e.hosts[h].Statement.HCAs = []attest.HCA{e.adapterOf(h)}
	}
	e.trust(attesttest.References()[0])
	e.must("ops", "POST", "/v1/tenants", `{"name":"acme"}`)
	e.must("ops", "POST", "/v1/clusters", `{"name":"acme","tenant":"acme"}`)
	for _, h := range []string{"h1", victim} {
		e.assign(h, "acme")
		if o.trusted {
			e.attested(h)
			e.sync()
		} else {
			s.Must(e.attest(e.hosts[h]))
		}
		s.Check(e.phase(h) == v1.PhaseAdmitted, "host %s, which is as it should be, is %s", h, e.phase(h))
	}
	e.acme = e.pkeyOf("acme")
	e.VictimOf("h1", victim, e.acme)
	e.assign(suspect, "acme")
	return e
}

// adapterOf is the adapter of a host as it should be, with the GUIDs that it has.
func (e *evidenceSite) adapterOf(host string) attest.HCA {
	node := e.List.Find(host).GUID
	return attesttest.HCA("mlx5_0", node, node, e.GUID(host, 1))
}

// trust puts reference values into the store, as if they had just been approved.
func (e *evidenceSite) trust(set reference.Set) {
	set.Made, set.Trusted = e.clock(), e.clock()
	_, err := e.store.Update(e.ctx(), func(tx *store.Tx) error {
		return attestation.References().Put(tx, attestation.ReferenceKey(set.Class, set.Version), set)
	})
	e.scene.Must(err)
}

func (e *evidenceSite) assign(host, cluster string) {
	e.must("ops", "POST", "/v1/hosts/"+host+"/assign", `{"cluster":"`+cluster+`","window_seconds":86400}`)
}

// reassign has the suspect leave its cluster and come to one: its window opens again.
func (e *evidenceSite) reassign(cluster string) {
	e.must("ops", "POST", "/v1/hosts/"+suspect+"/release", "")
	e.sync()
	e.assign(suspect, cluster)
}

// attest has a host show what it is and be handed over, all as its agent does. The
// error is the service's.
func (e *evidenceSite) attest(m *attesttest.Host) error {
	ses, seal, err := e.show(m)
	if err != nil {
		return err
	}
	return e.seal(m, ses, seal)
}

// seal hands a host over whose evidence was accepted.
func (e *evidenceSite) seal(m *attesttest.Host, ses *attest.Session, seal *attest.Seal) error {
	answer, err := m.Seal(ses, seal, e.channel)
	e.scene.Must(err)
	_, err = e.admission.Attestation().SubmitSeal(e.ctx(), ses.ID, e.channel, "192.0.2.1", answer)
	e.sync()
	return err
}

// show is attest without the hand-over.
func (e *evidenceSite) show(m *attesttest.Host) (*attest.Session, *attest.Seal, error) {
	now := e.clock
	if e.agents != nil {
		now = e.agents
	}
	m.Statement.CollectedAt = now().Truncate(time.Second)
	ses, err := e.admission.Attestation().OpenSession(e.ctx(), m.Request(), e.from)
	if err != nil {
		return nil, nil, err
	}
	ev, err := m.Answer(ses, e.channel)
	e.scene.Must(err)
	r, err := e.admission.Attestation().SubmitEvidence(e.ctx(), ses.ID, e.channel, ev)
	e.sync()
	if err != nil {
		return nil, nil, err
	}
	return ses, r.Seal, nil
}

// host is how operators see a host.
func (e *evidenceSite) host(id string) (h v1.Host) {
	e.scene.Must(json.Unmarshal(e.call("ops", "GET", "/v1/hosts/"+id, "").body.Bytes(), &h))
	return h
}

func (e *evidenceSite) phase(id string) v1.Phase { return e.host(id).Status.Phase }

// outside demands that the suspect is in no partition. what describes the suspect.
func (e *evidenceSite) outside(what string) bool {
	s, host := e.scene, suspect
	e.sync()
	phase := e.phase(host)
	out := s.Check(phase != v1.PhaseAdmitted && phase != v1.PhaseGranting, "%s, %s, is %s", host, what, phase)
	reached := e.delivered(host, victim, e.acme)
	return s.Check(!reached, "%s, %s, reaches %s of tenant acme", host, what, victim) && out &&
		s.Check(len(e.TenantKeys(e.SwitchPort(host, 1))) == 0, "the switch port of %s, %s, holds P_Keys of tenants", host, what)
}

// refused demands that the service refused the suspect for a reason, reported it to operators, and granted nothing. what
// describes the suspect.
func (e *evidenceSite) refused(err error, code attest.Reason, actor, what string) {
	e.answered(err, code)
	e.outside(what)
	d := e.host(suspect).Status.LastDenial
	e.Counted(d != nil && d.Code == string(code), "status of host %s: last denial %s", suspect, code)
	if actor != "" {
		e.told(actor, "evidence.refuse", string(code))
	}
}

// answered demands that the service refused evidence for a reason.
func (e *evidenceSite) answered(err error, code attest.Reason) {
	no, refused := errors.AsType[*attest.Refusal](err)
	if e.scene.Check(refused && no.Code == code, "the evidence is answered with %v, want %s", err, code) {
		e.scene.Stopped("the evidence is refused: %s", code)
	}
}

// told demands that the audit log has an entry since the last attack with actor, action and code. Details are left out:
// they hold random values.
func (e *evidenceSite) told(actor, action, code string) {
	entries, _, err := audit.Entries().List(e.ctx(), e.store, "")
	e.scene.Must(err)
	found := false
	for _, x := range entries[min(e.audited, len(entries)):] {
		found = found || x.Value.Actor == actor && x.Value.Action == action && x.Value.Code == code
	}
	e.Counted(found, "audit log: %s, %s, %s", actor, action, code)
}

// proven is how the audit log names the suspect if its TPM answered. unproven is how it names a sender that showed no more
// than its EK.
const proven = "agent:" + suspect

func unproven(from string) string { return "source:" + from }

// predictable is a source of random bytes that are publicly known.
type predictable struct{}

const known = 0x42

func (predictable) Read(b []byte) (int, error) {
	copy(b, bytes.Repeat([]byte{known}, len(b)))
	return len(b), nil
}

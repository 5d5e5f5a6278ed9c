package drills

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"time"

	"portcullis/api"
	"portcullis/api/admission"
	"portcullis/api/attestation"
	"portcullis/api/limit"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/attesttest"
	"portcullis/attest/eventlog/eventlogtest"
	"portcullis/attest/reference"
	"portcullis/fabricsm/drill"
)

// guessable makes sessions predictable, if the control is off.
func guessable(s *drill.Scene) evidenceOptions {
	return evidenceOptions{admission: func(o *admission.Options) {
		if s.Off(SessionRandomness) {
			o.Rand = predictable{}
		}
	}}
}

// boot boots a host into another image, with root's own system in it.
func boot(m *attesttest.Host, image string) {
	machine := eventlogtest.Example()
	machine.Image = image
	reset := m.Boot.Reset + 1
	m.PowerOn(machine)
	m.Boot.Reset = reset
}

// recordedEvidence is T98.
func recordedEvidence(s *drill.Scene) {
	e := newEvidenceSite(s, guessable(s))
	m := e.hosts[suspect]
	m.Statement.CollectedAt = e.clock().Truncate(time.Second)
	request := m.Request()
	first, err := e.admission.Attestation().OpenSession(e.ctx(), request, e.from)
	s.Must(err)
	evidence, err := m.Answer(first, e.channel)
	s.Must(err)
	accepted, err := e.admission.Attestation().SubmitEvidence(e.ctx(), first.ID, e.channel, evidence)
	s.Must(err)
	seal, err := m.Seal(first, accepted.Seal, e.channel)
	s.Must(err)

	s.Tried("%s boots the provisioning image and its evidence is recorded, and its hand-over kept back; then it boots root's own system, is assigned again, and sends what was recorded: in the old session, and in a new one", suspect)
	boot(m, "root's own")
	e.reassign("acme")
	e.mark()
	_, err = e.admission.Attestation().SubmitEvidence(e.ctx(), first.ID, e.channel, evidence)
	e.answered(err, attest.ReasonSession)
	second, err := e.admission.Attestation().OpenSession(e.ctx(), request, e.from)
	s.Must(err)
	_, err = e.admission.Attestation().SubmitEvidence(e.ctx(), second.ID, e.channel, evidence)
	// The seal of a refused session makes no difference.
	_, _ = e.admission.Attestation().SubmitSeal(e.ctx(), second.ID, e.channel, "192.0.2.1", seal)
	e.refused(err, attest.ReasonProof, unproven(e.from), "which runs root's own system")
}

// relayedEvidence is T99.
func relayedEvidence(s *drill.Scene) {
	var other *attesttest.Host
	e := newEvidenceSite(s, evidenceOptions{eks: func(v *attesttest.Vendor, eks map[string]string) {
		var err error
		other, err = v.NewHost(suspect, 99)
		s.Must(err)
		if s.Off(EKPin) {
			eks[suspect] = other.EKDigest()
		}
	}})
	other.Statement.HCAs = e.hosts[suspect].Statement.HCAs
	s.Tried("%s runs root's own system, and a genuine TPM of the same maker, in a machine on his desk that boots the provisioning image, answers for it", suspect)
	boot(e.hosts[suspect], "root's own")
	e.mark()
	e.refused(e.attest(other), attest.ReasonEKPin, "", "whose own TPM was never asked")
	s.Tried("the TPM of h4, an honest machine, answers for it")
	honest := *e.hosts["h4"]
	honest.ID = suspect
	e.answered(e.attest(&honest), attest.ReasonEKPin)
}

// softwareTPM is T100.
func softwareTPM(s *drill.Scene) {
	made, err := attesttest.NewVendor("root's own")
	s.Must(err)
	m, err := made.NewHost(suspect, 3)
	s.Must(err)
	e := newEvidenceSite(s, evidenceOptions{
		eks: func(_ *attesttest.Vendor, eks map[string]string) { eks[suspect] = m.EKDigest() },
		policy: func(p *attest.Policy) {
			if s.Off(EKChain) {
				p.Mode = attest.EKPinned
			}
		},
	})
	m.Statement.HCAs = e.hosts[suspect].Statement.HCAs
	s.Tried("%s has a TPM in software, whose EK was taken into inventory when the machine was delivered, with a certificate of root's own", suspect)
	e.mark()
	e.refused(e.attest(m), attest.ReasonEKChain, "", "whose TPM says what root wants")
}

// otherLog is T101.
func otherLog(s *drill.Scene) {
	e := newEvidenceSite(s, evidenceOptions{admission: func(o *admission.Options) {
		if s.Off(LogReplay) {
			o.Judge = overlooking{reasons: []attest.Reason{attest.ReasonEventLog}}
		}
	}})
	m := e.hosts[suspect]
	golden := m.EventLog
	s.Tried("%s boots root's own system and shows the event log of the provisioning image", suspect)
	boot(m, "root's own")
	m.ShowLog(golden)
	e.mark()
	e.refused(e.attest(m), attest.ReasonEventLog, proven, "which runs root's own system")
	if s.Off(LogReplay) {
		return
	}
	s.Tried("it shows the log of what it booted")
	boot(m, "root's own")
	e.refused(e.attest(m), attest.ReasonReference, proven, "which runs root's own system")
}

// bootedAfter is T102.
func bootedAfter(s *drill.Scene) {
	e := newEvidenceSite(s, evidenceOptions{admission: func(o *admission.Options) {
		if s.Off(HandOver) {
			o.Judge = unsealing{}
		}
	}})
	m := e.hosts[suspect]
	s.Tried("the agent on %s attests and is kept from capping its register", suspect)
	e.mark()
	ses, seal, err := e.show(m)
	s.Must(err)
	if e.outside("which can still attest whatever root wants") {
		s.Stopped("accepted evidence alone admits no host: the host must be handed over first")
	}
	s.Tried("it hands over, is admitted, and is given to another tenant without a reboot: root loads his own system, which shows what the agent showed")
	s.Must(e.seal(m, ses, seal))
	s.Check(e.phase(suspect) == v1.PhaseAdmitted, "%s, which was handed over, is %s", suspect, e.phase(suspect))
	e.told(proven, "evidence.seal", "ok")
	e.must("ops", "POST", "/v1/clusters", `{"name":"next","tenant":"acme"}`)
	e.reassign("next")
	_, _, err = e.show(m)
	e.refused(err, attest.ReasonAgentPCR, proven, "which root booted without the TPM noticing")
}

// copiedKeys is T103.
func copiedKeys(s *drill.Scene) {
	e := newEvidenceSite(s, guessable(s))
	m := e.hosts[suspect]
	m.Statement.CollectedAt = e.clock().Truncate(time.Second)
	request := m.Request()
	own, err := e.admission.Attestation().OpenSession(e.ctx(), request, e.from)
	s.Must(err)

	s.Tried("an attacker has both attestation keys of %s, as if a TPM exported keys, and all that was sent; from another machine the attacker opens a session for it, and quotes made-up values", suspect)
	thief := *m
	thief.EK, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s.Must(err)
	e.mark()
	ses, err := e.admission.Attestation().OpenSession(e.ctx(), request, desk)
	s.Must(err)
	_, opened := thief.Activate(ses)
	s.Check(opened != nil, "the credential opens without the EK that it is for")
	guess := bytes.Repeat([]byte{known}, len(ses.Nonce))
	evidence, err := thief.Evidence(ses, e.channel, guess, nil)
	s.Must(err)
	result, err := e.admission.Attestation().SubmitEvidence(e.ctx(), ses.ID, e.channel, evidence)
	if err == nil {
		s.Must(e.seal(&thief, ses, result.Seal))
	}
	e.refused(err, attest.ReasonProof, unproven(desk), "whose TPM was never asked")
	if err == nil {
		return
	}
	s.Tried("the host itself answers the session that it had opened before")
	answer, err := m.Answer(own, e.channel)
	s.Must(err)
	_, err = e.admission.Attestation().SubmitEvidence(e.ctx(), own.ID, e.channel, answer)
	if s.Check(err == nil, "the host itself is refused: %v", err) {
		s.Stopped("a session belongs to the address that opened it: no other address ends it")
	}
}

// lyingAgent is T104.
func lyingAgent(s *drill.Scene) {
	e := newEvidenceSite(s, evidenceOptions{admission: func(o *admission.Options) {
		if s.Off(InventoryMatch) {
			o.Judge = overlooking{reasons: []attest.Reason{attest.ReasonGUIDMismatch}}
		}
	}})
	m := e.hosts[suspect]
	s.Tried("the agent on %s shows an adapter that does not exist", suspect)
	m.Statement.HCAs[0].Ports[0].GUID += 0x77
	e.mark()
	e.refused(e.attest(m), attest.ReasonGUIDMismatch, proven, "whose evidence is of an adapter that it does not have")
	if s.Off(InventoryMatch) {
		return
	}
	s.Tried("it shows the adapter of h1")
	boot(m, eventlogtest.Example().Image)
	m.Statement.HCAs = []attest.HCA{e.adapterOf("h1")}
	e.refused(e.attest(m), attestation.ReasonConflict, proven, "whose evidence is of the adapter of h1")
	e.told("service", "event.guid.conflict", "claims")
	e.told("service", "event.guid.conflict", "claimed")
	for _, h := range []string{"h1", suspect} {
		c := e.host(h).Status.Conflicts
		e.Counted(len(c) == 1 && c[0].GUID == e.List.Find("h1").GUID, "status of host %s: another one claims its GUID too", h)
	}
	s.Check(e.phase("h1") == v1.PhaseAdmitted, "h1, which is where it was, is %s", e.phase("h1"))

	s.Tried("it shows its own adapter, which an operator looked at, after it was replaced by another one on the fabric")
	_, err := e.admission.ResolveGUID(e.ctx(), "ann", suspect, v1.GUIDResolved{Reason: "its adapter was looked at"})
	s.Must(err)
	e.reassign("acme")
	boot(m, eventlogtest.Example().Image)
	m.Statement.HCAs = []attest.HCA{e.adapterOf(suspect)}
	s.Must(e.Fabric.PowerOff(suspect))
	e.Collect()
	s.Must(e.attest(m))
	if e.outside("which the fabric does not see") {
		s.Stopped("what a host says of its adapters admits it only where the fabric sees them")
	}
}

// flood is how many sessions are asked for.
const flood = 600

// attestationFlood is T105.
func attestationFlood(s *drill.Scene) {
	o := evidenceOptions{}
	if s.Off(AttestationLimits) {
		without := limit.Rate{PerSecond: 1e9, Burst: 1e9}
		o.limits = api.Limits{Connections: without, Requests: without, Attestations: without, Refusals: without, Strangers: without, Tokens: without}
		o.admission = func(ao *admission.Options) { ao.SourceRate, ao.AttemptRate, ao.HostRate = without, without, without }
	}
	e := newEvidenceSite(s, o)
	m := e.hosts[suspect]
	request, err := json.Marshal(m.Request())
	s.Must(err)
	s.Tried("a client that knows the EK certificate of %s asks for %d sessions in its name at once", suspect, flood)
	e.mark()
	opened, turned := 0, 0
	agents := e.from
	e.from = desk
	for range flood {
		switch a := e.call("", "POST", "/v1/attest/sessions", string(request)); a.status {
		case http.StatusCreated:
			opened++
		case http.StatusTooManyRequests:
			turned++
		default:
			s.Check(false, "a session is answered with %d %s", a.status, &a.body)
		}
	}
	e.from = agents
	if s.Check(opened <= flood/20, "%d of %d sessions that one address asked for were opened, each with its cryptography", opened, flood) {
		s.Stopped("%d of %d sessions were opened; who asks for more is turned away before anything is looked at", opened, flood)
	}
	e.Counted(turned > 0 && e.metric("ops", "portcullis_http_limited_total"), "metric portcullis_http_limited_total: requests were turned away")
	s.Must(e.attest(m))
	if s.Check(e.phase(suspect) == v1.PhaseAdmitted, "%s, in whose name the sessions were, is %s", suspect, e.phase(suspect)) {
		s.Stopped("%s itself, from its own address, attests and is admitted all the same", suspect)
	}
}

// endedWaiver is T106.
func endedWaiver(s *drill.Scene) {
	e := newEvidenceSite(s, evidenceOptions{})
	waiver := attesttest.References()[0]
	waiver.Version, waiver.Waiver, waiver.Registers = 2, true, nil
	waiver.Owner, waiver.Reason, waiver.Approver = "ann", "roll-out of firmware", "bob"
	waiver.Expires = e.clock().Add(10 * time.Minute)
	if s.Off(WaiverEnd) {
		waiver.Expires = e.clock().Add(24 * time.Hour)
	}
	e.trust(waiver)
	s.Tried("h7 boots what no reference values have, while a waiver for it is in force")
	e.mark()
	boot(e.hosts["h7"], "roll-out")
	e.assign("h7", "acme")
	s.Must(e.attest(e.hosts["h7"]))
	e.Counted(len(e.host("h7").Status.Waived) == 1, "status of host h7: what was waived, and by which waiver")

	s.Tried("%s boots the same when the waiver has ended", suspect)
	e.Run(15 * time.Minute)
	m := e.hosts[suspect]
	boot(m, "roll-out")
	e.refused(e.attest(m), attest.ReasonReference, proven, "which booted what is not approved")
}

// endedReferences has the reference values end between evidence and grant.
func (e *evidenceSite) endedReferences(m *attesttest.Host) {
	set := attesttest.References()[0]
	e.scene.Tried("%s attests once more with its cable out; before it is plugged in, the reference values of its boot are ended", suspect)
	e.scene.Must(e.Fabric.PowerOff(suspect))
	e.Collect()
	boot(m, eventlogtest.Example().Image)
	e.reassign("acme")
	e.sync()
	e.scene.Must(e.attest(m))
	ended := set
	ended.State = reference.Ended
	e.trust(ended)
	e.sync()
	e.mark()
	e.scene.Must(e.Fabric.PowerOn(suspect))
	e.Collect()
	if e.outside("whose reference values ended") {
		e.scene.Stopped("evidence is compared with reference values again when they end, and then leads to nothing")
	}
	for _, o := range e.host(suspect).Status.Outdated {
		e.Counted(o.Withdraws, "status of host %s: %s: %s", suspect, o.Cause, o.Detail)
	}
	e.scene.Check(e.phase(victim) == v1.PhaseAdmitted, "host %s, which was admitted by the same values, is %s", victim, e.phase(victim))
	e.trust(set)
	e.sync()
}

// oldEvidence is T107.
func oldEvidence(s *drill.Scene) {
	e := newEvidenceSite(s, evidenceOptions{admission: func(o *admission.Options) {
		if s.Off(EvidenceAge) {
			o.EvidenceAge = 24 * time.Hour
		}
	}})
	m := e.hosts[suspect]
	s.Tried("%s attests with its cable out, so that nothing is granted, and plugs it in two hours later", suspect)
	s.Must(e.Fabric.PowerOff(suspect))
	e.Collect()
	e.sync()
	s.Must(e.attest(m))
	s.Check(e.phase(suspect) == v1.PhaseVerified, "%s, whose evidence is good and whose port is not seen, is %s", suspect, e.phase(suspect))
	e.Run(2 * time.Hour)
	e.mark()
	s.Must(e.Fabric.PowerOn(suspect))
	e.Collect()
	if e.outside("whose evidence is two hours old") {
		s.Stopped("evidence older than an hour admits no further host")
	}
	for _, g := range e.host(suspect).Status.Guards {
		if g.Name == v1.GuardAttested {
			e.Counted(!g.Met, "status of host %s: %s", suspect, g.Detail)
		}
	}
	e.endedReferences(m)
	s.Tried("it sends a statement that it made twenty minutes ago")
	boot(m, eventlogtest.Example().Image)
	e.reassign("acme")
	m.Statement.CollectedAt = e.clock().Add(-20 * time.Minute).Truncate(time.Second)
	ses, err := e.admission.Attestation().OpenSession(e.ctx(), m.Request(), e.from)
	s.Must(err)
	evidence, err := m.Answer(ses, e.channel)
	s.Must(err)
	_, err = e.admission.Attestation().SubmitEvidence(e.ctx(), ses.ID, e.channel, evidence)
	e.refused(err, attest.ReasonStatementAge, proven, "whose statement is twenty minutes old")
}

package admission

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"portcullis/api/audit"
	"portcullis/api/fabric/ledger"
	"portcullis/api/inventory"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/result"
	"portcullis/fabricsm/ib"
)

// Results signs attestation results. Package api/results implements it.
type Results interface {
	// Sign fills in the issuer of the claims and when they expire, at until at the latest, and returns the token. Refusals
	// are *refusal.Error.
	Sign(ctx context.Context, c *result.Claims, until time.Time) (string, error)
}

// AttestationResult returns a signed token about where a host stands, made now from what is recorded. Evidence that expired
// or was voided does not count in it, nor does that of a host that is held. nonce is the relying party's, nil for none.
func (s *Service) AttestationResult(ctx context.Context, host string, nonce []byte) (*v1.AttestationResult, error) {
	if s.o.Results == nil {
		return nil, refusal.New(refusal.Unavailable, v1.CodeUnavailable, "give the service a root for their keys (results.root) and start it again",
			"the service signs no attestation results")
	}
	if n := len(nonce); n != 0 && (n < result.MinNonce || n > result.MaxNonce) {
		return nil, refusal.New(refusal.Invalid, "nonce_size", "draw 32 random bytes", "nonce of %d bytes: want %d to %d", n, result.MinNonce, result.MaxNonce)
	}
	c, until, err := s.appraise(ctx, host)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	if len(nonce) > 0 {
		c.Nonce = nonce
	}
	token, err := s.o.Results.Sign(ctx, c, until)
	if err != nil {
		return nil, err
	}
	return &v1.AttestationResult{
		Host: c.Subject, Result: token, Status: c.Status.String(), State: string(c.Host.State), Expires: time.Unix(c.Expires, 0).UTC(),
	}, nil
}

// resultForHost returns the token for a host's own agent, "" if there is none: accepted evidence stays accepted although
// there is no signer.
func (s *Service) resultForHost(ctx context.Context, host string) string {
	if s.o.Results == nil {
		return ""
	}
	c, until, err := s.appraise(ctx, host)
	token := ""
	if err == nil {
		c.ForHost()
		token, err = s.o.Results.Sign(ctx, c, until)
	}
	if err != nil {
		s.o.Log.Error("an attestation result could not be signed; the host has its answer without one", "host", host, "err", err)
		return ""
	}
	return token
}

// appraise returns the claims about a host as of now, and the time until which they count.
func (s *Service) appraise(ctx context.Context, id string) (*result.Claims, time.Time, error) {
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	f, err := s.gather(ctx, snap, id)
	if err != nil {
		return nil, time.Time{}, err
	}
	a := &appraiser{facts: f, policy: s.o.Policy, now: f.now, phase: hostView(f, decide(f)).Status.Phase}
	if a.verdict, err = optional(Verdicts().Get(ctx, snap, id)); err != nil {
		return nil, time.Time{}, err
	}
	if err := s.standing(ctx, snap, a); err != nil {
		return nil, time.Time{}, err
	}
	until := f.now.Add(result.MaxLife)
	if ev := f.rec.Evidence; ev != nil && !f.rec.Admitted {
		if end := ev.Time.Add(f.evidenceAge); a.counts() && end.Before(until) {
			until = end
		}
	}
	c := a.claims()
	end, err := audit.Latest(ctx, snap)
	if err == nil && end.Seq > 0 {
		c.Audit = &result.Audit{Hash: end.Hash, Seq: end.Seq, Branch: end.Branch}
	}
	return c, until, err
}

// standing reads what evidence that was accepted rests on, as it is now.
func (s *Service) standing(ctx context.Context, r store.Reader, a *appraiser) error {
	if a.facts.rec.Evidence == nil {
		return nil
	}
	exp, err := s.expect(ctx, r, &a.facts.host)
	if err != nil {
		return err
	}
	a.judged = s.o.Locks != nil
	a.locks = map[ib.GUID]attest.ExpectedLock{}
	for _, h := range exp.HCAs {
		a.locks[h.NodeGUID] = h.Lock
	}
	refs, err := s.referencesOf(ctx, r, a.facts.rec.Evidence.Reference)
	a.trusted = err == nil && refs.standing(a.facts.rec.Evidence.Reference) == ""
	return err
}

// appraiser makes claims of recorded facts. It is pure.
type appraiser struct {
	facts   *facts
	policy  *attest.Policy // in force now; the verdict names the one of then
	verdict attest.Verdict
	phase   v1.Phase
	now     time.Time

	judged  bool // settings of adapters are judged by a profile, and epochs are known
	locks   map[ib.GUID]attest.ExpectedLock
	trusted bool // the reference values that its boot satisfied, or others that take all it may be, are in force

	weak []string
}

// counts reports whether evidence that was accepted still does.
func (a *appraiser) counts() bool {
	st, _ := a.state()
	return st == result.StateVerified || st == result.StateSealed || st == result.StateAdmitted
}

// state returns how far the host came, and the reason where nothing counts.
func (a *appraiser) state() (result.State, string) {
	rec := &a.facts.rec
	ev, v := rec.Evidence, &a.verdict
	switch {
	case a.facts.held():
		return result.StateHeld, "a GUID is claimed by two hosts, and this is one of them"
	case rec.Cluster == "":
		return result.StateUnattested, "the host is not assigned: what it showed before is spent"
	case ev == nil:
		return result.StateUnattested, "no evidence was accepted in this assignment, or it was voided"
	case !v.OK || v.Facts.Session != ev.Session || v.Facts.Statement == nil || v.Facts.EKDigest != a.facts.host.EK:
		return result.StateUnattested, "the verdict on record is not that of the evidence that counts"
	case !rec.Admitted && a.now.Sub(ev.Time) >= a.facts.evidenceAge:
		return result.StateExpired, fmt.Sprintf("evidence is older than %v, and the host was not admitted", a.facts.evidenceAge)
	case rec.Sealed.IsZero():
		return result.StateVerified, ""
	case rec.Admitted && a.facts.inPartition():
		return result.StateAdmitted, ""
	default:
		return result.StateSealed, ""
	}
}

// inPartition reports whether every port was read back with the P_Key of the host's cluster, and none was taken back since.
func (f *facts) inPartition() bool {
	return !slices.ContainsFunc(f.host.Ports(), func(p inventory.Port) bool {
		return !f.grants[ledger.Key{PKey: f.rec.PKey, GUID: p.GUID, Place: p.Cable}].Applied()
	})
}

func (a *appraiser) claims() *result.Claims {
	rec := &a.facts.rec
	state, reason := a.state()
	c := &result.Claims{
		Profile: result.Profile, Subject: a.facts.host.ID, Submods: map[string]result.Appraisal{},
		Host: result.Host{State: state, Phase: string(a.phase), Epoch: rec.Epoch, Reason: reason},
	}
	if !a.counts() {
		a.nothing(c, state)
		c.Conclude()
		return c
	}
	ev, v := rec.Evidence, &a.verdict.Facts
	c.Nonce = ev.Nonce
	c.Host.Sealed, c.Host.AttestedAt = !rec.Sealed.IsZero(), ev.Time.Unix()
	if c.Host.Sealed {
		c.Host.SealedAt = rec.Sealed.Unix()
	}
	c.Host.Session, c.Host.EK, c.Host.Policy = sessionDigest(ev.Session), v.EKDigest, v.PolicyVersion
	c.Host.Reference, c.Host.Statement = ev.Reference, v.StatementDigest

	platform := a.platform()
	c.Submods[result.Platform] = platform
	for i := range v.Statement.HCAs {
		h := &v.Statement.HCAs[i]
		ap := a.adapter(h)
		// A statement of the platform describes what an adapter is.
		ap.Status = result.Worst(ap.Status, platform.Status)
		c.Submods[result.AdapterLabel(h.NodeGUID)] = ap
	}
	slices.Sort(a.weak)
	c.Host.Weaknesses = slices.Compact(a.weak)
	c.Conclude()
	return c
}

// nothing appraises a host of which no evidence counts: nothing is asserted, but that
// one which is held has something that speaks against it.
func (a *appraiser) nothing(c *result.Claims, state result.State) {
	tier, vector := result.None, result.Vector{}
	if state == result.StateHeld {
		tier, vector = result.Contraindicated, result.Vector{Hardware: result.Distrusted}
	}
	c.Submods[result.Platform] = result.Appraisal{Status: tier, Vector: vector}
	for _, h := range a.facts.host.HCAs {
		ad := &result.Adapter{NodeGUID: h.NodeGUID, SystemImageGUID: h.SystemImageGUID, Ports: []result.Port{}}
		for _, p := range h.Ports {
			ad.Ports = append(ad.Ports, result.Port{Num: p.Num, GUID: p.GUID})
		}
		c.Submods[result.AdapterLabel(h.NodeGUID)] = result.Appraisal{Status: tier, Vector: vector, Adapter: ad}
	}
}

// lower notes why something is not affirmed.
func (a *appraiser) lower(t *result.Tier, to result.Tier, format string, args ...any) {
	*t = result.Worst(*t, to)
	a.weak = append(a.weak, fmt.Sprintf(format, args...))
}

// waivedBoot returns the requirements on the boot that were waived.
func (a *appraiser) waivedBoot() []string {
	return slices.DeleteFunc(slices.Clone(a.facts.rec.Evidence.Waived), func(w string) bool {
		return w == attest.WaivedAssurance || w == attest.WaivedDPU || w == attest.WaivedLock
	})
}

func (a *appraiser) waived(what string) bool {
	return slices.Contains(a.facts.rec.Evidence.Waived, what)
}

// platform appraises TPM and measured boot.
func (a *appraiser) platform() result.Appraisal {
	rec, v := &a.facts.rec, &a.verdict.Facts
	tier := result.Affirming
	vec := result.Vector{Identity: result.Recognized}
	if a.policy.Denied[v.EKDigest] {
		vec.Identity = result.Distrusted
		a.lower(&tier, result.Contraindicated, "the endorsement key of the TPM is on the policy's list of denied ones by now")
	}
	if v.PolicyVersion == a.policy.Version && a.policy.Mode != attest.EKPinned {
		vec.Hardware = result.Genuine // its certificate led to a vendor that the site trusts
	}
	if boot := a.waivedBoot(); len(boot) > 0 || rec.Evidence.Reference == "" {
		vec.Executables = result.NotRecognized
		if len(boot) == 0 {
			boot = []string{"the boot was held against no reference values"}
		}
		a.lower(&tier, result.Warning, "%s", strings.Join(boot, "; "))
	} else if !rec.Admitted { // else it is its tenant's, and runs what he likes
		vec.Executables = result.BootApproved
		if !a.trusted {
			vec.Executables = result.NotRecognized
			a.lower(&tier, result.Warning, "the reference values that the boot satisfied are not in force any more (%s)", rec.Evidence.Reference)
		}
	}
	if rec.Sealed.IsZero() {
		a.lower(&tier, result.Warning, "the host was not handed over: it can still attest, and is not admitted")
	}
	for _, l := range rec.Evidence.Lapses {
		said := l.Cause == attest.LapseEK || l.Cause == attest.LapseReference && !rec.Admitted // above
		if !said {
			a.lower(&tier, result.Warning, "the evidence no longer meets policy: %s", l.Detail)
		}
	}
	for _, c := range rec.Conflicts {
		a.lower(&tier, result.Warning, "another host claims GUID %v, which is seen at this one's place", c.GUID)
	}
	return result.Appraisal{
		Status: result.Worst(tier, vec.Tier()), Vector: vec, Policies: policies(v), Nonce: rec.Evidence.Nonce,
	}
}

// policies names what evidence was judged by.
func policies(v *attest.Facts) []string {
	if v.PolicyVersion == "" {
		return nil
	}
	return []string{"urn:portcullis:attestation-policy:" + v.PolicyVersion}
}

// adapter appraises an adapter: its firmware, and how its settings are kept from the
// root of its host.
func (a *appraiser) adapter(h *attest.HCA) result.Appraisal {
	out := result.Appraisal{Adapter: adapterOf(h), Policies: policies(&a.verdict.Facts), Nonce: a.facts.rec.Evidence.Nonce}
	tier, vec := result.Affirming, &out.Vector
	a.firmware(h, &tier, vec)
	a.lock(h, &tier, vec)
	if a.waived(attest.WaivedDPU) {
		if h.DPU() {
			vec.Executables = result.NotRecognized
		}
		a.lower(&tier, result.Warning, "%s", attest.WaivedDPU)
	}
	out.Status = result.Worst(tier, vec.Tier())
	return out
}

func (a *appraiser) firmware(h *attest.HCA, tier *result.Tier, vec *result.Vector) {
	switch {
	case a.waived(attest.WaivedAssurance):
		a.lower(tier, result.Warning, "%s", attest.WaivedAssurance)
	case h.Firmware.Assurance < attest.G1:
		a.lower(tier, result.Warning, "%s: that its firmware is genuine rests on its own word (%v)", result.AdapterLabel(h.NodeGUID), h.Firmware.Assurance)
	default:
		vec.Hardware = result.Genuine
	}
}

func (a *appraiser) lock(h *attest.HCA, tier *result.Tier, vec *result.Vector) {
	name, want := result.AdapterLabel(h.NodeGUID), a.locks[h.NodeGUID]
	if a.waived(attest.WaivedLock) {
		a.lower(tier, result.Warning, "%s", attest.WaivedLock)
		switch h.Lock.MLOCK {
		case attest.MLOCKLocked: // under settings that were not judged
		case attest.MLOCKUnknown:
			vec.Configuration = result.ConfigUnavailable
		default:
			vec.Configuration = result.ConfigVulnerable
		}
		return
	}
	switch {
	case want.Leaves:
		vec.Configuration = result.ConfigVulnerable
		a.lower(tier, result.Warning, "%s leaves by decision of an operator: it is to be opened", name)
	case !a.judged:
		vec.Configuration = result.ConfigUnavailable
		a.lower(tier, result.Warning, "%s: the service has no root for locks, so nobody knows the epoch of its lock", name)
	case want.Epoch != h.Lock.Epoch:
		vec.Configuration = result.ConfigUnavailable
		a.lower(tier, result.Warning, "%s was shown locked under epoch %d, and epoch %d was given out since", name, h.Lock.Epoch, want.Epoch)
	default:
		vec.Configuration = result.ConfigApproved
	}
}

func adapterOf(h *attest.HCA) *result.Adapter {
	out := &result.Adapter{
		NodeGUID: h.NodeGUID, SystemImageGUID: h.SystemImageGUID, Ports: []result.Port{}, PSID: h.PSID,
		Firmware: &result.Firmware{Version: h.Firmware.Running, Assurance: h.Firmware.Assurance},
		Lock:     &result.Lock{Method: h.Lock.Method, MLOCK: h.Lock.MLOCK, Epoch: h.Lock.Epoch},
	}
	if r := h.Firmware.Reference; r != nil {
		out.Firmware.Reference = r.SHA256
	}
	for _, p := range h.Ports {
		if p.LinkLayer == attest.LinkInfiniBand {
			out.Ports = append(out.Ports, result.Port{Num: p.Num, GUID: p.GUID})
		}
	}
	return out
}

// sessionDigest stands for a session in a result, which must not carry the id that a seal
// names.
func sessionDigest(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

package attestation

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"portcullis/attest"
	"portcullis/attest/result"
	"portcullis/fabricsm/ib"
)

// appraiser makes claims of recorded facts. It is pure.
type appraiser struct {
	host        *View
	policy      *attest.Policy // in force now; the verdict names the one of then
	verdict     attest.Verdict
	evidenceAge time.Duration

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
	rec := a.host.Record
	ev, v := rec.Evidence, &a.verdict
	switch {
	case a.host.Held:
		return result.StateHeld, "a GUID is claimed by two hosts, and this is one of them"
	case rec.Cluster == "":
		return result.StateUnattested, "the host is not assigned: what it showed before is spent"
	case ev == nil:
		return result.StateUnattested, "no evidence was accepted in this assignment, or it was voided"
	case !v.OK || v.Facts.Session != ev.Session || v.Facts.Statement == nil || v.Facts.EKDigest != a.host.Host.EK:
		return result.StateUnattested, "the verdict on record is not that of the evidence that counts"
	case !rec.Admitted && a.host.Now.Sub(ev.Time) >= a.evidenceAge:
		return result.StateExpired, fmt.Sprintf("evidence is older than %v, and the host was not admitted", a.evidenceAge)
	case rec.Sealed.IsZero():
		return result.StateVerified, ""
	case rec.Admitted && a.host.InPartition:
		return result.StateAdmitted, ""
	default:
		return result.StateSealed, ""
	}
}

func (a *appraiser) claims() *result.Claims {
	rec := a.host.Record
	state, reason := a.state()
	c := &result.Claims{
		Profile: result.Profile, Subject: a.host.Host.ID, Submods: map[string]result.Appraisal{},
		Host: result.Host{State: state, Phase: string(a.host.Shown.Status.Phase), Epoch: rec.Epoch, Reason: reason},
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
	for _, h := range a.host.Host.HCAs {
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
	return slices.DeleteFunc(slices.Clone(a.host.Record.Evidence.Waived), func(w string) bool {
		return w == attest.WaivedAssurance || w == attest.WaivedDPU || w == attest.WaivedLock
	})
}

func (a *appraiser) waived(what string) bool {
	return slices.Contains(a.host.Record.Evidence.Waived, what)
}

// platform appraises TPM and measured boot.
func (a *appraiser) platform() result.Appraisal {
	rec, v := a.host.Record, &a.verdict.Facts
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
			boot = []string{"the boot was compared with no reference values"}
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
	out := result.Appraisal{Adapter: adapterOf(h), Policies: policies(&a.verdict.Facts), Nonce: a.host.Record.Evidence.Nonce}
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
		a.lower(tier, result.Warning, "%s: the service has no root for locks, so the epoch of its lock is unknown", name)
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

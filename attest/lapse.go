package attest

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Causes of a Lapse. They do not change from release to release.
const (
	LapseEK          = "ek"           // the EK is on the deny list
	LapseCA          = "ek-ca"        // a CA on which the trust in its certificate was based is
	LapseTPM         = "tpm-firmware" // the TPM's firmware is not among those that are allowed
	LapseFirmware    = "firmware"     // firmware of an adapter is below its floor
	LapseAdapter     = "adapter"      // an adapter lacks what is demanded: assurance, lock, no DPU
	LapseImage       = "image"        // agent or image is not among those that are allowed
	LapseReference   = "reference"    // the reference values of its boot are no longer in force
	LapseLockProfile = "lock-profile" // settings of adapters are not as the site's profile wants them now
)

// LapseCauses lists them.
func LapseCauses() []string {
	return []string{LapseEK, LapseCA, LapseTPM, LapseReference, LapseFirmware, LapseAdapter, LapseImage, LapseLockProfile}
}

// Lapse is why evidence that was accepted would not be now, by the policy alone.
type Lapse struct {
	Cause  string
	Reason Reason // with which new evidence of the same would be refused
	Detail string
}

// Lapses compares the facts of accepted evidence with another policy than the one under which it was accepted. It leaves
// out facts that only fresh evidence can show: ages, boots, and whether adapters are locked under the present keys.
// Reference values and the profile of settings are not part of the policy either.
func (p *Policy) Lapses(f *Facts) []Lapse {
	var out []Lapse
	add := func(cause string, r *Refusal) {
		if r != nil {
			out = append(out, Lapse{cause, r.Code, r.Detail})
		}
	}
	if p.Denied[f.EKDigest] {
		add(LapseEK, refuse(ReasonEKRevoked, "EK %s is on the deny list", f.EKDigest))
	}
	if i := slices.IndexFunc(f.EKIssuers, func(d string) bool { return p.Denied[d] }); i >= 0 {
		add(LapseCA, refuse(ReasonEKRevoked, "the CA with key %s, which issued the EK certificate, is on the deny list", f.EKIssuers[i]))
	}
	add(LapseTPM, p.checkTPM(f.TPM, f.TPMFirmware))
	if len(p.Starts) > 0 && !slices.Contains(p.Starts, f.Start) {
		add(LapseImage, refuse(ReasonStart, "agent %q of image %q is not one that the policy allows", clip(f.Start.Agent), clip(f.Start.Image)))
	}
	if f.Statement == nil {
		add(LapseAdapter, refuse(ReasonStatement, "its statement was not stored"))
		return out
	}
	add(LapseFirmware, checkFirmware(f.Statement, p.FirmwareFloors))
	add(LapseAdapter, checkAdapters(f.Statement, p, func(*HCA) ExpectedLock { return ExpectedLock{} }))
	return out
}

// Judging names all of the policy that Lapses depends on: equal strings, equal lapses.
func (p *Policy) Judging() (string, error) {
	// The keys of maps are sorted.
	b, err := json.Marshal(struct {
		Denied      map[string]bool
		TPMFirmware []TPMFirmware
		Starts      []Start
		Floors      []FirmwareFloor
		Assurance   uint8
		Lock, DPU   bool
	}{p.Denied, p.TPMFirmware, p.Starts, p.FirmwareFloors, uint8(p.Assurance), p.RequireLock, p.AcceptDPU})
	if err != nil {
		return "", fmt.Errorf("attestation policy: %w", err)
	}
	return string(b), nil
}

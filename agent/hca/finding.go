package hca

import (
	"fmt"
	"strings"

	"portcullis/agent/hca/register"
	"portcullis/attest"
)

// Code says what is wrong with an adapter. Codes do not change from release to
// release. A fact that is not known has the code "unknown-" and its reason.
type Code string

// Codes.
const (
	CodeNoNVIDIA     Code = "not-nvidia"              // the firmware of such adapters cannot be judged
	CodeRecovery     Code = "recovery-mode"           // the firmware does not run
	CodeNotSecure    Code = "not-secure-fw"           // it takes firmware that is not signed
	CodeAttribute    Code = "attribute"               // debug or development firmware, or a token
	CodeDevelopment  Code = "development-chip"        // the chip is one for development
	CodeLifeCycle    Code = "life-cycle"              // not GA SECURED: a wrong image would boot
	CodeSecureBoot   Code = "secure-boot-off"         // likewise
	CodePending      Code = "pending-update"          // another image waits for a reset
	CodeRollback     Code = "below-rollback-floor"    // an image of a lower security version than the fuses runs
	CodeToken        Code = "token-session"           // one of the vendor's tokens is in force
	CodeAlternate    Code = "alternate-guid"          // the host assigned the adapter another GUID
	CodeManufacture  Code = "guid-not-of-maker"       // a GUID differs from that of manufacture
	CodeChangedPSID  Code = "psid-not-of-maker"       // the board got firmware for another one
	CodeNotAllowed   Code = "firmware-not-allowed"    // the site's list does not have it
	CodeNoList       Code = "no-firmware-list"        // there is no list of the site here
	CodeNoImage      Code = "no-reference-image"      // no image for PSID and version was verified
	CodeOtherImage   Code = "reference-image-differs" // the device says other than the image
	CodeNotAvailable Code = "not-available"           // this product does not do it yet
)

const unknownCode = "unknown-"

// Finding is one thing that is wrong, or not known.
type Finding struct {
	Code   Code   `json:"code"`
	Fact   string `json:"fact"`
	Detail string `json:"detail"`
}

// findings collects them.
type findings []Finding

func (f *findings) when(wrong bool, code Code, fact, detail string, args ...any) {
	if wrong {
		*f = append(*f, Finding{code, fact, fmt.Sprintf(detail, args...)})
	}
}

// known reports whether a fact is, and notes that it is not. The value is the
// zero one then.
func known[T comparable](f *findings, name string, fact *Fact[T]) (v T, ok bool) {
	if v, ok = fact.Value(); ok {
		return v, true
	}
	reason, detail := fact.Why()
	f.when(true, unknownCode+Code(reason), name, "%s", detail)
	return v, false
}

// Firmware are the reasons why the firmware is not at assurance level G0, as far
// as the device itself says.
func (d *Device) firmwareFindings() (f findings) {
	if d.NoNVIDIA {
		f.when(true, CodeNoNVIDIA, "psid", "the firmware of adapters of this maker cannot be judged")
		return f
	}
	if v, ok := known(&f, "recovery", &d.Recovery); ok {
		f.when(v == attest.Yes, CodeRecovery, "recovery", "the adapter is in recovery mode: its flash cannot be read; burn its firmware again")
	}
	if v, ok := known(&f, "attributes", &d.Attributes); ok {
		d.attributes(&f, v)
	}
	if v, ok := known(&f, "development", &d.Development); ok {
		f.when(v == attest.Yes, CodeDevelopment, "development", "the chip is in development mode")
	}
	if v, ok := known(&f, "life_cycle", &d.LifeCycle); ok {
		f.when(v != attest.LifeGASecured, CodeLifeCycle, "life_cycle", "it is %v; only ga-secured prevents that a wrong image boots", v)
	}
	if v, ok := known(&f, "secure_boot", &d.SecureBoot); ok {
		f.when(v != attest.Yes, CodeSecureBoot, "secure_boot", "secure boot is not enabled; a wrong image would boot")
	}
	known(&f, "psid", &d.PSID)
	known(&f, "hardware_id", &d.HardwareID)
	if v, ok := d.OrigPSID.Value(); ok {
		f.when(true, CodeChangedPSID, "orig_psid", "the board was made as %s", v)
	}
	d.versionFindings(&f)
	d.tokenFindings(&f)
	return f
}

func (d *Device) attributes(f *findings, text string) {
	words := strings.Split(text, wordSeparator)
	f.when(words[0] != wordSecure, CodeNotSecure, "attributes", "it says %q, want %s first: it takes firmware that is not signed", text, wordSecure)
	for _, w := range words[1:] {
		f.when(true, CodeAttribute, "attributes", "it says %q; not allowed for an adapter of a tenant", w)
	}
}

func (d *Device) versionFindings(f *findings) {
	running, okRunning := known(f, "running", &d.Running)
	pending, okPending := known(f, "pending", &d.Pending)
	f.when(okRunning && okPending && running != pending, CodePending, "pending", "%v runs and %v waits for a reset: reset the adapter", running, pending)
	image, okImage := known(f, "security_version", &d.SecurityVersion)
	floor, okFloor := known(f, "rollback_floor", &d.RollbackFloor)
	f.when(okImage && okFloor && image < floor, CodeRollback, "security_version", "security version %d runs, but the fuses say %d: the boot code did not refuse it", image, floor)
}

func (d *Device) tokenFindings(f *findings) {
	if len(d.Tokens) == 0 {
		f.when(true, unknownCode+Code(ReasonNoAccess), "tokens", "token sessions are not known: there is no way to the firmware's registers")
	}
	for i := range d.Tokens {
		name := "token_" + tokenKind(d.Tokens[i].Kind)
		if v, ok := known(f, name, &d.Tokens[i].Session); ok {
			f.when(v != attest.No, CodeToken, name, "a %v token is in force or asked for: end the session, and find out who opened it", d.Tokens[i].Kind)
		}
	}
}

// allocated is how many GUIDs a card has of its maker, from the base GUID on, at
// most: each of its functions has one of them.
const allocated = 16

// identityFindings are what speaks against the GUIDs that the device shows.
func (d *Device) identityFindings() (f findings) {
	node, okNode := known(&f, "node_guid", &d.NodeGUID)
	known(&f, "system_image_guid", &d.SystemImageGUID)
	for i := range d.Ports {
		known(&f, fmt.Sprintf("port_%d_guid", d.Ports[i].Num), &d.Ports[i].GUID)
	}
	if d.NoNVIDIA {
		return f
	}
	if v, ok := known(&f, "alternate_guid", &d.AlternateGUID); ok {
		f.when(v != attest.No, CodeAlternate, "alternate_guid", "the host set another GUID (setting 3/273), now or from the next boot on")
	}
	// Not all firmware reports it. Where no source does, the answer that no other GUID is set says the same.
	if base, ok := d.BaseGUID.Value(); ok && okNode {
		f.when(node-base >= allocated, CodeManufacture, "node_guid", "the node GUID is %v, but the manufacturer assigned %v and the %d that follow", node, base, allocated-1)
	} else if d.BaseGUID.contradicted() {
		known(&f, "base_guid", &d.BaseGUID)
	}
	return f
}

// lockFindings returns the facts of the lock that are not known. The required values are judged by the profile of the lock.
func (d *Device) lockFindings() (f findings) {
	if d.NoNVIDIA {
		return f
	}
	if v, ok := known(&f, "mlock", &d.MLOCK); ok {
		f.when(v > register.LockedHostCfg, unknownCode+Code(ReasonUnreadable), "mlock", "%v has no known meaning", v)
	}
	for i := range d.Ports {
		known(&f, fmt.Sprintf("port_%d_has_smi", d.Ports[i].Num), &d.Ports[i].HasSMI)
	}
	return f
}

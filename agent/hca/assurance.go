package hca

import "portcullis/attest"

// Site is what the operator of the site knows of firmware.
type Site interface {
	// Refuse says what the site's list has against firmware; empty: nothing.
	Refuse(c Claim) []string
	// Image finds the image that the site keeps for a board and version, and that
	// was verified under a key pinned by the site. None: false, and why.
	Image(psid string, running Version) (image Image, ok bool, why string)
}

// Claim is the firmware that a device says it runs.
type Claim struct {
	PSID            string
	Version         Version
	Hardware        DeviceID // of the chip
	SecurityVersion uint32
}

// Image is what a verified image says of itself.
type Image struct {
	PSID            string
	Version         Version
	SecurityVersion uint32
	SHA256          string // masked digest, hex
	KeyID           string // UUID of the key that signed it
}

// Verdict holds the known facts of an adapter's firmware, and its faults.
type Verdict struct {
	// Assurance is the highest level whose every condition is proven.
	Assurance attest.Assurance `json:"assurance"`
	// Missing are the reasons for each level that was not reached, from the lowest.
	Missing []Level `json:"missing"`
	// Reference is the image that the firmware was compared with, at G1.
	Reference *attest.Reference `json:"reference"`
	// Identity and Lock are findings about GUIDs and the lock's state.
	Identity []Finding `json:"identity"`
	Lock     []Finding `json:"lock"`
}

// Level is an assurance level that was not reached.
type Level struct {
	Level    attest.Assurance `json:"level"`
	Findings []Finding        `json:"findings"`
}

// Compliant reports whether the firmware is at least at a level, and nothing is wrong with the identity and the known facts
// of the lock.
func (v *Verdict) Compliant(at attest.Assurance) bool {
	return v.Assurance >= at && at > attest.AssuranceNone && len(v.Identity) == 0 && len(v.Lock) == 0
}

// Judge returns the verdict on a device. Without a site, not even G0 is reached: G0 requires that the board and the version
// are wanted.
//
// Levels are those of the design. G0: the device's report is that of a secured device. G1: G0, and the device reports that
// it runs an image verified under a pinned key. G2: G1, and the flash that was read back has that image's digest. G3: G0
// and a measurement over SPDM. G2 and G3 are never claimed, because this product reads neither.
func (d *Device) Judge(site Site) Verdict {
	v := Verdict{Identity: d.identityFindings(), Lock: d.lockFindings(), Missing: []Level{}}
	v.miss(attest.G0, append(d.firmwareFindings(), d.listFindings(site)...))
	image, f := d.imageFindings(site)
	v.miss(attest.G1, f)
	v.miss(attest.G2, []Finding{{CodeNotAvailable, "flash", "reading the flash back is not part of this version"}})
	v.miss(attest.G3, []Finding{{CodeNotAvailable, "spdm", "measurements over SPDM are not part of this version"}})
	switch {
	case v.missed(attest.G0):
	case v.missed(attest.G1):
		v.Assurance = attest.G0
	default:
		v.Assurance = attest.G1
		v.Reference = &attest.Reference{SHA256: image.SHA256, KeyID: image.KeyID}
	}
	return v
}

func (v *Verdict) miss(l attest.Assurance, f []Finding) {
	if len(f) > 0 {
		v.Missing = append(v.Missing, Level{l, f})
	}
}

func (v *Verdict) missed(l attest.Assurance) bool {
	for _, m := range v.Missing {
		if m.Level == l {
			return true
		}
	}
	return false
}

// listFindings asks the site's list.
func (d *Device) listFindings(site Site) (f findings) {
	if site == nil {
		f.when(true, CodeNoList, "psid", "the list of the site's firmware is missing")
		return f
	}
	c, ok := d.claim()
	if !ok {
		return f // unknown facts are already reported
	}
	for _, why := range site.Refuse(c) {
		f.when(true, CodeNotAllowed, "running", "%s", why)
	}
	return f
}

// claim returns what the device says that it runs, if all of it is known.
func (d *Device) claim() (c Claim, ok bool) {
	psid, ok1 := d.PSID.Value()
	running, ok2 := d.Running.Value()
	security, ok3 := d.SecurityVersion.Value()
	hardware, ok4 := d.HardwareID.Value()
	return Claim{psid, running, hardware, uint32(security)}, ok1 && ok2 && ok3 && ok4
}

// imageFindings compares with the site's image.
func (d *Device) imageFindings(site Site) (image Image, f findings) {
	c, ok := d.claim()
	switch {
	case site == nil:
		f.when(true, CodeNoImage, "running", "the images of the site are missing")
		return image, f
	case !ok:
		f.when(true, CodeNoImage, "running", "PSID, chip, version or security version of the adapter are not known")
		return image, f
	}
	image, ok, why := site.Image(c.PSID, c.Version)
	if !ok {
		f.when(true, CodeNoImage, "running", "%s", why)
		return image, f
	}
	f.when(image.PSID != c.PSID, CodeOtherImage, "psid", "the adapter says %s and the image %s", c.PSID, image.PSID)
	f.when(image.Version != c.Version, CodeOtherImage, "running", "the adapter says %v and the image %v", c.Version, image.Version)
	f.when(image.SecurityVersion != c.SecurityVersion, CodeOtherImage, "security_version", "the adapter says %d and the image %d", c.SecurityVersion, image.SecurityVersion)
	return image, f
}

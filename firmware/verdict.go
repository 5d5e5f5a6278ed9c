package firmware

import (
	"portcullis/firmware/image"
	"portcullis/firmware/pin"
	"portcullis/firmware/policy"
)

// Verdict is what is known of an image. The zero Verdict is not good either.
type Verdict string

// The verdicts, from the worst to the best.
const (
	Invalid       Verdict = "invalid"
	NotVerifiable Verdict = "not verifiable"
	NotSigned     Verdict = "not signed"
	Valid         Verdict = "valid"
)

// rank orders verdicts; a value that is none is worst.
func (v Verdict) rank() int {
	switch v {
	case Valid:
		return 3
	case NotSigned:
		return 2
	case NotVerifiable:
		return 1
	default:
		return 0
	}
}

// worse returns the worse of two.
func worse(a, b Verdict) Verdict {
	if a.rank() < b.rank() {
		return a
	}
	return b
}

// Code says why a step ended as it did. Codes do not change from release to release.
type Code string

// The codes of steps that do not pass.
const (
	CodeUnknown        Code = "unknown-layout"
	CodeMalformed      Code = "malformed"
	CodePackage        Code = "package"      // the package is damaged or was changed
	CodeBoard          Code = "board"        // it has the image for another PSID than the image names
	CodeChecksum       Code = "checksum"     // a CRC is wrong
	CodeOpaque         Code = "opaque"       // encrypted, or how it is signed is not known
	CodeNoSignature    Code = "no-signature" // nothing is there
	CodeDigest         Code = "digest-mismatch"
	CodeDevelopment    Code = "development-key"
	CodeNoPins         Code = "no-pins"
	CodeNotPinned      Code = "key-not-pinned"
	CodeKeyDiffers     Code = "key-differs" // the image has another key under the UUID of the pinned one
	CodePurpose        Code = "key-purpose" // the pinned key may not sign firmware
	CodeSignature      Code = "signature-mismatch"
	CodeSignatureBytes Code = "signature-bytes" // neither signature nor digest
)

// Outcome is how a step ended.
type Outcome string

// The outcomes.
const (
	Pass    Outcome = "pass"
	Fail    Outcome = "fail"
	Unknown Outcome = "unknown"
	Absent  Outcome = "absent"
)

// Step is one question about an image, in the order that they are asked.
type Step struct {
	Name    string  `json:"step"`
	Outcome Outcome `json:"outcome"`
	Code    Code    `json:"code,omitempty"` // empty: it passed
	Detail  string  `json:"detail"`
}

// Signer is a pinned key that signed an image.
type Signer struct {
	UUID        image.UUID      `json:"uuid"`
	Algorithm   image.Algorithm `json:"algorithm"`
	Name        string          `json:"name,omitempty"`
	Fingerprint pin.Fingerprint `json:"fingerprint"`
}

// ImageReport is the verdict on one image, and why.
type ImageReport struct {
	Index    int       `json:"index"`
	Boards   []string  `json:"boards,omitempty"` // PSIDs that the package has it for
	Verdict  Verdict   `json:"verdict"`
	Steps    []Step    `json:"steps"`
	Signers  []Signer  `json:"signers,omitempty"` // only of a valid image
	Identity *Identity `json:"identity,omitempty"`
	// NotCovered is how many bytes behind the last section the signatures of a valid image are not over.
	NotCovered int64 `json:"not_covered_bytes"`
	// Refusals are what the policy has against it, whatever the verdict is.
	Refusals []policy.Refusal `json:"refusals"`
}

// Accepted reports an image that is valid and that the policy has nothing against.
func (r *ImageReport) Accepted() bool { return r.Verdict == Valid && len(r.Refusals) == 0 }

// Report is the verdict on a file: the worst of its images.
type Report struct {
	Package bool          `json:"package"`
	Code    Code          `json:"code,omitempty"`    // CodePackage or CodeUnknown: of the package itself
	Problem string        `json:"problem,omitempty"` // what is wrong with it
	Verdict Verdict       `json:"verdict"`
	Images  []ImageReport `json:"images"`
}

// Accepted reports a file of which every image is.
func (r *Report) Accepted() bool {
	for i := range r.Images {
		if !r.Images[i].Accepted() {
			return false
		}
	}
	return r.Verdict == Valid && len(r.Images) > 0
}

// Only returns the report on one image of a file, by index, or nil if there is none. A fault of the package is a fault of
// each of its images.
func (r *Report) Only(index int) *Report {
	for _, i := range r.Images {
		if i.Index != index {
			continue
		}
		one := &Report{Package: r.Package, Code: r.Code, Problem: r.Problem, Verdict: i.Verdict, Images: []ImageReport{i}}
		if r.Problem != "" {
			one.Verdict = worse(one.Verdict, r.Verdict)
		}
		return one
	}
	return nil
}

// Site is what a site trusts and wants. Its zero value trusts no key.
type Site struct {
	Pins   *pin.Set
	Policy *policy.Policy // nil: only what every site refuses, such as debug firmware
}

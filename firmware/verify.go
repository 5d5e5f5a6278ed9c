package firmware

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"portcullis/firmware/image"
	"portcullis/firmware/mfa2"
	"portcullis/firmware/policy"
)

// maxFindings bounds how many wrong checksums one step reports.
const maxFindings = 4

// Verify judges each image of a file of size bytes. The error is one of reading:
// a file that is damaged or no firmware has a verdict.
func Verify(r io.ReaderAt, size int64, site Site) (*Report, error) {
	report := &Report{Package: Packed(r, size), Verdict: Valid, Images: []ImageReport{}}
	err := Images(r, size, func(i *Image) error {
		one, err := VerifyImage(i, site)
		if err != nil {
			return err
		}
		report.Images = append(report.Images, *one)
		report.Verdict = worse(report.Verdict, one.Verdict)
		return nil
	})
	switch {
	case mfa2.IsFormat(err):
		report.Verdict, report.Code, report.Problem = Invalid, CodePackage, err.Error()
	case err != nil:
		return nil, err
	case len(report.Images) == 0:
		report.Verdict, report.Code, report.Problem = NotVerifiable, CodeUnknown, "the package has no images"
	}
	slices.SortStableFunc(report.Images, func(a, b ImageReport) int { return a.Index - b.Index })
	return report, nil
}

// VerifyImage judges one image. The error is one of reading.
func VerifyImage(i *Image, site Site) (*ImageReport, error) {
	v := &verifier{site: site, report: &ImageReport{Index: i.Index, Boards: i.Boards, Verdict: Valid, Refusals: []policy.Refusal{}}}
	if !v.layout(i) {
		return v.report, nil
	}
	v.m = i.Image
	if err := v.judge(i.Boards); err != nil {
		return nil, err
	}
	if v.report.Verdict != Valid {
		v.report.Signers = nil
	}
	return v.report, nil
}

// verifier goes through the steps for one image.
type verifier struct {
	site   Site
	m      *image.Image
	report *ImageReport
}

func (v *verifier) pass(name, detail string, args ...any) {
	v.report.Steps = append(v.report.Steps, Step{Name: name, Outcome: Pass, Detail: fmt.Sprintf(detail, args...)})
}

// not records a step that did not pass, and its consequence for the verdict.
func (v *verifier) not(name string, outcome Outcome, verdict Verdict, code Code, detail string, args ...any) {
	v.report.Steps = append(v.report.Steps, Step{name, outcome, code, fmt.Sprintf(detail, args...)})
	v.report.Verdict = worse(v.report.Verdict, verdict)
}

// layout notes whether the image could be opened.
func (v *verifier) layout(i *Image) bool {
	switch {
	case i.Err == nil:
		v.pass("layout", "%s", layoutWords(i.Image))
		return true
	case image.IsLayout(i.Err):
		v.not("layout", Fail, Invalid, CodeMalformed, "%v", i.Err)
	default:
		v.not("layout", Unknown, NotVerifiable, CodeUnknown, "%v", i.Err)
	}
	return false
}

func layoutWords(m *image.Image) string {
	what := "whole image"
	if m.Component {
		what = "update component"
	}
	if m.Start != 0 {
		what = fmt.Sprintf("image at 0x%x of a flash", m.Start)
	}
	return fmt.Sprintf("%v, %s, %d sections", m.Format, what, len(m.Sections))
}

func (v *verifier) judge(boards []string) error {
	if err := v.checksums(); err != nil {
		return err
	}
	var err error
	if v.report.Identity, err = Describe(v.m); err != nil {
		return v.undescribed(err)
	}
	v.board(boards)
	if v.m.Opaque != "" {
		v.not("signature", Unknown, NotVerifiable, CodeOpaque, "%s", v.m.Opaque)
	} else if err := v.signatures(); err != nil {
		return err
	} else {
		v.coverage()
	}
	v.policy()
	return nil
}

// undescribed records an image whose digest could not be made because of its content.
func (v *verifier) undescribed(err error) error {
	if !image.IsLayout(err) {
		return err
	}
	v.not("digest", Fail, Invalid, CodeMalformed, "%v", err)
	return nil
}

func (v *verifier) checksums() error {
	found, err := v.m.Check()
	if image.IsLayout(err) {
		v.not("checksums", Fail, Invalid, CodeMalformed, "%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	if len(found) == 0 {
		v.pass("checksums", "all are right")
		return nil
	}
	words := []string{}
	for _, f := range found[:min(len(found), maxFindings)] {
		words = append(words, f.String())
	}
	if more := len(found) - maxFindings; more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	v.not("checksums", Fail, Invalid, CodeChecksum, "%s", strings.Join(words, "; "))
	return nil
}

// board compares the PSID of the image with those that its package has it for.
func (v *verifier) board(boards []string) {
	if len(boards) == 0 || v.m.Info == nil {
		return
	}
	if slices.ContainsFunc(boards, func(b string) bool { return b != string(v.m.Info.PSID) }) {
		v.not("board", Fail, Invalid, CodeBoard, "the package has it for %s, but the image is for %s", strings.Join(boards, ", "), v.m.Info.PSID)
		return
	}
	v.pass("board", "package and image name PSID %s", v.m.Info.PSID)
}

// signatures judges each signature that is there. One that is right does not make
// good for one that is wrong.
func (v *verifier) signatures() error {
	signed := false
	for i := range v.m.Signatures {
		s := &v.m.Signatures[i]
		if s.Blank() {
			continue
		}
		if s.Bare() {
			v.bare(s)
			continue
		}
		signed = true
		if err := v.signature(s); err != nil {
			return err
		}
	}
	if !signed {
		v.not("signature", Absent, NotSigned, CodeNoSignature, "it has no signature")
	}
	return nil
}

// coverage says of an image that is valid so far what its signatures are not over.
func (v *verifier) coverage() {
	if v.report.Verdict != Valid {
		return
	}
	v.report.NotCovered = v.m.Behind()
	if v.report.NotCovered > 0 {
		v.pass("coverage", "signatures cover the image up to 0x%x, the end of its last section; the %d bytes after it may be anything: device data, padding", v.m.End, v.report.NotCovered)
		return
	}
	v.pass("coverage", "signatures cover the image up to the end of the file")
}

// bare compares a digest that stands where a signature could.
func (v *verifier) bare(s *image.Signature) {
	d, ok := s.Digest()
	switch {
	case !ok:
		v.not("digest", Fail, Invalid, CodeSignatureBytes, "the section for %v names no key and has neither digest nor signature", s.Algorithm)
	case policy.Digest(d) != *v.report.Identity.Digest:
		v.not("digest", Fail, Invalid, CodeDigest, "it is %v, but the image says %x: it was changed", v.report.Identity.Digest, d)
	default:
		v.pass("digest", "it is %x, as the image says; a forger can write that", d)
	}
}

func (v *verifier) signature(s *image.Signature) error {
	name := "signature " + s.Algorithm.String()
	if !s.Tidy() {
		v.not(name, Fail, Invalid, CodeSignatureBytes, "there are bytes after it that belong to no signature")
		return nil
	}
	if s.Key.Development() {
		v.not(name, Fail, Invalid, CodeDevelopment, "key %v is a development key", s.Key)
		return nil
	}
	if len(v.site.Pins.Keys()) == 0 {
		v.not(name, Unknown, NotVerifiable, CodeNoPins, "it names key %v, but no key is pinned", s.Key)
		return nil
	}
	key, ok := v.site.Pins.Find(s.Key, s.Algorithm)
	if !ok {
		v.not(name, Fail, Invalid, CodeNotPinned, "it names key %v, which is not pinned for %v", s.Key, s.Algorithm)
		return nil
	}
	if key.Signs&image.SignsFirmware == 0 {
		v.not(name, Fail, Invalid, CodePurpose, "key %v is pinned, but not for firmware", s.Key)
		return nil
	}
	if other := slices.ContainsFunc(v.m.Keys, func(p image.PublicKey) bool {
		return p.UUID == s.Key && p.Algorithm == s.Algorithm && (p.Exponent != key.Exponent || !bytes.Equal(p.Modulus, key.Modulus))
	}); other {
		v.not(name, Fail, Invalid, CodeKeyDiffers, "the image carries another key under the UUID %v than the pinned one", s.Key)
	}
	digest, err := signedDigest(v.m, s.Algorithm)
	if err != nil {
		return err
	}
	if err := key.Verify(digest, s.Value); err != nil {
		v.not(name, Fail, Invalid, CodeSignature, "it is not right with the pinned key %v: image or signature were changed, or another key made it", s.Key)
		return nil
	}
	v.pass(name, "right with the pinned key %v %s", s.Key, key.Name)
	v.report.Signers = append(v.report.Signers, Signer{s.Key, s.Algorithm, key.Name, key.Fingerprint()})
	return nil
}

// policy compares the image with the site's policy. An image without identity cannot be judged, and its verdict is never
// valid.
func (v *verifier) policy() {
	if v.m.Info == nil {
		return
	}
	if r := v.site.Policy.Judge(v.subject()); r != nil {
		v.report.Refusals = r
	}
}

func (v *verifier) subject() policy.Subject {
	i := v.m.Info
	return policy.Subject{
		PSID: i.PSID, Version: i.Version, Hardware: i.Hardware,
		SecurityVersion: v.m.SecurityVersion, Digest: v.report.Identity.Digest,
		Secure: i.Flags.Has(image.FlagSecure), Signed: i.Flags.Has(image.FlagSigned), Debug: i.Flags.Has(image.FlagDebug),
		Development: v.development(),
	}
}

// development reports whether a development key signed an image, or the image brings one along: its adapter would trust
// that key next.
func (v *verifier) development() bool {
	return slices.ContainsFunc(v.m.Signatures, func(s image.Signature) bool { return s.Key.Development() }) ||
		slices.ContainsFunc(v.m.Keys, func(k image.PublicKey) bool { return k.UUID.Development() })
}

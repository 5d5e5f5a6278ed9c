package firmware_test

import (
	"bytes"
	"crypto/rsa"
	"encoding/binary"
	"slices"
	"strings"
	"sync"
	"testing"

	"portcullis/firmware"
	"portcullis/firmware/image"
	"portcullis/firmware/imagetest"
	"portcullis/firmware/pin"
	"portcullis/firmware/policy"
)

// signed makes an image with both signatures.
func signed(s *imagetest.Spec) []byte {
	b := s.Build()
	imagetest.Sign4096(b, imagetest.Key4096(), s.KeyUUID)
	imagetest.Sign2048(b, imagetest.Key2048(), s.KeyUUID)
	return b
}

// attacker is a key that is not pinned.
var attacker = sync.OnceValue(func() *rsa.PrivateKey { return imagetest.NewKey(2048) })

// byAttacker makes an image with a key and a signature of the attacker's own.
func byAttacker(uuid [16]byte, carry bool) []byte {
	own := attacker()
	s := imagetest.New()
	s.KeyUUID, s.Key2048 = uuid, nil
	if carry {
		s.Key2048 = &own.PublicKey
	}
	b := s.Build()
	imagetest.Sign2048(b, own, uuid)
	return b
}

// TestNegative has images that are wrong in one way each, and those that only
// look strange. None but the latter is valid.
func TestNegative(t *testing.T) {
	unpinned := [16]byte{0xAA, 15: 0xBB}
	development := [16]byte{0x12, 0x34, 8: 0x56}
	section := func(kind byte, change func(data []byte)) func() []byte {
		return func() []byte {
			b := signed(imagetest.New())
			_, data := imagetest.Find(b, kind)
			change(data)
			return b
		}
	}
	for _, tt := range []struct {
		name    string
		build   func() []byte
		verdict firmware.Verdict
		codes   []firmware.Code
	}{
		{"whole", func() []byte { return signed(imagetest.New()) }, firmware.Valid, nil},
		{"table one sector later", func() []byte { s := imagetest.New(); s.TOCShift = true; return signed(s) }, firmware.Valid, nil},
		{"entries not counted", func() []byte { s := imagetest.New(); s.TOCCount = false; return signed(s) }, firmware.Valid, nil},
		{"update component", func() []byte { s := imagetest.New(); s.Component = true; return signed(s) }, firmware.Valid, nil},
		{"dump of a flash", func() []byte { s := imagetest.New(); s.Start, s.Size = 0x20000, 0x40000; return signed(s) }, firmware.Valid, nil},
		{"FS3", func() []byte { s := imagetest.New(); s.Format = 3; return signed(s) }, firmware.Valid, nil},
		{"GUID of the device changed", func() []byte { s := imagetest.New(); s.BaseGUID++; return signed(s) }, firmware.Valid, nil},

		{"a bit", section(0x03, func(d []byte) { d[100] ^= 4 }), firmware.Invalid, []firmware.Code{firmware.CodeChecksum, firmware.CodeSignature, firmware.CodeSignature}},
		{"a bit and its checksum", func() []byte {
			b := signed(imagetest.New())
			_, d := imagetest.Find(b, 0x03)
			d[100] ^= 4
			imagetest.Mend(b, 0x03)
			return b
		}, firmware.Invalid, []firmware.Code{firmware.CodeSignature, firmware.CodeSignature}},
		{"a bit of the padding", func() []byte { b := signed(imagetest.New()); b[0x3000] = 1; return b }, firmware.Invalid, []firmware.Code{firmware.CodeSignature, firmware.CodeSignature}},
		{"a bit in the entry of the signature, which nothing else covers", func() []byte {
			b := signed(imagetest.New())
			e, _ := imagetest.Find(b, 0xA0)
			e[0x1C] ^= 0x30
			return b
		}, firmware.Invalid, []firmware.Code{firmware.CodeChecksum}},
		{"an older version", func() []byte {
			b := signed(imagetest.New())
			_, d := imagetest.Find(b, 0x10)
			d[9]--
			imagetest.Mend(b, 0x10)
			return b
		}, firmware.Invalid, []firmware.Code{firmware.CodeSignature, firmware.CodeSignature}},
		{"no key named", section(0xA0, func(d []byte) { clear(d[0x10:0x20]) }), firmware.Invalid, []firmware.Code{firmware.CodeSignatureBytes}},
		{"the large one names no key", section(0xA3, func(d []byte) { clear(d[0x10:0x20]) }), firmware.Invalid, []firmware.Code{firmware.CodeSignature, firmware.CodeSignatureBytes}},
		{"a wrong digest", func() []byte {
			b := imagetest.New().Build()
			imagetest.Digest(b)
			_, d := imagetest.Find(b, 0xA0)
			d[0x20] ^= 1
			return b
		}, firmware.Invalid, []firmware.Code{firmware.CodeDigest, firmware.CodeNoSignature}},
		{"development key", func() []byte { s := imagetest.New(); s.KeyUUID = development; return signed(s) }, firmware.Invalid, []firmware.Code{firmware.CodeDevelopment, firmware.CodeDevelopment}},
		{"the small one right, the large one broken", func() []byte {
			b := signed(imagetest.New())
			_, d := imagetest.Find(b, 0xA3)
			d[0x40] ^= 1
			imagetest.Sign2048(b, imagetest.Key2048(), imagetest.KeyUUID)
			return b
		}, firmware.Invalid, []firmware.Code{firmware.CodeSignature}},
		{"the large one right, the small one broken", section(0xA0, func(d []byte) { d[0x40] ^= 1 }), firmware.Invalid, []firmware.Code{firmware.CodeSignature}},
		{"signatures of another image", func() []byte {
			s := imagetest.New()
			s.Version[1]--
			b, other := s.Build(), signed(imagetest.New())
			for _, kind := range []byte{0xA0, 0xA3} {
				_, to := imagetest.Find(b, kind)
				_, from := imagetest.Find(other, kind)
				copy(to, from)
			}
			return b
		}, firmware.Invalid, []firmware.Code{firmware.CodeSignature, firmware.CodeSignature}},
		{"something behind the signature", section(0xA0, func(d []byte) { d[0x120] = 1 }), firmware.Invalid, []firmware.Code{firmware.CodeSignatureBytes}},
		{"the attacker's key under the pinned UUID", func() []byte { return byAttacker(imagetest.KeyUUID, true) }, firmware.Invalid, []firmware.Code{firmware.CodeKeyDiffers, firmware.CodeSignature}},
		{"the attacker's key, not carried along", func() []byte { return byAttacker(imagetest.KeyUUID, false) }, firmware.Invalid, []firmware.Code{firmware.CodeSignature}},
		{"the attacker's key under a UUID of his", func() []byte { return byAttacker(unpinned, true) }, firmware.Invalid, []firmware.Code{firmware.CodeNotPinned}},
		{"the attacker's key as the next one", func() []byte {
			own := attacker()
			s := imagetest.New()
			s.Key2048 = &own.PublicKey
			return signed(s)
		}, firmware.Invalid, []firmware.Code{firmware.CodeKeyDiffers}},
		{"the attacker's key signs beside the vendor's", func() []byte {
			s := imagetest.New()
			b := s.Build()
			imagetest.Sign4096(b, imagetest.Key4096(), imagetest.KeyUUID)
			imagetest.Sign2048(b, attacker(), unpinned)
			return b
		}, firmware.Invalid, []firmware.Code{firmware.CodeNotPinned}},
		{"unsigned", func() []byte { return imagetest.New().Build() }, firmware.NotSigned, []firmware.Code{firmware.CodeNoSignature}},
		{"two IMAGE_INFO", func() []byte {
			s := imagetest.New()
			s.Extra = []imagetest.Section{{Type: 0x10, Data: s.Info()}}
			return signed(s)
		}, firmware.Invalid, []firmware.Code{firmware.CodeMalformed}},
		{"a section over another", func() []byte {
			s := imagetest.New()
			s.Extra = []imagetest.Section{{Type: 0x30, Data: make([]byte, 64), At: imagetest.FirstAt}}
			return signed(s)
		}, firmware.Invalid, []firmware.Code{firmware.CodeMalformed}},
		{"FS5", func() []byte { s := imagetest.New(); s.Format = 5; return signed(s) }, firmware.NotVerifiable, []firmware.Code{firmware.CodeOpaque}},
		{"encrypted", func() []byte { b := signed(imagetest.New()); clear(b[imagetest.TOCAt:][:16]); return b }, firmware.NotVerifiable, []firmware.Code{firmware.CodeOpaque}},
		{"encrypted by its own word", func() []byte { s := imagetest.New(); s.Flags |= 1 << 4; return signed(s) }, firmware.NotVerifiable, []firmware.Code{firmware.CodeOpaque}},
		{"no firmware", func() []byte { return []byte("#!/bin/sh\necho no firmware\n") }, firmware.NotVerifiable, []firmware.Code{firmware.CodeUnknown}},
		{"empty", func() []byte { return nil }, firmware.NotVerifiable, []firmware.Code{firmware.CodeUnknown}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := verify(t, tt.build(), firmware.Site{Pins: testPins(t)})
			if r.Verdict != tt.verdict || !slices.Equal(codes(r), tt.codes) {
				t.Errorf("verdict %q, codes %v, want %q %v; steps %+v", r.Verdict, codes(r), tt.verdict, tt.codes, r.Images[0].Steps)
			}
			if valid := tt.verdict == firmware.Valid; r.Accepted() != valid || (len(r.Images[0].Signers) > 0) != valid {
				t.Errorf("accepted %v, signers %v", r.Accepted(), r.Images[0].Signers)
			}
		})
	}
}

// TestEveryPlace changes one bit here and there in all that a signature covers: no
// such image is valid.
func TestEveryPlace(t *testing.T) {
	good := signed(imagetest.New())
	site := firmware.Site{Pins: testPins(t)}
	r := verify(t, good, site)
	if r.Verdict != firmware.Valid {
		t.Fatalf("the image is %q", r.Verdict)
	}
	_, signature := imagetest.Find(good, 0xA0)
	free := bytes.Index(good, signature[:0x30]) // the UUID of the small signature is covered by nothing
	for at := 0; at < 0xA1C0; at += 251 {
		if at >= free && at < free+16 {
			continue
		}
		b := bytes.Clone(good)
		b[at] ^= 1 << (at % 8)
		if r := verify(t, b, site); r.Accepted() {
			t.Errorf("with a changed bit at 0x%x it is accepted", at)
		}
	}
}

// TestTruncated cuts a signed image off at every 4 KiB.
func TestTruncated(t *testing.T) {
	for _, format := range []byte{3, 4} {
		s := imagetest.New()
		s.Format = format
		good := signed(s)
		for n := 0; n < len(good); n += 4096 {
			if format == 3 && n > imagetest.DevInfoAt+0x200 {
				break // nothing stands behind its device
			}
			if r := verify(t, good[:n], firmware.Site{Pins: testPins(t)}); r.Accepted() {
				t.Errorf("layout %d cut off at 0x%x is accepted: %+v", format, n, r.Images[0].Steps)
			}
		}
	}
}

// TestPinsDecide judges one image by pins that differ.
func TestPinsDecide(t *testing.T) {
	k := testPins(t).Keys()
	forTokens := k[0]
	forTokens.Signs = image.SignsCSToken
	other := k[0]
	other.Modulus = attacker().N.Bytes()
	b := imagetest.New().Build()
	imagetest.Sign2048(b, imagetest.Key2048(), imagetest.KeyUUID)
	for _, tt := range []struct {
		name    string
		keys    []pin.Key
		verdict firmware.Verdict
		codes   []firmware.Code
	}{
		{"pinned", k[:1], firmware.Valid, nil},
		{"nothing pinned", nil, firmware.NotVerifiable, []firmware.Code{firmware.CodeNoPins}},
		{"only the other algorithm", k[1:], firmware.Invalid, []firmware.Code{firmware.CodeNotPinned}},
		{"for tokens", []pin.Key{forTokens}, firmware.Invalid, []firmware.Code{firmware.CodePurpose}},
		{"another key under the UUID", []pin.Key{other}, firmware.Invalid, []firmware.Code{firmware.CodeKeyDiffers, firmware.CodeSignature}},
	} {
		pins, err := pin.New(tt.keys...)
		if err != nil {
			t.Fatal(err)
		}
		if r := verify(t, b, firmware.Site{Pins: pins}); r.Verdict != tt.verdict || !slices.Equal(codes(r), tt.codes) {
			t.Errorf("%s: %q %v, want %q %v", tt.name, r.Verdict, codes(r), tt.verdict, tt.codes)
		}
	}
}

// TestPolicyDecides has genuine images that the site does not want.
func TestPolicyDecides(t *testing.T) {
	site := func(text string) firmware.Site {
		p, err := policy.Parse("policy.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return firmware.Site{Pins: testPins(t), Policy: p}
	}
	const board = "boards: [{psid: TST0000000001, floor: 22.47.1088, hardware: [0x218], security_version: 3}]\n"
	for _, tt := range []struct {
		name   string
		change func(s *imagetest.Spec)
		site   firmware.Site
		want   []policy.Code
	}{
		{"wanted", func(s *imagetest.Spec) { s.SecurityVersion = 3 }, site(board), nil},
		{"wrong PSID", func(s *imagetest.Spec) { s.PSID = "TST0000000002" }, site(board), []policy.Code{policy.UnknownBoard}},
		{"below the floor", func(s *imagetest.Spec) { s.SecurityVersion, s.Version[2] = 3, 1087 }, site(board), []policy.Code{policy.BelowFloor}},
		{"for another chip", func(s *imagetest.Spec) { s.SecurityVersion, s.Hardware = 3, []uint32{0x212} }, site(board), []policy.Code{policy.WrongHardware}},
		{"old security version", func(*imagetest.Spec) {}, site(board), []policy.Code{policy.SecurityVersion}},
		{"debug", func(s *imagetest.Spec) { s.Flags |= imagetest.FlagDebug }, firmware.Site{Pins: testPins(t)}, []policy.Code{policy.Debug}},
		{"brings a development key", func(s *imagetest.Spec) { s.NextKey = [16]byte{1, 2, 3} }, firmware.Site{Pins: testPins(t)}, []policy.Code{policy.Development}},
		{"brings another key", func(s *imagetest.Spec) { s.NextKey = [16]byte{1, 2, 3, 15: 4} }, firmware.Site{Pins: testPins(t)}, nil},
		{"takes unsigned updates", func(s *imagetest.Spec) { s.Flags &^= imagetest.FlagSecure }, firmware.Site{Pins: testPins(t)}, []policy.Code{policy.NotSecure}},
		{"not on the list", func(s *imagetest.Spec) { s.SecurityVersion = 3 }, site(board + "digests: [" + strings.Repeat("ab", 32) + "]\n"), []policy.Code{policy.NotListed}},
		{"forbidden", func(s *imagetest.Spec) { s.SecurityVersion = 3 }, site(board + "forbidden: [{version: 22.47.1088, reason: it loses packets}]\n"), []policy.Code{policy.ForbiddenOne}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := imagetest.New()
			tt.change(s)
			r := verify(t, signed(s), tt.site)
			got := []policy.Code{}
			for _, x := range r.Images[0].Refusals {
				got = append(got, x.Code)
			}
			if r.Verdict != firmware.Valid || !slices.Equal(got, tt.want) || r.Accepted() != (tt.want == nil) {
				t.Errorf("verdict %q, refusals %v, accepted %v, want %v", r.Verdict, got, r.Accepted(), tt.want)
			}
		})
	}
}

// TestPackage judges packages: the worst image decides, and the board that the package names for an image must be the
// image's own.
func TestPackage(t *testing.T) {
	component := func(psid string, sign bool) []byte {
		s := imagetest.New()
		s.Component, s.PSID = true, psid
		if !sign {
			return s.Build()
		}
		return signed(s)
	}
	changed := func(b []byte) []byte { b[len(b)-1] ^= 1; return b }
	for _, tt := range []struct {
		name    string
		b       []byte
		verdict firmware.Verdict
		problem string
		images  int
	}{
		{"good", (&imagetest.Package{Images: [][]byte{component("A", true), component("B", true)}, PSIDs: []string{"A", "B"}}).Build(), firmware.Valid, "", 2},
		{"one is not signed", (&imagetest.Package{Images: [][]byte{component("A", true), component("B", false)}, PSIDs: []string{"A", "B"}}).Build(), firmware.NotSigned, "", 2},
		{"one is for another board", (&imagetest.Package{Images: [][]byte{component("A", true), component("B", true)}, PSIDs: []string{"A", "C"}}).Build(), firmware.Invalid, "", 2},
		{"one is no image", (&imagetest.Package{Images: [][]byte{component("A", true), []byte("nothing")}, PSIDs: []string{"A", "B"}}).Build(), firmware.NotVerifiable, "", 2},
		{"changed", changed((&imagetest.Package{Images: [][]byte{component("A", true)}, PSIDs: []string{"A"}}).Build()), firmware.Invalid, "digest of the file", 0},
		{"no images", (&imagetest.Package{}).Build(), firmware.NotVerifiable, "no images", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := verify(t, tt.b, firmware.Site{Pins: testPins(t)})
			if r.Verdict != tt.verdict || !strings.Contains(r.Problem, tt.problem) || (r.Problem == "") != (tt.problem == "") || len(r.Images) != tt.images || !r.Package {
				t.Errorf("%q %q, %d images, want %q %q %d", r.Verdict, r.Problem, len(r.Images), tt.verdict, tt.problem, tt.images)
			}
			if r.Accepted() != (tt.verdict == firmware.Valid) || (r.Code == "") != (tt.problem == "") {
				t.Errorf("accepted is %v, code %q", r.Accepted(), r.Code)
			}
			if one := r.Only(1); (one != nil) != (tt.images == 2) || one != nil && (one.Verdict != r.Verdict || len(one.Images) != 1) {
				t.Errorf("the second image alone is %+v", one)
			}
		})
	}
}

// TestKeys checks the keys that an image carries, and which of them signed it.
func TestKeys(t *testing.T) {
	b := imagetest.New().Build()
	imagetest.Sign2048(b, imagetest.Key2048(), imagetest.KeyUUID)
	m, err := image.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := firmware.Keys(m)
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) != 2 || !keys[0].Signed || keys[1].Signed || keys[0].Key.UUID != imagetest.KeyUUID || keys[0].Problem != "" {
		t.Errorf("keys are %+v", keys)
	}
	if want := testPins(t).Keys()[0]; *keys[0].Fingerprint != want.Fingerprint() {
		t.Errorf("fingerprint %v, want %v", keys[0].Fingerprint, want.Fingerprint())
	}
}

// FuzzVerify changes a signed image in places. An accepted image differs from it only in places that nothing covers. The
// entry of the small signature is covered by its checksum alone, and is left as it is.
func FuzzVerify(f *testing.F) {
	good := signed(imagetest.New())
	site := firmware.Site{Pins: testPins(f)}
	entry, signature := imagetest.Find(good, 0xA0)
	free, own := bytes.Index(good, signature[:0x30]), bytes.Index(good, entry)
	e, data := imagetest.Find(good, 0xA4) // the last section
	end := int(binary.BigEndian.Uint32(e[0x14:])) + len(data)
	f.Add([]byte{0, 0x60, 0x10, 1})
	f.Add([]byte{0, 0x40, 0x30, 0x80, 0, 0x40, 0x3F, 2})
	f.Fuzz(func(t *testing.T, changes []byte) {
		b := bytes.Clone(good)
		for c := changes; len(c) >= 4; c = c[4:] {
			if at := int(c[0])<<16 | int(c[1])<<8 | int(c[2]); at < len(b) {
				b[at] ^= c[3]
			}
		}
		copy(b[free:free+16], good[free:])
		copy(b[own:own+32], good[own:])
		if r := verify(t, b, site); r.Accepted() && !bytes.Equal(b[:end], good[:end]) {
			t.Error("a changed image is accepted")
		}
	})
}

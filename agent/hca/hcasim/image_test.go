package hcasim

import (
	"testing"

	"portcullis/agent/hca/register"
	"portcullis/firmware/imagetest"
)

// mainSection is that of the code.
const mainSection = 0x03

// firmwareUUID names the key of the firmware of these tests.
var firmwareUUID = [16]byte{0: 0xF0, 15: 0x0D}

// signedImage is an image for the card of the tests.
func signedImage(change func(*imagetest.Spec)) []byte {
	b := unsignedImage(change)
	imagetest.Sign4096(b, imagetest.Key4096(), firmwareUUID)
	return b
}

func unsignedImage(change func(*imagetest.Spec)) []byte {
	s := imagetest.New()
	s.PSID, s.Version, s.Hardware = testPSID, [3]uint16{28, 44, 1036}, []uint32{0x0218}
	s.SecurityVersion, s.Key4096, s.KeyUUID = 3, &imagetest.Key4096().PublicKey, firmwareUUID
	change(s)
	return s.Build()
}

func firmwareKey(o *Options) {
	o.Keys = append(o.Keys, Key{UUID: firmwareUUID, Public: &imagetest.Key4096().PublicKey, Signs: SignsFirmware})
	o.Security.EFUSE = 2
}

func pendingVersion(l lab) (string, bool) {
	m, status := do(l, register.Read, register.MCQI{Type: register.Version, DataSize: 124, Pending: true})
	v, err := register.Decode[register.ComponentVersion](m.Data[:])
	if err != nil {
		l.Fatal(err)
	}
	return register.Text(v.Text[:]), status == register.OK
}

// Firmware that is signed under the card's key runs after the next boot.
func TestImage(t *testing.T) {
	l := open(t, firmwareKey)
	l.mustUpload(register.BootImage, signedImage(func(*imagetest.Spec) {}))
	if v, ok := pendingVersion(l); !ok || v != "28.44.1036" {
		t.Errorf("pending %q, %v", v, ok)
	}
	if m := get(l, register.MGIR{}); m.Firmware.Minor != 43 {
		t.Errorf("running before the boot: %+v", m.Firmware)
	}
	l.card.Reset()
	if m := get(l, register.MGIR{}); m.Firmware.Minor != 44 || m.Firmware.SubMinor != 1036 {
		t.Errorf("running after it: %+v", m.Firmware)
	}
	if m := get(l, register.MFSV{}); m.Image != 3 || m.EFUSE != 2 {
		t.Errorf("MFSV %+v", m)
	}
	if v, ok := pendingVersion(l); ok {
		t.Errorf("still pending: %q", v)
	}
}

func TestImagesRefused(t *testing.T) {
	l := open(t, firmwareKey)
	good := signedImage(func(*imagetest.Spec) {})
	changed := signedImage(func(*imagetest.Spec) {})
	_, body := imagetest.Find(changed, mainSection)
	body[0] ^= 1
	imagetest.Mend(changed, mainSection)
	foreign := signedImage(func(s *imagetest.Spec) { s.KeyUUID = [16]byte{15: 9} })
	imagetest.Sign4096(foreign, imagetest.Key4096(), [16]byte{15: 9})
	digest := unsignedImage(func(*imagetest.Spec) {})
	imagetest.Digest(digest)
	for _, tt := range []struct {
		name string
		data []byte
		want register.MCCError
	}{
		{"no image", []byte("no image at all"), register.RejectedBadFormat},
		{"cut off", good[:len(good)/2], register.RejectedBadFormat},
		{"changed, with mended checksums", changed, register.RejectedAuthFailed},
		{"an unknown key", foreign, register.RejectedUnknownKey},
		{"a digest only", digest, register.RejectedUnsigned},
		{"another board", signedImage(func(s *imagetest.Spec) { s.PSID = "TST0000000002" }), register.RejectedNotApplicable},
		{"another chip", signedImage(func(s *imagetest.Spec) { s.Hardware = []uint32{0x020F} }), register.RejectedNotApplicable},
		{"older than the fuses", signedImage(func(s *imagetest.Spec) { s.SecurityVersion = 1 }), register.RejectedSecurityVersion},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := lab{t, l.card}
			l.refused(register.BootImage, tt.data, tt.want)
			if v, ok := pendingVersion(l); ok {
				t.Errorf("pending %q", v)
			}
		})
	}
}
